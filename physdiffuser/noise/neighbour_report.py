"""Noise and outliers of a table before any law is known.

Each row is predicted from its neighbours (`physdiffuser.noise.local_regression`), in logarithms where the
numbers allow it. The errors of these predictions show whether errors are proportional to the value, and which
rows are far off. The predictions need many rows, or a target that is nearly a power law of the columns;
otherwise nothing is reported.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from physdiffuser.arrays import BoolArray, FloatArray, IndexArray
from physdiffuser.noise.local_regression import (
    coordinates,
    local_predictions,
    neighbour_count,
    neighbours,
    spread_out,
    usual_error,
)

# Logarithm of half of the largest double.
MAX_LOGARITHM = float(np.log(np.finfo(np.float64).max / 2))


@dataclass(frozen=True)
class NeighbourPolicy:
    """When predictions from neighbours are believed. Chosen on development tables; see docs/search.md."""

    max_rows: int = 10_000
    min_rows: int = 8
    max_columns: int = 6
    """Tables that are judged: neighbours are close in few columns, and wrong weights do harm in few rows."""
    weighted_rows: int = 300
    weighted_columns: int = 3
    """Weights are proposed for smaller tables only, which a person wrote down and can check."""
    span: float = 6.0
    max_span: float = 1e12
    """Weights matter if the target spans the first ratio, and at most the second: the tail of a peak over
    more decades would dominate the fit."""
    decisive: float = 3.0
    """Log-likelihood by which proportional errors must be the better description."""
    unexplained: float = 0.6
    weighted_unexplained: float = 0.3
    """Usual errors of the predictions as a share of the spread of the target: neighbours must explain
    something for a row to be off, and much for the way errors depend on the value."""
    same_side: float = 0.6
    """Noise lies on either side of the law: at most this share of neighbours may have errors of one sign."""
    no_noise: float = 1e-6
    """Smaller relative errors are not noise."""
    far: float = 8.0
    far_share: float = 0.3
    """A row is off when its error is this many times the usual one, and larger than this share of the
    value."""
    min_similar: int = 20
    blocks: int = 20
    """The usual error of a row is also that of the rows with similar predictions, at least so many, in at
    most so many blocks."""
    max_off: float = 0.16
    max_together: float = 0.6
    """Largest share of rows that may be off, and of those that may be neighbours of one another: more are a
    feature of the law."""
    small: float = 0.5
    """Rows of the other sign are not misprints where their usual size is below this share of the usual
    value."""
    round_share: float = 0.5
    """In each round the rows are left out whose error is at least this share of the largest."""
    matters: float = 4.0
    """Outliers are reported if they have this many times the squared error of all other rows."""
    references: int = 1_000
    """Neighbours are searched among so many rows."""


POLICY = NeighbourPolicy()


@dataclass(frozen=True)
class NoiseReport:
    """What the neighbours of each row show about its error.

    Attributes
    ----------
    weights
        Shape (rows,), 1/value**2 with mean 1, where errors are proportional to the value; else None.
    outliers
        Numbers of the rows that lie far from the values predicted from their neighbours.
    """

    weights: FloatArray | None
    outliers: tuple[int, ...]


NOTHING = NoiseReport(None, ())


def judge_by_neighbours(inputs: FloatArray, target: FloatArray) -> NoiseReport:
    """Judge the errors of a table.

    Parameters
    ----------
    inputs
        Shape (rows, columns).
    target
        Shape (rows,).
    """
    rows, columns = inputs.shape
    if not POLICY.min_rows <= rows <= POLICY.max_rows or not 1 <= columns <= POLICY.max_columns:
        return NOTHING
    choices = [
        (_unexplained(image, unit), number, image, unit)
        for number, (image, unit) in enumerate(product(_images(target), coordinates(inputs)))
    ]
    _, _, image, unit = min(choices, key=lambda choice: choice[:2])
    if rows > POLICY.references:
        # If a thousand rows have no outlier, the others are not examined.
        some = spread_out(np.arange(rows), POLICY.references)
        first = _without_outliers(image.at(some), unit[some])
        if first is None or first.kept.all():
            return NOTHING
    found = _without_outliers(image, unit)
    if found is None or found.unexplained > POLICY.unexplained:
        return NOTHING
    weights = None
    few = rows <= POLICY.weighted_rows and columns <= POLICY.weighted_columns
    if (
        few
        and image.logarithmic
        and found.usual > POLICY.no_noise
        and found.unexplained < POLICY.weighted_unexplained
    ):
        weights = None if _systematic(unit, found) else _weights(found)
    off = np.flatnonzero(~found.kept)
    error = target - image.back(found.predicted)
    # In units of the largest: the square of 1e200 overflows.
    square = np.square(error / (np.abs(error).max() or 1.0)) * (1.0 if weights is None else weights)
    if len(off) and (
        square[off].sum() < POLICY.matters * square[found.kept].sum() or _are_neighbours(unit, found.kept)
    ):
        return NoiseReport(weights, ())
    return NoiseReport(weights, tuple(int(row) for row in off))


@dataclass(frozen=True)
class _Image:
    """The target or its logarithm.

    Attributes
    ----------
    sign
        Of the target, where the logarithm is taken; 0 for the target as it is.
    values, possible
        The numbers, and the rows that have the sign.
    """

    sign: int
    values: FloatArray
    possible: BoolArray

    @property
    def logarithmic(self) -> bool:
        return self.sign != 0

    def at(self, rows: IndexArray) -> _Image:
        """The image of some rows."""
        return _Image(self.sign, self.values[rows], self.possible[rows])

    def back(self, values: FloatArray) -> FloatArray:
        """The target's values for values of the image."""
        result: FloatArray = self.sign * _exp(values) if self.sign else values
        return result


