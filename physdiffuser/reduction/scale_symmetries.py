"""Scale symmetries, read off logarithmic slopes.

If `y = k1/(k2 - k1)*(exp(-k1*t) - exp(-k2*t))`, then y stays as it is when k1 and k2 grow by a factor and t
falls by it. In general y grows by a power of the factor, and

    d1*s1 + d2*s2 + ... = c    with    sj = d log y / d log xj

on every row: the slopes do not vary in the direction d.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np

from physdiffuser.arrays import FloatArray, IndexArray
from physdiffuser.reduction.trend import image_of


@dataclass(frozen=True)
class ScaleSymmetryPolicy:
    """Which scale symmetries are tried.

    Set on development laws (docs/methods/reduction.md).
    """

    max_features: int = 6
    max_together: int = 5
    proposed: int = 8
    """Features among which symmetries are looked for, columns in one symmetry, and symmetries of a reduction
    that are tried."""
    pivots: int = 2
    """Columns that may go, for each symmetry."""
    usual_exponents: int = 7
    few_features: int = 5
    """How many of the exponents are tried, and how many features are few enough for all of them."""
    left: float = 0.15
    comparable: float = 6.0
    nothing: float = 1e-3
    """Variance of the slopes left in the direction, relative to what independent slopes would have; and
    relative to the best direction, where that leaves more than `nothing`."""
    length: float = 0.1
    """A long symmetry has to be better by so much for each unit of length."""
    constant: float = 0.05
    """Slopes that vary so little beside others, in variance, are as good as constant."""
    third: float = 0.03
    """A third is believed only this near."""
    trimmed: float = 0.05
    """Share of the outermost slopes that is left out: the polynomial is at its worst there."""


POLICY = ScaleSymmetryPolicy()

# Exponents of a column, against the one that goes; the last ones where there are few columns.
_EXPONENTS = (0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 1.5, -1.5, 3.0, -3.0)


@dataclass(frozen=True)
class Scaling:
    """A scale symmetry, with the feature that goes.

    Attributes
    ----------
    pivot
        The feature.
    exponents
        Power of it that multiplies each other feature, by position; 0 where they stay as they are.
    factor
        Power of it to divide the target by.
    line
        A key that the same symmetry has whichever feature goes.
    length
        Of what has to be written for it.
    """

    pivot: int
    exponents: tuple[Fraction, ...]
    factor: Fraction
    line: bytes
    length: float


@cache
def _directions(columns: int) -> tuple[FloatArray, IndexArray]:
    """Directions to try, (directions, columns), with -1 for the column that goes; and which one that is."""
    found: list[tuple[float, ...]] = []
    pivots: list[int] = []
    exponents = _EXPONENTS if columns <= POLICY.few_features else _EXPONENTS[: POLICY.usual_exponents]
    for pivot in range(columns):
        for others in product(exponents, repeat=columns - 1):
            if sum(exponent != 0.0 for exponent in others) < POLICY.max_together:
                found.append((*others[:pivot], -1.0, *others[pivot:]))
                pivots.append(pivot)
    return np.array(found), np.array(pivots)


def scalings(values: FloatArray, target: FloatArray, slopes: FloatArray) -> list[Scaling]:
    """The symmetries that slopes suggest, the likeliest first.

    Parameters
    ----------
    values
        Shape (features, rows).
    target
        Shape (rows,).
    slopes
        Of the target's logarithm, or of itself where it changes sign, along the logarithms of the features,
        (rows, features).
    """
    places = np.flatnonzero((values > 0).all(axis=1))
    if not 2 <= len(places) <= POLICY.max_features:
        return []
    slopes = slopes[:, places]
    # Where the target changes sign: sum of dj*dy/d(log xj) = c*y.
    ones = np.ones_like(target) if image_of(target)[1] else target
    size = np.abs(slopes - np.median(slopes, axis=0)).max(axis=1)
    kept = size <= np.quantile(size, 1.0 - POLICY.trimmed)
    slopes, ones = slopes[kept], ones[kept]
    along = (slopes * ones[:, None]).sum(axis=0) / np.square(ones).sum()
    rest = slopes - ones[:, None] * along
    spread = rest.T @ rest / len(rest)
    own = np.diag(spread)
    directions, pivots = _directions(len(places))
    # A slope that hardly varies is a power, or a column that does not matter: it must be able to go alone.
    usual = own + POLICY.constant * own.max() + 1e-300
    left = np.einsum("ij,jk,ik->i", directions, spread, directions) / (np.square(directions) @ usual)
    lengths = np.abs(directions).sum(axis=1) + 2 * (directions % 1 != 0).sum(axis=1)
    enough = min(POLICY.left, POLICY.comparable * float(left.min()) + POLICY.nothing)
    found: list[Scaling] = []
    lines: dict[bytes, int] = {}
    for best in np.argsort(np.maximum(left, POLICY.nothing) * (1.0 + POLICY.length * lengths), kind="stable"):
        if len(found) == POLICY.proposed or left[best] > 2.0 * POLICY.left:
            break
        if left[best] > enough:
            continue
        direction, pivot = directions[best], int(pivots[best])
        line = np.round(direction / direction[np.flatnonzero(direction)[0]], 6).tobytes()
        lines[line] = lines.get(line, 0) + 1
        if lines[line] > POLICY.pivots:
            continue
        exponents = [Fraction(0)] * len(values)
        for place, exponent in zip(places, direction, strict=True):
            exponents[int(place)] = Fraction(float(exponent))
        exponents[int(places[pivot])] = Fraction(0)
        factor = _simple(-float(direction @ along))
        found.append(Scaling(int(places[pivot]), tuple(exponents), factor, line, float(lengths[best])))
    return found


def _simple(value: float) -> Fraction:
    """The nearest half, or a third that is much nearer."""
    half, third = Fraction(round(2 * value), 2), Fraction(round(3 * value), 3)
    return third if abs(value - third) < min(POLICY.third, 0.3 * abs(value - half)) else half
