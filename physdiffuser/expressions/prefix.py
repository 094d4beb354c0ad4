"""Trees as prefix token sequences, both ways.

Tokens are operator names, `x1`, `x2`, ... for variables, `C` for a parameter (numbered in order of
appearance), `pi`, and numbers as written (`2`, `-3`, `3/2`, `0.25`). Other known constants are written by
their names, and not read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from fractions import Fraction

from physdiffuser.expressions.operators import OPERATORS
from physdiffuser.expressions.tree import PI, Apply, Expression, Number, Parameter, Symbol, Variable, walk

PARAMETER_TOKEN = "C"
# The digits that exact arithmetic may produce (512 bits), and no more.
_INTEGER = re.compile(r"-?[0-9]{1,160}")
_FRACTION = re.compile(r"-?[0-9]{1,160}/[0-9]{1,160}")
_DECIMAL = re.compile(r"-?[0-9]{1,25}(\.[0-9]*)?(e[+-]?[0-9]+)?")
_VARIABLE = re.compile(r"x([1-9][0-9]*)")


def _token(node: Expression) -> str:
    match node:
        case Apply(operator=operator):
            return operator
        case Variable(index=index):
            return f"x{index + 1}"
        case Parameter():
            return PARAMETER_TOKEN
        case Symbol(name=name):
            return name
        case Number(value=value):
            return repr(value) if isinstance(value, float) else str(value)


def to_prefix(expression: Expression) -> list[str]:
    """Prefix tokens of an expression."""
    return [_token(node) for node in walk(expression)]


def from_prefix(tokens: Sequence[str]) -> Expression:
    """The expression that a prefix sequence spells.

    Raises
    ------
    ValueError
        If a token is unknown, or the sequence ends too early or too late.
    """
    stack: list[Expression] = []
    parameters = sum(1 for token in tokens if token == PARAMETER_TOKEN)
    # Read from the end: the arguments of an operator are then complete when it is met.
    for token in reversed(tokens):
        operator = OPERATORS.get(token)
        if operator is not None:
            if len(stack) < operator.arity:
                raise ValueError(f"prefix sequence ends inside the arguments of {token!r}")
            arguments = tuple(stack.pop() for _ in range(operator.arity))
            stack.append(Apply(token, arguments))
        elif token == PARAMETER_TOKEN:
            parameters -= 1
            stack.append(Parameter(parameters))
        elif match := _VARIABLE.fullmatch(token):
            stack.append(Variable(int(match[1]) - 1))
        elif token == PI.name:
            stack.append(PI)
        else:
            stack.append(Number(_number(token)))
    if len(stack) != 1:
        raise ValueError(f"prefix sequence spells {len(stack)} expressions, not one")
    return stack[0]


def _number(token: str) -> int | Fraction | float:
    try:
        if _INTEGER.fullmatch(token):
            return int(token)
        if _FRACTION.fullmatch(token):
            return Fraction(token)
        # Only plain decimals: float() would also read "nan", "1_000" and digits of other scripts.
        if _DECIMAL.fullmatch(token) and math.isfinite(number := float(token)):
            return number
    except (ValueError, ZeroDivisionError):
        pass
    raise ValueError(f"unknown token {token!r}")
