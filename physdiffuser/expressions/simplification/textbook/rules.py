"""The form in which a textbook writes a formula with fitted constants.

`layout` finds a brief form. With fitted numbers several are equally brief, or one is briefer whose numbers
mean nothing: `2.7e25*m/sqrt(9e16 - v**2)` for `m*c2/sqrt(1 - v**2/c2)`. Here sums and products are brought
to the form in which each number is an amplitude, a rate, a scale or a place. Each rule keeps the value and
the number of fitted constants; numbers that were set stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from physdiffuser.expressions.simplification.exact import Value
from physdiffuser.expressions.simplification.factors import Factors, factors_of, inverse, sum_of, terms_of
from physdiffuser.expressions.simplification.textbook.products import textbook_product
from physdiffuser.expressions.simplification.textbook.sums import is_column, is_shift, textbook_sum
from physdiffuser.expressions.tree import Apply, Expression, Variable

_ALGEBRA = ("mul", "div", "pow", "sqrt", "neg")
_MAX_EXPONENT = 600.0
_SMALL_RATE = 0.01
"""A rate below it is written as the scale it is the reciprocal of: `exp(-h/8431)`."""


def textbook(expression: Expression) -> Expression:
    """Write a formula as a textbook does.

    Parameters
    ----------
    expression
        As `arrange` gives it.

    Returns
    -------
    A tree of the same value, up to rounding, wherever both are defined.
    """
    if not isinstance(expression, Apply):
        return expression
    made = Apply(expression.operator, tuple(textbook(argument) for argument in expression.arguments))
    if made.operator in ("add", "sub"):
        return textbook_product(textbook_sum(terms_of(made)))
    if made.operator in _ALGEBRA:
        return textbook_product(factors_of(made))
    if made.operator == "exp":
        return _exponential(made.arguments[0])
    return Apply(made.operator, tuple(_argument(argument) for argument in made.arguments))


def _argument(argument: Expression) -> Expression:
    """`(x - m)/s` for `k*(x - m)`, and `h/8431` for `0.0001186*h`."""
    if isinstance(argument, Apply) and argument.operator in ("add", "sub"):
        return argument
    product = factors_of(argument)
    if not product.is_fitted or len(product.items) != 1:
        return argument
    base, power = product.items[0]
    if not isinstance(power, int | Fraction) or power < 1:
        return argument
    if power == 1 and (line := _monic_line(terms_of(base))) is not None:
        rate, base = line
        product = replace(product, items=((base, 1),)).scaled(rate)
    if is_shift(base):
        return _from_place(replace(product, divided=True), power).tree
    small = abs(float(product.coefficient)) < _SMALL_RATE or _is_scale(product.coefficient)
    return replace(product, divided=True).tree if small and isinstance(base, Variable) else argument


def _monic_line(terms: Sequence[Factors]) -> tuple[Value, Expression] | None:
    """The rate, and `x - m`, of `k*x - p`."""
    columns, numbers = [term for term in terms if is_column(term)], [term for term in terms if term.is_number]
    if len(terms) != 2 or not columns or not numbers or abs(columns[0].coefficient) == 1:
        return None
    rate = columns[0].coefficient
    return rate, sum_of([columns[0].scaled(inverse(rate)), numbers[0].scaled(inverse(rate))])


def _from_place(product: Factors, power: int | Fraction) -> Factors:
    """`-(x - m)/s` rather than `(m - x)/s`."""
    terms = terms_of(product.items[0][0])
    column = next(term for term in terms if not term.is_number)
    if column.coefficient > 0 or not isinstance(power, int):
        return product
    turned = sum_of(sorted((term.scaled(-1) for term in terms), key=lambda term: term.is_number))
    return replace(product, items=((turned, power),)).scaled((-1) ** power)


def _is_scale(number: Value) -> bool:
    """Whether an exact number is a decimal only as a divisor: 100/137."""
    if isinstance(number, float):
        return False
    return 10_000 % number.denominator != 0 and 10_000 % number.numerator == 0


def _exponential(argument: Expression) -> Expression:
    """`A*exp(-k*t)` for `exp(a - k*t)`."""
    terms = terms_of(argument)
    numbers = [term for term in terms if term.is_number and term.is_fitted]
    if len(numbers) == 1 and len(terms) > 1 and abs(float(numbers[0].coefficient)) < _MAX_EXPONENT:
        rest = sum_of([term for term in terms if term is not numbers[0]])
        return Factors(math.exp(float(numbers[0].coefficient)), ((_exponential(rest), 1),)).tree
    return Apply("exp", (_argument(argument),))
