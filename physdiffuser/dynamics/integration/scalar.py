"""Right-hand sides at one state, as functions of plain floats: faster than numpy on single numbers."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence

from physdiffuser.expressions import OPERATORS, Apply, Expression, Number, Parameter, Symbol, Variable

Scalar = Callable[[Sequence[float]], float]

_BINARY: dict[str, Callable[[float, float], float]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
}
_UNARY: dict[str, Callable[[float], float]] = {
    "neg": operator.neg,
    "abs": abs,
    "sqrt": math.sqrt,
    "exp": math.exp,
    "log": math.log,
    "sin": math.sin,
    "cos": math.cos,
    "tanh": math.tanh,
}


def compile_scalar(expression: Expression) -> Scalar:
    """A function of the variables, without parameters.

    It raises `ArithmeticError` or `ValueError` where the formula has no value.
    """
    match expression:
        case Variable(index=index):
            return operator.itemgetter(index)
        case Number(value=value) | Symbol(value=value):
            number = float(value)
            return lambda variables: number
        case Apply(operator="pow", arguments=(base, Number(value=exponent))) if float(exponent).is_integer():
            inner, whole = compile_scalar(base), int(exponent)
            return lambda variables: inner(variables) ** whole
        case Apply(operator=name, arguments=(left, right)) if name in _BINARY:
            first, second, both = compile_scalar(left), compile_scalar(right), _BINARY[name]
            return lambda variables: both(first(variables), second(variables))
        case Apply(operator=name, arguments=(only,)) if name in _UNARY:
            argument, outer = compile_scalar(only), _UNARY[name]
            return lambda variables: outer(argument(variables))
        case Apply(operator=name, arguments=arguments):
            parts, general = [compile_scalar(one) for one in arguments], OPERATORS[name].evaluate
            return lambda variables: float(general(*[part(variables) for part in parts]))
        case Parameter():
            raise TypeError("a parameter has no value")
    raise TypeError(f"no expression: {expression!r}")
