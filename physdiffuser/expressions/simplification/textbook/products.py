"""Products and quotients as a textbook writes them: each fitted number an amplitude, a scale or a place."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TypeAlias

from physdiffuser.expressions.simplification.exact import Value, magnitude
from physdiffuser.expressions.simplification.factors import (
    ROUNDING,
    Factors,
    inverse,
    is_value,
    merged,
    raised,
    sum_of,
    terms_of,
)
from physdiffuser.expressions.simplification.quotients import Item
from physdiffuser.expressions.simplification.textbook.sums import (
    is_call,
    is_column,
    is_plain,
    is_power,
    is_shift,
    is_sum,
    textbook_sum,
    with_small_phase,
)
from physdiffuser.expressions.tree import Apply, Expression, Number, Variable, variables

_MAX_REWRITTEN = 20
"""Rules applied to one product; each brings it nearer to its form, so that a few are enough."""

_SIMPLE_DENOMINATOR = 12
"""A fraction with a larger denominator is a quotient of measured numbers."""


def textbook_product(product: Factors) -> Expression:
    """Write a product.

    Parameters
    ----------
    product
        Its factors have been written before.
    """
    product = with_small_phase(product)
    for _ in range(_MAX_REWRITTEN):
        made = _rewritten(product)
        if made is None:
            break
        product = made
    items = tuple(
        (_denominator(base) if is_value(power) and power < 0 else base, power)
        for base, power in product.items
    )
    return _with_ties(replace(product, items=items)).tree


def _rewritten(product: Factors) -> Factors | None:
    for place, (base, power) in enumerate(product.items):
        if is_sum(base) and is_value(power):
            for rule in _RULES:
                made = rule(product, place, terms_of(base), power)
                if made is None or made == product:
                    continue
                if _odd_fractions(made.tree) <= _odd_fractions(product.tree):
                    return made
    return None


def _odd_fractions(tree: Expression) -> int:
    """Numbers like 275/261: decimals that were set, divided by each other."""
    if isinstance(tree, Apply):
        return sum(_odd_fractions(part) for part in tree.arguments)
    if not isinstance(tree, Number) or not tree.exact:
        return 0
    left = Fraction(tree.value).denominator
    for prime in (2, 5):
        while left % prime == 0:
            left //= prime
    return int(left > _SIMPLE_DENOMINATOR)


# ---- rules: product, place of a sum in it, the terms of the sum, its power ----


def _cleared(product: Factors, place: int, terms: Sequence[Factors], power: Value) -> Factors | None:
    """`q/(1 + K/p)` as `q*p/(p + K)`: no column stands below the line of a denominator."""
    if power != -1:
        return None
    for base, exponent in (item for term in terms for item in term.items):
        if isinstance(base, Variable) and is_value(exponent) and exponent < 0:
            factor = Factors(1, ((base, -exponent),))
            inner = sum_of([merged(term, factor) for term in terms])
            return merged(_with_item(product, place, (inner, power)), factor)
    return None


def _logistic(product: Factors, place: int, terms: Sequence[Factors], power: Value) -> Factors | None:
    """`a/(c + b*exp(-k*x))` as `A/(1 + exp(-(x - m)/s))`, or `A/(1 + exp(p - k*x - l*y))`."""
    number, other = _number_and_other(terms)
    if number is None or other is None or not power < 0 or not (number.is_fitted or other.is_fitted):
        return None
    exponential = other.items[0][0]
    if len(other.items) != 1 or other.items[0][1] != 1 or not isinstance(exponential, Apply):
        return None
    outside = raised(number.coefficient, power) if number.coefficient > 0 else None
    if outside is None or not is_call(exponential, "exp") or not other.coefficient > 0:
        return None
    shift = math.log(float(other.coefficient) / float(number.coefficient))
    exponent = _shifted(exponential.arguments[0], shift)
    if exponent is None:
        return None
    inner = sum_of([Factors(1, ()), Factors(1, ((Apply("exp", (exponent,)), 1),))])
    return _with_item(product, place, (inner, power)).scaled(outside)


def _shifted(argument: Expression, shift: float) -> Expression | None:
    """`(x - m)/s` for `x/s` and a shift, `k*x + l*y + p` for a sum of columns; None for anything else."""
    line = _line(argument)
    if line is not None:
        rate, column, constant = line
        middle = -(constant + shift) / float(rate)
        place = (
            column if abs(middle) < ROUNDING else sum_of([Factors(1, ((column, 1),)), Factors(-middle, ())])
        )
        return Factors(rate, ((place, 1),), divided=True).tree
    columns = [term for term in terms_of(argument) if not term.is_number]
    if len(columns) < 2 or not all(is_column(term) and term.is_fitted for term in columns):
        return None
    shift += sum(float(term.coefficient) for term in terms_of(argument) if term.is_number)
    return sum_of([*columns, Factors(shift, ())] if abs(shift) >= ROUNDING else columns)


def _line(argument: Expression) -> tuple[Value, Expression, float] | None:
    """`k*x + p` as (k, x, p); None for anything else, and for `(x - m)/s`."""
    rate: Value = 0
    column, constant = None, 0.0
    for term in terms_of(argument):
        if term.is_number:
            constant += float(term.coefficient)
        elif column is None and is_column(term) and term.is_fitted:
            column, rate = term.items[0][0], term.coefficient
        else:
            return None
    return None if column is None or rate == 0 else (rate, column, constant)


def _from_one(product: Factors, place: int, terms: Sequence[Factors], power: Value) -> Factors | None:
    """`k/sqrt(c - v**2)` as `K/sqrt(1 - v**2/c)`, `k/((x - m)**2 + w)` as `K/(1 + (x - m)**2/w)`."""
    number, other = _number_and_other(terms)
    if number is None or other is None or not number.is_fitted or power == 1:
        return None
    # The number in front takes it in, or there are two numbers inside, one of which goes to the front.
    if not product.is_fitted and not (power < 0 and other.is_fitted):
        return None
    # One power of a column or of a distance: in x**2/(x**2 + K) it is no scale.
    if not is_power(other) or not is_plain(other) or (power == -1 and _shares_column(other, product, place)):
        return None
    return _taken_out(product, place, terms, number.coefficient)


def _from_capacity(product: Factors, place: int, terms: Sequence[Factors], power: Value) -> Factors | None:
    """`N*(r - k*N)` as `r*N*(1 - N/K)`."""
    number, other = _number_and_other(terms)
    if number is None or other is None or power != 1 or not number.is_fitted:
        return None
    if not other.is_fitted and not product.is_fitted:
        return None
    if not number.coefficient > 0 > other.coefficient or not is_plain(other):
        return None
    if not _shares_column(other, product, place):
        return None
    return _taken_out(product, place, terms, number.coefficient)


def _saturation(product: Factors, place: int, terms: Sequence[Factors], power: Value) -> Factors | None:
    """`S/(a + b*S)` as `V*S/(K + S)`, `c*S/(S*(S + a) + b)` as `V*S/(K + S + S**2/I)`.

    The column that stands above the line has no number below it.
    """
    if power != -1:
        return None
    terms = [part for term in terms for part in _multiplied_out(term)]
    for term in terms:
        if term.is_fitted and len(term.items) == 1 and term.items[0] in product.items:
            return _taken_out(product, place, terms, term.coefficient)
    return None


def _monic(product: Factors, place: int, terms: Sequence[Factors], power: Value) -> Factors | None:
    """`a/(b + c*T)` as `A/(B + T)`, `(a*x - b)**2` as `A*(x - m)**2`: one of two fitted numbers goes."""
    number, other = _number_and_other(terms)
    if number is None or other is None or not (number.is_fitted and other.is_fitted):
        return None
    if not power < 0 and not (power > 1 and isinstance(power, int)):
        return None
    if not is_column(other) and not (other.items[0][1] == 1 and is_call(other.items[0][0], "log")):
        return None
    return _taken_out(product, place, terms, other.coefficient) if len(other.items) == 1 else None


def _turned(product: Factors, place: int, terms: Sequence[Factors], power: Value) -> Factors | None:
    """`-a*(1 - exp(u))` as `a*(exp(u) - 1)`."""
    if power != 1 or not product.coefficient < 0 or len(terms) != 2 or is_shift(product.items[place][0]):
        return None
    if not terms[0].coefficient * terms[1].coefficient < 0:
        return None
    inner = sum_of([term.scaled(-1) for term in terms])
    return _with_item(product, place, (inner, power)).scaled(-1)


_Rule: TypeAlias = Callable[[Factors, int, Sequence[Factors], Value], Factors | None]
_RULES: tuple[_Rule, ...] = (_cleared, _logistic, _from_one, _from_capacity, _saturation, _monic, _turned)


# ---- parts ----


def _number_and_other(terms: Sequence[Factors]) -> tuple[Factors | None, Factors | None]:
    """The number and the other term of a sum of two; None for any other sum."""
    numbers = [term for term in terms if term.is_number]
    others = [term for term in terms if not term.is_number]
    return (numbers[0], others[0]) if len(numbers) == len(others) == 1 else (None, None)


def _with_item(product: Factors, place: int, item: Item) -> Factors:
    return replace(product, items=(*product.items[:place], item, *product.items[place + 1 :]))


def _taken_out(product: Factors, place: int, terms: Sequence[Factors], divisor: Value) -> Factors | None:
    """The product with a sum divided by a number, whose power goes to the number in front."""
    power = product.items[place][1]
    if not is_value(power) or (divisor < 0 and not isinstance(power, int)):
        return None
    outside = raised(magnitude(divisor), power)
    if outside is None:
        return None
    sign = -1 if divisor < 0 and power % 2 else 1
    inner = textbook_sum([term.scaled(inverse(divisor)) for term in terms]).tree
    return _with_item(product, place, (inner, power)).scaled(outside).scaled(sign)


def _multiplied_out(term: Factors) -> list[Factors]:
    """`S*(S + a)` as two terms; any other as it is."""
    sums = [item for item in term.items if is_sum(item[0])]
    if len(sums) != 1 or sums[0][1] != 1 or len(term.items) != 2:
        return [term]
    outside = replace(term, items=tuple(item for item in term.items if item != sums[0]))
    return [merged(outside, part) for part in terms_of(sums[0][0])]


def _shares_column(term: Factors, product: Factors, without: int) -> bool:
    """Whether a column of a term stands in another factor of the product."""
    inside = {column for base, _ in term.items for column in variables(base)}
    others = [base for place, (base, _) in enumerate(product.items) if place != without]
    return any(inside & set(variables(base)) for base in others)


def _denominator(base: Expression) -> Expression:
    """`K + S` rather than `S + K` below the line, and higher powers last."""
    terms = terms_of(base) if is_sum(base) else []
    numbers = [term for term in terms if term.is_number]
    if len(numbers) != 1 or not numbers[0].is_fitted or any(term.coefficient < 0 for term in terms):
        return base
    return sum_of([*numbers, *sorted((term for term in terms if not term.is_number), key=is_power)])


def _with_ties(product: Factors) -> Factors:
    """`c2*m/sqrt(1 - v**2/c2)`: a number that is one inside the sums but for rounding becomes the same."""
    size = abs(float(product.coefficient))
    for leaf in (leaf for base, _ in product.items for leaf in _fitted_leaves(base)):
        if isinstance(product.coefficient, float) and abs(leaf - size) <= ROUNDING * size:
            return replace(product, coefficient=math.copysign(leaf, float(product.coefficient)))
    return product


def _fitted_leaves(tree: Expression) -> list[float]:
    if isinstance(tree, Apply):
        return [leaf for part in tree.arguments for leaf in _fitted_leaves(part)]
    return [float(tree.value)] if isinstance(tree, Number) and not tree.exact else []
