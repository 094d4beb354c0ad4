"""Dimensionless groups: what is left of a law once its units are taken out.

Buckingham's theorem (Phys. Rev. 4, 345, 1914): a law between n columns whose units span r dimensions is a
monomial with the target's unit times a function of n - r dimensionless products of the columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from physdiffuser.units.unit import Unit

MAX_COLUMNS = 14
"""Above it the smallest groups are not looked for among all choices of columns."""


@dataclass(frozen=True)
class DimensionlessGroups:
    """`target = prefactor * F(group 1, group 2, ...)`.

    Attributes
    ----------
    groups
        Exponents of the columns in each group: whole numbers without a common factor, small ones first.
    prefactor
        Exponents of the columns in a monomial with the target's unit; None when there is none, and only
        a constant with a unit can make the law balance.
    """

    groups: tuple[tuple[int, ...], ...]
    prefactor: tuple[Fraction, ...] | None


def dimensionless_groups(units: Sequence[Unit], target: Unit) -> DimensionlessGroups:
    """Groups with the smallest exponents, and the simplest prefactor.

    Every minimal product of columns that is dimensionless is looked at (there is one for each choice of
    columns whose units depend on each other and would not with one fewer), and independent ones are
    taken from small to large.

    Parameters
    ----------
    units
        One per column.
    """
    base = sorted({symbol for unit in (*units, target) for symbol, _ in unit.exponents})
    vectors = [tuple(unit.exponent(symbol) for symbol in base) for unit in units]
    goal = tuple(target.exponent(symbol) for symbol in base)
    rank = _rank(vectors)
    needed = len(units) - rank

    circuits = _circuits(vectors, rank)
    chosen: list[tuple[int, ...]] = []
    for group in sorted(circuits, key=_size):
        if len(chosen) == needed:
            break
        if _rank([*map(_fractions, chosen), _fractions(group)]) > len(chosen):
            chosen.append(group)
    prefactor = _prefactor(vectors, goal, rank)
    return DimensionlessGroups(tuple(chosen), prefactor)


def _fractions(group: Sequence[int]) -> tuple[Fraction, ...]:
    return tuple(Fraction(value) for value in group)


def _size(exponents: Iterable[int | Fraction]) -> tuple[float, int, int, tuple[float, ...]]:
    every = [Fraction(exponent) for exponent in exponents]
    used = [exponent for exponent in every if exponent]
    roots = sum(exponent.denominator > 1 for exponent in used)
    total = float(sum(abs(exponent) for exponent in used))
    return (total + roots, len(used), roots, tuple(-float(exponent) for exponent in every))


def _circuits(vectors: Sequence[tuple[Fraction, ...]], rank: int) -> set[tuple[int, ...]]:
    """Minimal dimensionless products, each with the sign that makes its first exponent positive."""
    count = len(vectors)
    found: set[tuple[int, ...]] = set()
    supports: list[frozenset[int]] = []
    if count > MAX_COLUMNS:
        return {_whole(vector) for vector in _null_space(vectors)}
    for size in range(1, rank + 2):
        for subset in combinations(range(count), size):
            if any(support <= set(subset) for support in supports):
                continue
            null = _null_space([vectors[index] for index in subset])
            if len(null) != 1 or 0 in null[0]:
                continue
            full = [Fraction(0)] * count
            for index, value in zip(subset, null[0], strict=True):
                full[index] = value
            found.add(_whole(full))
            supports.append(frozenset(subset))
    return found


def _prefactor(
    vectors: Sequence[tuple[Fraction, ...]], goal: tuple[Fraction, ...], rank: int
) -> tuple[Fraction, ...] | None:
    """The monomial with the goal's unit that has the smallest exponents; None if there is none."""
    count = len(vectors)
    if not any(goal):
        return (Fraction(0),) * count
    best: tuple[Fraction, ...] | None = None
    if count > MAX_COLUMNS:
        null = [vector for vector in _null_space([*vectors, goal]) if vector[-1]]
        return tuple(-value / null[0][-1] for value in null[0][:-1]) if null else None
    for size in range(1, rank + 1):
        for subset in combinations(range(count), size):
            null = _null_space([*(vectors[index] for index in subset), goal])
            if len(null) != 1 or not null[0][-1]:
                continue
            full = [Fraction(0)] * count
            for index, value in zip(subset, null[0][:-1], strict=True):
                full[index] = -value / null[0][-1]
            if best is None or _size(full) < _size(best):
                best = tuple(full)
    return best


def _whole(vector: Sequence[Fraction]) -> tuple[int, ...]:
    multiple = math.lcm(*(value.denominator for value in vector))
    numbers = [int(value * multiple) for value in vector]
    divisor = math.gcd(*numbers)
    sign = 1 if next(number for number in numbers if number) > 0 else -1
    return tuple(sign * number // divisor for number in numbers)


def _rank(vectors: Sequence[tuple[Fraction, ...]]) -> int:
    return len(vectors) - len(_null_space(vectors))


def _null_space(vectors: Sequence[tuple[Fraction, ...]]) -> list[tuple[Fraction, ...]]:
    """Weights w with sum(w_i * vector_i) = 0: a basis, by exact Gauss-Jordan elimination."""
    count = len(vectors)
    rows = [list(row) for row in zip(*vectors, strict=True)]
    pivots: list[int] = []
    for column in range(count):
        at = len(pivots)
        pivot = next((index for index in range(at, len(rows)) if rows[index][column]), None)
        if pivot is None:
            continue
        rows[at], rows[pivot] = rows[pivot], rows[at]
        lead = rows[at][column]
        rows[at] = [value / lead for value in rows[at]]
        for index, row in enumerate(rows):
            if index != at and row[column]:
                factor = row[column]
                rows[index] = [value - factor * top for value, top in zip(row, rows[at], strict=True)]
        pivots.append(column)
    basis = []
    for column in range(count):
        if column in pivots:
            continue
        vector = [Fraction(0)] * count
        vector[column] = Fraction(1)
        for row, pivot in zip(rows, pivots, strict=False):
            vector[pivot] = -row[column]
        basis.append(tuple(vector))
    return basis