@dataclass(frozen=True)
class _Predictions:
    """Predictions of each row from its neighbours, and the rows that are not off."""

    kept: BoolArray
    predicted: FloatArray
    error: FloatArray
    usual: float
    unexplained: float


def _exp(values: FloatArray) -> FloatArray:
    """The exponential, at most half of the largest double: linear predictions of logarithms may exceed it."""
    result: FloatArray = np.exp(np.minimum(values, MAX_LOGARITHM))
    return result


def _images(target: FloatArray) -> list[_Image]:
    """The target and, where nearly all of it has one sign, its logarithm."""
    images = [_Image(0, target, np.ones(len(target), bool))]
    for sign in (1, -1):
        possible = sign * target > 0
        if (~possible).sum() <= _most_off(len(target)) and not _around_zero(target, possible):
            images.append(_Image(sign, np.log(np.where(possible, sign * target, 1.0)), possible))
    return images


def _around_zero(target: FloatArray, possible: BoolArray) -> bool:
    """Whether the rows of the other sign are small: then noise reaches zero, and they are no misprints."""
    size = np.abs(target)
    return not possible.all() and bool(np.median(size[~possible]) < POLICY.small * np.median(size))


def _most_off(rows: int) -> int:
    return max(1, int(POLICY.max_off * rows))


