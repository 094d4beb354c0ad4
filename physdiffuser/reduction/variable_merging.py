"""Columns that act only as a difference, a sum, or these of their squares, in tables of many columns.

A drop in pressure, a difference in temperature or height: the law depends on two columns through one number.
If so, a polynomial in that number and the other columns follows the rows at least as well as one in all
columns, for it has one variable less; merging any other pair loses information. `data_collapse` finds the
same from neighbouring rows, with any function instead of a polynomial, but in many columns no rows are
neighbours.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from physdiffuser.core.problem import Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.reduction.merges import (
    DIFFERENCE,
    DIFFERENCE_OF_SQUARES,
    SUM,
    SUM_OF_SQUARES,
)
from physdiffuser.reduction.trend import divided, trend


@dataclass(frozen=True)
class MergingPolicy:
    """When two columns are merged.

    Set on development laws (docs/methods/reduction.md).
    """

    min_features: int = 4
    max_features: int = 12
    """Reductions of fewer features are left to `data_collapse`, and of more than these pairs are too many."""
    as_good: float = 1.0
    alone: float = 1.15
    alike: float = 1.05
    """A polynomial may leave so much of what it left before, and must leave so many times less than with any
    other pair merged. Of ways to merge one pair that are as good as this the simplest is taken."""
    predicts: float = 0.2
    """Where a polynomial leaves more of the variance than this, it says nothing about the law."""
    seconds: float = 1.5e-3
    """Nominal seconds to judge one merge."""


POLICY = MergingPolicy()

# From simple to complex.
_MERGES = (DIFFERENCE, SUM, DIFFERENCE_OF_SQUARES, SUM_OF_SQUARES)
_EXPONENTS = tuple(Fraction(n, 2) for n in (2, 1, -1, -2, 4, -4))


def merged(problem: Problem, reduction: Reduction) -> Generator[float, None, list[Reduction]]:
    """The reduction with pairs of features merged into one, one pair after the other, the last first.

    Yields nominal seconds of work.
    """
    found: list[Reduction] = []
    error = _error(problem, reduction)
    while POLICY.min_features <= len(reduction.features) <= POLICY.max_features and error < POLICY.predicts:
        tried: list[tuple[float, Reduction]] = []
        for first, second in combinations(range(len(reduction.features)), 2):
            ways = [(_error(problem, made), made) for made in _merges(problem, reduction, first, second)]
            yield POLICY.seconds * len(ways)
            if ways:
                least = min(error for error, _ in ways)
                # The simplest comes first.
                tried.append(next(way for way in ways if way[0] <= POLICY.alike * least))
        tried.sort(key=lambda item: item[0])
        if not tried or tried[0][0] > POLICY.as_good * error:
            break
        if len(tried) > 1 and tried[1][0] < POLICY.alone * tried[0][0]:
            break
        error, reduction = tried[0]
        found.insert(0, reduction)
        powers = [(_error(problem, made), made) for made in _taken_out(reduction)]
        yield POLICY.seconds * len(powers)
        least, taken = min(powers, key=lambda item: item[0])
        if least <= POLICY.alike * error:
            error, reduction = least, taken
            found[0] = reduction
    return found


def _taken_out(reduction: Reduction) -> list[Reduction]:
    """The reduction with a power of its first feature as a factor of the target."""
    first, *rest = reduction.features
    return [Reduction.of((*reduction.factors, (first, exponent)), tuple(rest)) for exponent in _EXPONENTS]


def _merges(problem: Problem, reduction: Reduction, first: int, second: int) -> list[Reduction]:
    features = reduction.features
    rest = tuple(feature for place, feature in enumerate(features) if place not in (first, second))
    return [
        Reduction(reduction.factors, (merge.build(features[first], features[second]), *rest))
        for merge in _MERGES
        if merge.needs <= problem.operators
    ]


def _error(problem: Problem, reduction: Reduction) -> float:
    some = divided(problem, reduction)
    return float("inf") if some is None else trend(*some)[1]
