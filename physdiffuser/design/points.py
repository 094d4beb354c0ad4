"""Points at which a table could be measured next: the ranges of its columns, filled."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from physdiffuser.arrays import FloatArray

Range = tuple[float, float]

# Levels of one column, and of each of two; more columns are filled at random.
ONE_COLUMN, TWO_COLUMNS = 201, 41
RANDOM_POINTS = 3000
# Columns of which all combinations of ends are points.
MAX_CORNERS = 8
# Quotient of the ends from which a column is filled evenly in its logarithm.
DECADES = 100.0


def column_ranges(inputs: FloatArray, wider: Mapping[int, Range]) -> list[Range]:
    """The range of each column, or the one given for it."""
    return [
        wider.get(column, (float(values.min()), float(values.max())))
        for column, values in enumerate(inputs.T)
    ]


def candidate_points(inputs: FloatArray, ranges: Sequence[Range], used: Sequence[int]) -> FloatArray:
    """Points within ranges, written with three digits of the range.

    Parameters
    ----------
    inputs
        Shape (rows, columns): what was measured. Columns that are not used keep their median; one that has
        only whole numbers gets whole numbers.
    used
        Columns that are varied.

    Returns
    -------
    Shape (points, columns), no two alike.
    """
    middle = np.median(inputs, axis=0)
    if not used:
        return middle[None]
    unit = _filled(len(used))
    points = np.tile(middle, (len(unit), 1))
    for share, column in zip(unit.T, used, strict=True):
        points[:, column] = _scaled(share, ranges[column], bool((inputs[:, column] % 1 == 0).all()))
    return np.unique(points, axis=0)


def as_shares(inputs: FloatArray, ranges: Sequence[Range], used: Sequence[int]) -> FloatArray:
    """Where rows lie in the ranges of the varied columns: 0 to 1, logarithmic over decades.

    Parameters
    ----------
    inputs
        Shape (rows, columns).

    Returns
    -------
    Shape (rows, varied columns); beyond 0 and 1 for rows outside of the ranges.
    """
    shares = np.zeros((len(inputs), len(used)))
    for place, column in enumerate(used):
        low, high = ranges[column]
        values = inputs[:, column]
        if low > 0 and high >= DECADES * low:
            # Beyond the lower end there may be values that have no logarithm.
            values = np.log(np.maximum(values, low / DECADES))
            low, high = np.log(low), np.log(high)
        shares[:, place] = (values - low) / ((high - low) or 1.0)
    return shares


def _filled(columns: int) -> FloatArray:
    """Points of the unit cube, shape (points, columns), its corners among them."""
    if columns <= 2:
        levels = np.linspace(0.0, 1.0, ONE_COLUMN if columns == 1 else TWO_COLUMNS)
        return np.array(list(itertools.product(levels, repeat=columns)))
    random = np.random.default_rng(0).random((RANDOM_POINTS, columns))
    # A third of the points lies on the faces, where laws differ most.
    faces = random[: RANDOM_POINTS // 3]
    faces[:] = np.where(faces < 1 / 3, 0.0, np.where(faces > 2 / 3, 1.0, 3 * faces - 1))
    corners = np.array(list(itertools.product((0.0, 1.0), repeat=min(columns, MAX_CORNERS))))
    rest = np.full((len(corners), columns - corners.shape[1]), 0.5)
    return np.concatenate([random, np.hstack([corners, rest])])


def _scaled(share: FloatArray, ends: Range, whole: bool) -> FloatArray:
    low, high = ends
    if low > 0 and high >= DECADES * low:
        values = low * (high / low) ** share
        steps = 10.0 ** (np.floor(np.log10(values)) - 2)
    else:
        values = low + (high - low) * share
        steps = np.full(len(share), 10.0 ** (np.floor(np.log10((high - low) or 1.0)) - 2))
    if whole and high - low >= 2:
        steps = np.maximum(steps, 1.0)
    inverse = np.round(1 / steps)
    # Divided by a whole power of ten, so that 0.3 is written 0.3.
    fine, coarse = np.round(values * inverse) / np.maximum(inverse, 1.0), np.round(values / steps) * steps
    rounded = np.where(steps < 1, fine, coarse)
    return np.asarray(np.clip(rounded, low, high), float)
