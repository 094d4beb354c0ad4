"""Zeros and ones taken out of a formula: `0*x` goes, `1*x` is `x`, `x**1` is `x`, `cos(0)` is 1.

Only what a removed or unit constant leaves behind; simplification in general is
`physdiffuser.expressions.simplification`.
"""

from __future__ import annotations

import math

from physdiffuser.expressions import ONE, ZERO, Apply, Expression, Number
from physdiffuser.expressions.tree import call, div, mul

_AT_ZERO = {
    "sin": ZERO,
    "tan": ZERO,
    "sinh": ZERO,
    "tanh": ZERO,
    "asin": ZERO,
    "atan": ZERO,
    "sqrt": ZERO,
    "abs": ZERO,
    "cos": ONE,
    "cosh": ONE,
    "exp": ONE,
}
_AT_ONE = {"sqrt": ONE, "log": ZERO, "abs": ONE, "acos": ZERO}
_MINUS_ONE = Number(-1)


def fold_units(expression: Expression) -> Expression:
    """The same formula without exact zeros and ones that do nothing."""
    if not isinstance(expression, Apply):
        return expression
    arguments = tuple(fold_units(argument) for argument in expression.arguments)
    folded = _fold(expression.operator, arguments)
    if folded is not None:
        return folded
    if all(new is old for new, old in zip(arguments, expression.arguments, strict=True)):
        return expression
    return Apply(expression.operator, arguments)


def numerators(expression: Expression) -> Expression:
    """Fitted constants of denominators moved up: `a/(2.5*b)` becomes `0.4*(a/b)`.

    A term that fades out then has a constant near 0, not one that runs to infinity, and it is linear.
    """
    if not isinstance(expression, Apply):
        return expression
    arguments = tuple(numerators(argument) for argument in expression.arguments)
    if expression.operator == "div":
        factor, rest = _split(arguments[1])
        if factor != 1.0 and math.isfinite(factor) and factor != 0.0 and math.isfinite(1.0 / factor):
            top = arguments[0] if rest is None else div(arguments[0], rest)
            return mul(Number(1.0 / factor), top)
    return Apply(expression.operator, arguments)


def _split(expression: Expression) -> tuple[float, Expression | None]:
    """A product as its fitted constants, multiplied, and the rest."""
    if isinstance(expression, Number) and isinstance(expression.value, float):
        return expression.value, None
    if isinstance(expression, Apply) and expression.operator == "mul":
        left, first = _split(expression.arguments[0])
        right, second = _split(expression.arguments[1])
        if first is None or second is None:
            return left * right, first or second
        return left * right, mul(first, second) if left * right != 1.0 else expression
    return 1.0, expression


def _negative(argument: Expression) -> Expression:
    if isinstance(argument, Number):
        return Number(-argument.value)
    if isinstance(argument, Apply) and argument.operator == "neg":
        return argument.arguments[0]
    return call("neg", argument)


def _fold(operator: str, arguments: tuple[Expression, ...]) -> Expression | None:
    first = arguments[0]
    if len(arguments) == 1:
        if operator == "neg" and isinstance(first, Number | Apply):
            folded = _negative(first)
            return folded if isinstance(first, Number) or folded == first.arguments[0] else None
        if first == ZERO:
            return _AT_ZERO.get(operator)
        return _AT_ONE.get(operator) if first == ONE else None
    second = arguments[1]
    match operator:
        case "add":
            return second if first == ZERO else first if second == ZERO else None
        case "sub":
            if second == ZERO:
                return first
            return _negative(second) if first == ZERO else None
        case "mul":
            if ZERO in (first, second):
                return ZERO
            for one, other in ((first, second), (second, first)):
                if one == ONE:
                    return other
                if one == _MINUS_ONE:
                    return _negative(other)
            return None
        case "div":
            if first == ZERO:
                return ZERO
            if second == ONE:
                return first
            return _negative(first) if second == _MINUS_ONE else None
        case "pow":
            if second == ONE:
                return first
            return ONE if second == ZERO or first == ONE else None
        case _:
            return None
