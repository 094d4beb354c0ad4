"""Sums as a textbook writes them: waves with a phase, no number spread over several terms, usual order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from physdiffuser.expressions.simplification.exact import magnitude
from physdiffuser.expressions.simplification.factors import (
    ROUNDING,
    Factors,
    factors_of,
    is_value,
    merged,
    raised,
    sum_of,
    terms_of,
)
from physdiffuser.expressions.simplification.quotients import Item
from physdiffuser.expressions.tree import Apply, Expression, Number, Variable


def textbook_sum(terms: Sequence[Factors]) -> Factors:
    """Write a sum: as one product, often with the sum as its only factor.

    Parameters
    ----------
    terms
        Products that have been written before.
    """
    terms = _with_common_numbers(_with_phases(_with_one_number(terms)))
    return terms[0] if len(terms) == 1 else Factors(1, ((sum_of(_ordered(_divided(terms))), 1),))


def _with_one_number(terms: Sequence[Factors]) -> Sequence[Factors]:
    """Numbers added up, first or last in the sum."""
    numbers = [term for term in terms if term.is_number]
    if len(numbers) < 2 or len(numbers) == len(terms):
        return terms
    total = Factors(sum((term.coefficient for term in numbers[1:]), numbers[0].coefficient), ())
    others = [term for term in terms if not term.is_number]
    if total.coefficient == 0:
        return others
    return [total, *others] if terms[0].is_number else [*others, total]


# ---- waves ----


def _with_phases(terms: Sequence[Factors]) -> Sequence[Factors]:
    """`a*cos(u) + b*sin(u)` as one wave with a phase."""
    for first, one in enumerate(terms):
        for second, other in enumerate(terms):
            cosine, sine = _wave(one, "cos"), _wave(other, "sin")
            if cosine is None or cosine != sine or not (one.is_fitted and other.is_fitted):
                continue
            left = [term for place, term in enumerate(terms) if place not in (first, second)]
            return [_one_wave(float(one.coefficient), float(other.coefficient), *cosine), *left]
    return terms


def _one_wave(a: float, b: float, angle: Expression, rest: tuple[Item, ...]) -> Factors:
    """`a*cos(u) + b*sin(u)`."""
    return _of_small_phase(math.hypot(a, b), terms_of(angle), math.atan2(-b, a), rest)


def _of_small_phase(size: float, angle: Sequence[Factors], phase: float, rest: tuple[Item, ...]) -> Factors:
    """`size*cos(u + phase)`, as the sine or cosine of the smaller phase."""
    ways = [(*_small_phase(size, phase), "cos"), (*_small_phase(size, phase + math.pi / 2), "sin")]
    size, phase, name = min(ways, key=lambda way: abs(way[1]))
    shifted = sum_of([*angle, Factors(phase, ())] if abs(phase) > ROUNDING else angle)
    return Factors(size, (*rest, (Apply(name, (shifted,)), 1)))


def with_small_phase(product: Factors) -> Factors:
    """`A*cos(w*t + p)` for `-A*sin(w*t + p - pi/2)`: the wave with the smaller fitted phase."""
    for item in product.items:
        tree, power = item
        if not isinstance(tree, Apply) or not is_call(tree, "sin", "cos") or power != 1:
            continue
        terms = terms_of(tree.arguments[0])
        numbers = [term for term in terms if term.is_number and term.is_fitted]
        if len(numbers) != 1 or len(terms) == 1 or not product.is_fitted:
            continue
        phase = float(numbers[0].coefficient)
        if abs(phase) <= math.pi / 4:
            continue
        angle = [term for term in terms if not term.is_number]
        rest = tuple(one for one in product.items if one is not item)
        as_cosine = phase if tree.operator == "cos" else phase - math.pi / 2
        return _of_small_phase(float(product.coefficient), angle, as_cosine, rest)
    return product


def _small_phase(size: float, phase: float) -> tuple[float, float]:
    """Amplitude and phase of the same wave, the phase within a quarter of a period."""
    turns = round(phase / math.pi)
    return (size if turns % 2 == 0 else -size), phase - turns * math.pi


def _wave(term: Factors, name: str) -> tuple[Expression, tuple[Item, ...]] | None:
    """The angle of the only sine or cosine of a term, and what else stands in it."""
    found = [(tree, power) for tree, power in term.items if is_call(tree, "sin", "cos")]
    if len(found) != 1 or found[0][1] != 1 or not is_call(found[0][0], name):
        return None
    tree = found[0][0]
    assert isinstance(tree, Apply)
    return tree.arguments[0], tuple(item for item in term.items if item != found[0])


# ---- common numbers ----


def _with_common_numbers(terms: Sequence[Factors]) -> Sequence[Factors]:
    """A fitted number that stands before several terms stands before their sum."""
    for term in terms:
        size = abs(float(term.coefficient))
        same = [
            one
            for one in terms
            if one.is_fitted and abs(abs(float(one.coefficient)) - size) <= ROUNDING * size
        ]
        if not term.is_fitted or len(same) < 2:
            continue
        signs = [replace(one, coefficient=1 if one.coefficient > 0 else -1) for one in same]
        inner = _ordered(_with_joined_logarithms(signs))
        leading = 1 if any(one.coefficient > 0 for one in inner) else -1
        inner = [one.scaled(leading) for one in inner]
        gathered = inner[0] if len(inner) == 1 else Factors(1, ((sum_of(inner), 1),))
        rest = [one for one in terms if one not in same]
        return _with_common_numbers([*rest, gathered.scaled(leading * size)])
    return terms


def _with_joined_logarithms(terms: Sequence[Factors]) -> Sequence[Factors]:
    """`log(a) - log(b)` as `log(a/b)`, where nothing else is in the sum."""
    product = Factors(1, ())
    for term in terms:
        tree, power = term.items[0] if len(term.items) == 1 else (Number(1), 0)
        if not isinstance(tree, Apply) or tree.operator != "log" or power != 1:
            return terms
        if term.coefficient not in (1, -1):
            return terms
        inside = factors_of(tree.arguments[0])
        if raised(magnitude(inside.coefficient), -1) is None:
            return terms
        product = merged(product, inside, 1 if term.coefficient > 0 else -1)
    if all(term.coefficient < 0 for term in terms):
        return terms
    return [Factors(1, ((Apply("log", (product.tree,)), 1),))]


# ---- scales and order ----


def _divided(terms: Sequence[Factors]) -> list[Factors]:
    """`1 - v**2/c2`: beside a number 1 fitted factors of powers, and of what is taken off, are divisors."""
    unit = [term for term in terms if term.coefficient in (1, -1) and (term.is_number or is_column(term))]
    if len(unit) != 1 or not (unit[0].is_number or len(terms) > 2):
        return list(terms)

    def is_scaled(term: Factors) -> bool:
        usual = is_power(term) or (unit[0].is_number and term.coefficient < 0)
        return term.is_fitted and not term.is_number and usual and is_plain(term)

    return [replace(term, divided=True) if is_scaled(term) else term for term in terms]


def _ordered(terms: Sequence[Factors]) -> list[Factors]:
    """A positive number before functions and quotients, `T + D*exp(-k*t)`, and a number 1 before all.

    A polynomial in one column begins with its lowest power, or with its highest if only that is positive.
    """
    powers = [_degree(term) for term in terms]
    if len(terms) > 2 and None not in powers and len({term.items[0][0] for term in terms if term.items}) == 1:
        ascending = sorted(terms, key=lambda term: _degree(term) or 0)
        if ascending[0].coefficient > 0:
            return ascending
        if ascending[-1].coefficient > 0:
            return ascending[::-1]
    numbers = [term for term in terms if term.is_number]
    others = [term for term in terms if not term.is_number]
    if len(numbers) != 1 or not others:
        return list(terms)
    polynomial = all(
        isinstance(base, Variable) and isinstance(power, int) and power > 0
        for term in others
        for base, power in term.items
    )
    leads = numbers[0].coefficient > 0 and (not polynomial or numbers[0].coefficient == 1)
    return [*numbers, *others] if leads else list(terms)


def _degree(term: Factors) -> int | None:
    """The power of a column in a term of a polynomial in one column; None in any other term."""
    match term.items:
        case ():
            return 0
        case ((Variable(), int() as power),) if power > 0:
            return power
    return None


def is_call(tree: Expression, *names: str) -> bool:
    """Whether a tree is one of some functions."""
    return isinstance(tree, Apply) and tree.operator in names


def is_sum(tree: Expression) -> bool:
    """Whether a tree is a sum or a difference."""
    return is_call(tree, "add", "sub")


def is_column(term: Factors) -> bool:
    """Whether a term is a column, times a number."""
    return len(term.items) == 1 and isinstance(term.items[0][0], Variable) and term.items[0][1] == 1


def is_power(term: Factors) -> bool:
    """Whether a term has a factor with a power above 1."""
    return any(is_value(power) and power > 1 for _, power in term.items)


def is_plain(term: Factors) -> bool:
    """Whether a term is a product of columns and distances from a place, with nothing below the line."""
    return all(
        is_value(power) and power > 0 and (isinstance(base, Variable) or is_shift(base))
        for base, power in term.items
    )


def is_shift(tree: Expression) -> bool:
    """Whether a tree is a column less or plus a number."""
    return is_sum(tree) and {type(part) for part in getattr(tree, "arguments", ())} == {Variable, Number}
