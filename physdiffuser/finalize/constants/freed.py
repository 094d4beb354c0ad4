"""Numbers that a generator has chosen are fitted again: only the data decide which constants are special."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from physdiffuser.expressions import PI, Apply, Expression, Number, Symbol, evaluate
from physdiffuser.expressions.tree import walk


def with_freed_constants(expression: Expression) -> Expression:
    """The formula with its numbers as fitted constants, but for those that are its form.

    The form are exponents that are multiples of 1/2, the number 1, and constants with a name. In
    `2*x**2/(1 + y)` the first 2 is freed.
    """
    if not isinstance(expression, Apply):
        return _freed(expression)
    if all(
        isinstance(leaf, Number) or leaf == PI for leaf in walk(expression) if not isinstance(leaf, Apply)
    ):
        return _freed(expression)
    parts = []
    for position, argument in enumerate(expression.arguments):
        exponent = expression.operator == "pow" and position == 1
        usual = exponent and isinstance(argument, Number) and argument.exact and _half(argument)
        parts.append(argument if usual else with_freed_constants(argument))
    return Apply(expression.operator, tuple(parts))


def _half(number: Number) -> bool:
    return Fraction(number.value).denominator <= 2


def _freed(expression: Expression) -> Expression:
    leaves = list(walk(expression))
    if any(isinstance(leaf, Number) and not leaf.exact for leaf in leaves):
        return expression
    if not any(isinstance(leaf, Number | Symbol) for leaf in leaves):
        return expression
    if isinstance(expression, Symbol) and expression != PI:
        return expression
    value = float(evaluate(expression, np.zeros((1, 1)))[0])
    return Number(value) if np.isfinite(value) and abs(value) != 1.0 and value != 0.0 else expression
