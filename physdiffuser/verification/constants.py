"""Fitted constants against exact ones: the exact values that make one formula equal to another."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

import mpmath

from physdiffuser.expressions import PI, Apply, Expression, Number
from physdiffuser.expressions.tree import number_expression, substitute, walk
from physdiffuser.verification.numeric import Range, Undefined, random_point, value_at

Real = Any
Freedom = Literal["none", "offset", "factor"]

_WORKING_DIGITS = 90
_STEPS = 15
# Shares of a Newton step that are tried: far from the end a whole one may lead away.
_SHARES = (1, mpmath.mpf("0.5"), mpmath.mpf("0.125"))
# Residuals relative to the target: below the first the formulas are the same to all digits.
_SAME = mpmath.mpf(10) ** -45
_RANK = mpmath.mpf(10) ** -25
_RECOGNISED = mpmath.mpf(10) ** -38
_MAX_WHOLE = 10**12


@dataclass(frozen=True)
class Polish:
    """Constants moved so that a skeleton meets a formula.

    Attributes
    ----------
    met
        Whether the two agree to all digits at every sample point.
    constants
        The values, mpmath numbers of some 60 digits.
    sizes
        Of the constants where they were.
    extra
        The free offset or factor that was needed (0 or 1 without freedom).
    residual
        Largest relative difference left.
    within
        With the constants where they were: largest difference divided by what moving each constant
        by one part in a billion would make up for.
    """

    met: bool
    constants: tuple[Real, ...]
    sizes: tuple[float, ...]
    extra: Real
    residual: float
    within: float


def polish(
    skeleton: Expression,
    start: Sequence[float],
    formula: Expression,
    ranges: Sequence[Range],
    *,
    freedom: Freedom = "none",
) -> Polish | None:
    """Move the constants of a skeleton, by Newton's method to 60 digits, until it meets a formula.

    Returns None when the two have too few points in common where both are defined.
    """
    with mpmath.workdps(_WORKING_DIGITS):
        constants = [mpmath.mpf(value) for value in start]
        scales = [abs(value) if value else mpmath.mpf(1) for value in constants]
        given, sizes = len(start), tuple(map(float, scales))
        if freedom != "none":
            constants = [*constants, mpmath.mpf(0 if freedom == "offset" else 1)]
            scales = [*scales, mpmath.mpf(1)]
        count = len(constants)
        points = _points(skeleton, constants, formula, ranges, 2 * count + 8)
        if points is None:
            return None

        def residuals(values: Sequence[Real]) -> list[Real]:
            result = []
            for point, target, unit in points:
                value = value_at(skeleton, point, values)[0]
                if freedom == "offset":
                    value += values[-1]
                elif freedom == "factor":
                    value *= values[-1]
                result.append((value - target) / unit)
            return result

        within = mpmath.mpf(0)
        try:
            current = residuals(constants)
            size = max(abs(value) for value in current)
            for number in range(_STEPS):
                if size < _SAME:
                    break
                jacobian = _jacobian(residuals, constants, scales, current)
                if number == 0:
                    within = _within(jacobian, current, len(start))
                # The free offset or factor takes up what it can, so that the constants stay near.
                first = None if freedom == "none" else count - 1
                move = _least_squares(jacobian, [-value for value in current], first)
                for part in _SHARES:
                    trial = [
                        value + part * step * scale
                        for value, step, scale in zip(constants, move, scales, strict=True)
                    ]
                    new = residuals(trial)
                    new_size = max(abs(value) for value in new)
                    if new_size < size:
                        break
                else:
                    break
                constants, current, size = trial, new, new_size
        except (Undefined, ZeroDivisionError):
            return Polish(False, tuple(constants[:given]), sizes, constants[-1], float("inf"), float("inf"))
        extra = mpmath.mpf(1) if freedom == "none" else constants[-1]
        return Polish(bool(size < _SAME), tuple(constants[:given]), sizes, extra, float(size), float(within))


def _points(
    skeleton: Expression, constants: Sequence[Real], formula: Expression, ranges: Sequence[Range], wanted: int
) -> list[tuple[list[Real], Real, Real]] | None:
    rng = random.Random(1)
    points: list[tuple[list[Real], Real, Real]] = []
    for _ in range(20 * wanted):
        point = random_point(ranges, rng)
        try:
            target = value_at(formula, point)[0]
            value_at(skeleton, point, constants)
        except Undefined:
            continue
        points.append((point, target, abs(target) or mpmath.mpf(1)))
        if len(points) == wanted:
            return points
    return None


def _jacobian(
    residuals: Any, constants: list[Real], scales: list[Real], current: list[Real]
) -> list[list[Real]]:
    """Columns: derivative by each constant, relative to its size."""
    shift = mpmath.mpf(10) ** (-_WORKING_DIGITS // 2)
    columns = []
    for index, scale in enumerate(scales):
        moved = list(constants)
        moved[index] += shift * scale
        columns.append([(a - b) / shift for a, b in zip(residuals(moved), current, strict=True)])
    return columns


def _within(jacobian: list[list[Real]], residuals: list[Real], count: int) -> Real:
    worst = mpmath.mpf(0)
    for row, value in enumerate(residuals):
        reach = mpmath.fsum(abs(column[row]) for column in jacobian[:count]) * mpmath.mpf("1e-9")
        if abs(value) > 0:
            worst = max(worst, abs(value) / reach if reach else mpmath.inf)
    return worst


def _least_squares(columns: list[list[Real]], target: list[Real], first: int | None) -> list[Real]:
    """Least squares by Gram-Schmidt with pivoting; constants that others make up for stay put."""
    count = len(columns)
    work = [list(column) for column in columns]
    left = list(target)
    largest = max((mpmath.sqrt(mpmath.fdot(column, column)) for column in work), default=mpmath.mpf(0))
    chosen: list[int] = []
    basis: list[list[Real]] = []
    triangle: list[list[Real]] = []
    weights: list[Real] = []
    remaining = list(range(count))
    while remaining:
        sizes = {index: mpmath.sqrt(mpmath.fdot(work[index], work[index])) for index in remaining}
        pivot = max(remaining, key=lambda index: sizes[index])
        if first in remaining and sizes[first] > _RANK * largest:
            pivot = first
        if sizes[pivot] <= _RANK * largest or largest == 0:
            break
        remaining.remove(pivot)
        unit = [value / sizes[pivot] for value in work[pivot]]
        basis.append(unit)
        chosen.append(pivot)
        triangle.append([mpmath.fdot(unit, columns[index]) for index in range(count)])
        for index in remaining:
            share = mpmath.fdot(unit, work[index])
            work[index] = [value - share * part for value, part in zip(work[index], unit, strict=True)]
        weight = mpmath.fdot(unit, left)
        weights.append(weight)
        left = [value - weight * part for value, part in zip(left, unit, strict=True)]
    solution = [mpmath.mpf(0)] * count
    for row in range(len(chosen) - 1, -1, -1):
        rest = weights[row] - mpmath.fsum(
            triangle[row][chosen[later]] * solution[chosen[later]] for later in range(row + 1, len(chosen))
        )
        solution[chosen[row]] = rest / triangle[row][chosen[row]]
    return solution


def equals(tree: Expression, value: Real) -> bool:
    """Whether a number of 60 digits is the value of a formula without columns."""
    with mpmath.workdps(_WORKING_DIGITS):
        try:
            wanted = value_at(tree, ())[0]
        except Undefined:
            return False
        return bool(abs(wanted - value) <= _RECOGNISED * abs(value))


@lru_cache(maxsize=1024, typed=True)
def recognise(value: Real, size: float = 1e-22) -> Expression | None:
    """The exact form of a number of 60 digits, if it has a simple one.

    `size` is what the number was before it was moved: beside it a number may be 0.

    Tried are exact doubles, whole numbers, whole powers of fractions and of pi under a root up to the fourth,
    the exponentials of fractions, and the logarithms of all these.
    """
    with mpmath.workdps(60):
        if value == 0 or abs(value) < _RECOGNISED * size:
            return Number(0)
        sign = 1 if value > 0 else -1
        size = abs(value)
        # First, for it is the usual case of a constant that stays as it was fitted, and the quickest.
        double = float(value)
        if abs(mpmath.mpf(double) - value) <= _RECOGNISED * size:
            return number_expression(Fraction(double))
        whole = int(mpmath.nint(value)) if size < mpmath.mpf(10) ** 30 else 0
        if whole and abs(whole - value) <= _RECOGNISED * size:
            return Number(whole)
        found = _root(sign, size)
        if found is not None:
            return found
        fraction = _as_fraction(mpmath.log(size))
        if fraction is not None:
            tree: Expression = Apply("exp", (number_expression(fraction),))
            return Apply("neg", (tree,)) if sign < 0 else tree
        # Where the logarithm of the target was fitted: that of 1/sqrt(2*pi) in a normal distribution.
        inner = _root(1, mpmath.exp(value)) if abs(value) < 50 else None
        return None if inner is None else Apply("log", (inner,))


def _root(sign: int, size: Real) -> Expression | None:
    """A positive number as a root of a fraction times a power of pi, with a sign."""
    for degree in (1, 2, 3, 4):
        powered = size**degree
        for turns in sorted(range(-12, 13), key=abs):
            fraction = _as_fraction(powered / mpmath.pi**turns)
            if fraction is not None:
                return _root_of(sign, fraction, turns, degree)
    return None


def _as_fraction(value: Real) -> Fraction | None:
    """The fraction of small whole numbers that a value is to 38 digits, by continued fractions."""
    if not mpmath.mpf(10) ** -12 < abs(value) < _MAX_WHOLE:
        return None
    numerators, denominators = [0, 1], [1, 0]
    rest = value
    for _ in range(40):
        whole = int(mpmath.floor(rest))
        numerators.append(whole * numerators[-1] + numerators[-2])
        denominators.append(whole * denominators[-1] + denominators[-2])
        if denominators[-1] > _MAX_WHOLE or abs(numerators[-1]) > _MAX_WHOLE:
            return None
        if abs(value - mpmath.mpf(numerators[-1]) / denominators[-1]) <= _RECOGNISED * abs(value):
            return Fraction(numerators[-1], denominators[-1])
        rest -= whole
        if rest == 0:
            return None
        rest = 1 / rest
    return None


def _root_of(sign: int, fraction: Fraction, turns: int, degree: int) -> Expression:
    if degree == 1:
        fraction, sign = sign * fraction, 1
    tree: Expression = number_expression(fraction)
    if turns:
        tree = Apply("mul", (tree, Apply("pow", (PI, Number(turns)))))
    if degree > 1:
        tree = Apply("pow", (tree, Number(Fraction(1, degree))))
    return tree if sign > 0 else Apply("neg", (tree,))


def exact_floats(expression: Expression) -> Expression:
    """The same tree with every fitted constant as the fraction that the double is."""

    def replace(node: Expression) -> Expression | None:
        if isinstance(node, Number) and isinstance(node.value, float):
            return number_expression(Fraction(node.value))
        return None

    return substitute(expression, replace)


def has_floats(expression: Expression) -> bool:
    """Whether a fitted constant occurs."""
    return any(isinstance(node, Number) and not node.exact for node in walk(expression))