def _unexplained(image: _Image, unit: FloatArray) -> float:
    """Usual error of the predictions, as a share of the spread around the median."""
    few = image.at(some := spread_out(np.arange(len(unit)), POLICY.references // 2))
    predicted, _ = local_predictions(
        unit[some], few.values, np.arange(len(some)), np.flatnonzero(few.possible), 2
    )
    error = (few.values - predicted)[few.possible]
    values = image.values[image.possible]
    return usual_error(error) / max(usual_error(values - np.median(values)), 1e-300)


def _without_outliers(image: _Image, unit: FloatArray) -> _Predictions | None:
    """Leave out row after row that lies far from its prediction; None if there are too many."""
    kept, values = image.possible.copy(), image.values
    spread = usual_error(values[kept] - np.median(values[kept]))
    references = spread_out(np.flatnonzero(kept), POLICY.references)
    predicted = np.zeros(len(values))
    near = np.zeros((len(values), 0), np.intp)
    while (~kept).sum() <= _most_off(len(values)):
        references = references[kept[references]]
        # Only rows with a neighbour among those left out are predicted again.
        count = neighbour_count(unit, references)
        stale = np.flatnonzero((~kept)[near].any(axis=1))
        if near.shape[1] != count:
            stale, near = np.arange(len(values)), np.zeros((len(values), count), np.intp)
        predicted[stale], near[stale] = local_predictions(unit, values, stale, references)
        error = values - predicted
        usual = usual_error(error[kept])
        far = np.abs(error) > max(
            POLICY.far * usual, POLICY.far_share * (1.0 if image.logarithmic else spread)
        )
        if image.logarithmic:
            # Small values may be far off in proportion without being wrong.
            absolute = np.abs(_exp(values) - _exp(predicted))
            far &= absolute > POLICY.far * usual_error(absolute[kept])
        if (far & kept).any():
            # Errors that grow with the value are large where it is large, and no misprints.
            far &= np.abs(error) > POLICY.far * _usual_at(predicted, error, kept)
        if not (far & kept).any():
            # Some were off only because of a misprint beside them.
            kept = image.possible & ~far
            return _Predictions(kept, predicted, error, usual, usual / max(spread, 1e-300))
        # Not all at once: a row that is off pulls its neighbours' predictions along.
        far &= kept
        kept &= ~(far & (np.abs(error) >= POLICY.round_share * np.abs(error[far]).max()))
    return None


def _usual_at(predicted: FloatArray, error: FloatArray, kept: BoolArray) -> FloatArray:
    """The usual error of the rows with similar predictions, shape (rows,)."""
    rows = np.flatnonzero(kept)
    rows = rows[np.argsort(predicted[rows], kind="stable")]
    blocks = np.array_split(rows, max(1, min(POLICY.blocks, len(rows) // POLICY.min_similar)))
    usual = [usual_error(error[block]) for block in blocks]
    result: FloatArray = np.interp(predicted, [np.median(predicted[block]) for block in blocks], usual)
    return result


def _are_neighbours(unit: FloatArray, kept: BoolArray) -> bool:
    """Whether the outliers are neighbours of one another: then they are a feature of the law."""
    off = np.flatnonzero(~kept)
    if len(off) < 2:
        return False
    nearest, _ = neighbours(unit, off, np.arange(len(unit)), 2)
    beside = (~kept)[nearest].any(axis=1)
    # Of three that are off, two may be neighbours by chance.
    return bool(beside.mean() > POLICY.max_together and (beside.sum() > 2 or len(off) == 2))


def _systematic(unit: FloatArray, found: _Predictions) -> bool:
    """Whether the errors of neighbours have the same sign: then predictions miss a curve."""
    rows = np.flatnonzero(found.kept)
    near, _ = neighbours(unit, rows, rows, 2)
    return bool((found.error[rows, None] * found.error[near] > 0).mean() > POLICY.same_side)


def _weights(found: _Predictions) -> FloatArray | None:
    """Weights where errors are in proportion to the value."""
    kept, error, predicted = found.kept, found.error, found.predicted
    if not np.log(POLICY.span) < np.ptp(predicted[kept]) < np.log(POLICY.max_span):
        return None
    # Laplace's distribution for the errors of the logarithm, with a width that is the same everywhere or
    # falls as 1/value.
    same = np.mean(np.abs(error[kept]))
    value = np.exp(predicted[kept] - predicted[kept].mean())
    falling = np.mean(np.abs(error[kept]) * value)
    if not kept.sum() * np.log(falling / same) - np.log(value).sum() > POLICY.decisive:
        return None
    weights: FloatArray = np.exp(-2 * (predicted - predicted.max()))
    weights /= weights.mean()
    return weights
