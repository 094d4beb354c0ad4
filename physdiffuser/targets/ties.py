"""Constants of several laws that agree within their errors: tied to one value.

The laws are fitted by least squares, so near its minimum the chi-square of each is a quadratic form in the
changes of its constants, with the inverse of their covariance matrix. One value for several constants is
a linear condition; the minimum under it, and how much chi-square it costs, follow in closed form.

References
----------
Constrained least squares: G. A. F. Seber and A. J. Lee, "Linear Regression Analysis" (2003), section 3.8.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.solution import ConstantEstimate, Equation, Solution
from physdiffuser.expressions import Expression, Number
from physdiffuser.expressions.tree import walk
from physdiffuser.targets.parts import named_form, parts_of

# Constants agree whose difference is at most so many of its standard errors.
AGREE = 2.0
# Of constants in a part that both laws have: the relative error of the difference is at most this.
SAME_PART_ERROR = 0.3
# Of others: chance that any two of all pairs agree so closely by coincidence is at most this; an arbitrary
# constant lies anywhere in a decade.
COINCIDENCE = 0.02


@dataclass(frozen=True)
class Place:
    """One constant of one law: the target, the name of the constant, and its position in the covariance."""

    target: str
    name: str
    position: int


@dataclass(frozen=True)
class Tie:
    """Constants with one value.

    Attributes
    ----------
    places
        The constants.
    value, sigma
        Their value, and its standard error.
    chi_square
        By how much the chi-square of all laws of the tie rises together, in units of their noise.
    """

    places: tuple[Place, ...]
    value: float
    sigma: float
    chi_square: float


@dataclass(frozen=True)
class Tied:
    """Constants of one law after tying: all its fitted values, and their covariance matrix."""

    values: FloatArray
    covariance: FloatArray


def find_ties(solutions: Mapping[str, Solution]) -> tuple[tuple[Tie, ...], dict[str, Tied]]:
    """Constants that agree, and what the laws that have them become.

    Constants are compared that were fitted, not set, in laws with a covariance matrix. Two agree if they
    differ by at most two standard errors of the difference, and if that is no coincidence: they stand in
    a part that both laws have, or their errors are so small that chance would hardly bring them together.

    Parameters
    ----------
    solutions
        By target.

    Returns
    -------
    ties
        Each with two constants or more, of different laws.
    tied
        By target, for the laws that have a tied constant.
    """
    laws = {
        target: found.best
        for target, found in solutions.items()
        if found.best is not None and found.best.covariance and found.groups is None
    }
    groups = _groups(_pairs(laws, {target: solutions[target].names for target in laws}))
    while groups:
        tied, ties = _constrained(laws, groups)
        worst = max(ties, key=lambda tie: tie.chi_square / (len(tie.places) - 1))
        if worst.chi_square <= AGREE**2 * (len(worst.places) - 1):
            return ties, tied
        groups.remove(worst.places)
    return (), {}


def _fitted(law: Equation) -> list[tuple[int, ConstantEstimate]]:
    return list(enumerate(one for one in law.constants if not one.is_set))


def _pairs(laws: Mapping[str, Equation], names: Mapping[str, Sequence[str]]) -> Iterator[tuple[Place, Place]]:
    """Constants of two laws that agree and whose agreement is no coincidence."""
    every = [
        (Place(target, one.name, position), one, _forms(law.expression, one.value, names[target]))
        for target, law in laws.items()
        for position, one in _fitted(law)
        if one.sigma
    ]
    compared = [(a, b) for a, b in combinations(every, 2) if a[0].target != b[0].target]
    chance = COINCIDENCE * math.log(10) / (2 * AGREE * max(len(compared), 1))
    for (place, one, forms), (other_place, other, other_forms) in compared:
        error = math.hypot(one.sigma or 0.0, other.sigma or 0.0)
        size = max(abs(one.value), abs(other.value))
        limit = SAME_PART_ERROR if forms & other_forms else chance
        if abs(one.value - other.value) <= AGREE * error and error <= limit * size:
            yield place, other_place


def _forms(expression: Expression, value: float, names: Sequence[str]) -> set[str]:
    """Forms of the parts that hold a constant; the whole law, which is a part, does not count."""
    number = Number(value)
    parts = [part for part in parts_of(expression) if part != expression]
    return {named_form(part, names) for part in parts if number in walk(part)}


def _groups(pairs: Iterator[tuple[Place, Place]]) -> list[tuple[Place, ...]]:
    """Places that are linked by pairs, at most one of each law."""
    groups: list[list[Place]] = []
    for pair in pairs:
        near = [group for group in groups if any(place in group for place in pair)]
        merged = list(dict.fromkeys([*(place for group in near for place in group), *pair]))
        if len({place.target for place in merged}) < len(merged):
            continue
        groups = [group for group in groups if group not in near] + [merged]
    return [tuple(group) for group in groups]


def _constrained(
    laws: Mapping[str, Equation], groups: Sequence[tuple[Place, ...]]
) -> tuple[dict[str, Tied], tuple[Tie, ...]]:
    """The least squares of all laws together under the ties."""
    concerned = [
        target for target in laws if any(place.target == target for group in groups for place in group)
    ]
    starts: dict[str, int] = {}
    values: list[float] = []
    for target in concerned:
        starts[target] = len(values)
        values += [one.value for _, one in _fitted(laws[target])]
    covariance = np.zeros((len(values), len(values)))
    for target in concerned:
        block = np.asarray(laws[target].covariance)
        at = slice(starts[target], starts[target] + len(block))
        covariance[at, at] = block
    where = [[starts[place.target] + place.position for place in group] for group in groups]
    rows = [(group[0], other) for group in where for other in group[1:]]
    condition = np.zeros((len(rows), len(values)))
    for number, (first, other) in enumerate(rows):
        condition[number, first], condition[number, other] = 1.0, -1.0
    free = np.asarray(values)
    spread = condition @ covariance @ condition.T
    gain = np.linalg.solve(spread, condition @ covariance).T
    bound = free - gain @ (condition @ free)
    remaining = covariance - gain @ condition @ covariance
    tied = {}
    for target in concerned:
        at = slice(starts[target], starts[target] + len(_fitted(laws[target])))
        tied[target] = Tied(bound[at], remaining[at, at])
    ties = tuple(
        Tie(
            group,
            float(bound[places[0]]),
            float(np.sqrt(max(remaining[places[0], places[0]], 0.0))),
            _cost(free, covariance, places),
        )
        for group, places in zip(groups, where, strict=True)
    )
    return tied, ties


def _cost(free: FloatArray, covariance: FloatArray, places: Sequence[int]) -> float:
    """By how much one tie alone raises chi-square."""
    condition = np.zeros((len(places) - 1, len(free)))
    for number, place in enumerate(places[1:]):
        condition[number, places[0]], condition[number, place] = 1.0, -1.0
    apart = condition @ free
    return float(apart @ np.linalg.solve(condition @ covariance @ condition.T, apart))
