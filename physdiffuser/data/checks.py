"""What is worth a warning in the numbers themselves. Nothing here changes the data."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.errors import DataError, UsageError
from physdiffuser.io.display import counted, listed, visible

SENTINELS = (-999.0, -9999.0, -99999.0, -999.25, -999.9, -9999.9, -99.0, 9999.0, 99999.0, 999999.0, 1e20)
"""Values that stand for "missing" in many data formats."""

MANY_COLUMNS = 100
NEAR_LIMIT = 1e300
_SAMPLE_ROWS = 2_000
_MAX_FOR_RANK = 400
_DEPENDENT = 1e-10
_INVOLVED = 1e-6


def sentinel_warning(name: str, values: FloatArray) -> str | None:
    """Warn about a value that repeats, is the column's extreme, and often means "missing"."""
    lowest, highest = float(values.min()), float(values.max())
    for sentinel in SENTINELS:
        if sentinel not in (lowest, highest):
            continue
        count = int(np.count_nonzero(values == sentinel))
        if count < 2 or count == values.size or not _stands_apart(values, sentinel):
            continue
        return (
            f"column '{visible(name)}' has {sentinel:g} in {counted(count, 'row')}; if that means 'missing', "
            "leave those cells empty"
        )
    return None


def _stands_apart(values: FloatArray, extreme: float) -> bool:
    """Whether `extreme` is further from the other values than they are from each other."""
    others = values[values != extreme]
    spread = float(others.max()) / 2 - float(others.min()) / 2
    gap = min(abs(float(others.max()) / 2 - extreme / 2), abs(float(others.min()) / 2 - extreme / 2))
    return gap > spread or count_share(values, extreme) > 0.05


def count_share(values: FloatArray, value: float) -> float:
    """The share of entries equal to `value`."""
    return float(np.count_nonzero(values == value)) / values.size


MIN_WEIGHT = 1e-100
"""Smallest weight of a row, relative to the largest."""
MAX_WEIGHT = 1e50
"""Weights whose largest lies beyond this, or below its inverse, are scaled."""


def limit_warning(name: str, values: FloatArray) -> str | None:
    """Warn about values so large that their square, or even their sum, is infinite."""
    largest = max(abs(float(values.min())), abs(float(values.max())))
    if largest < NEAR_LIMIT:
        return None
    return (
        f"column '{visible(name)}' reaches {largest:.3g}, the end of the float64 range; "
        "products of such values overflow"
    )


def shape_warnings(rows: int, columns: int) -> list[str]:
    """Warn about fewer rows than columns, and about very many columns."""
    if rows < columns:
        return [
            f"fewer rows ({rows}) than input columns ({columns}): many formulas will fit by chance; "
            "choose columns with --inputs or add rows"
        ]
    if columns >= MANY_COLUMNS:
        return [f"{columns} input columns: the search will be slow; choose the relevant ones with --inputs"]
    return []


def collinear_warning(names: Sequence[str], inputs: FloatArray) -> str | None:
    """Warn when an input column is an exact linear combination of others.

    The check looks at up to 2,000 evenly spaced rows and at up to 400 columns: singular values of the
    centred, scaled columns, of which a zero one names the columns involved.
    """
    rows, columns = inputs.shape
    if columns < 2 or columns > _MAX_FOR_RANK or rows <= columns + 1:
        return None
    sample = inputs[:: max(1, rows // _SAMPLE_ROWS)]
    if sample.shape[0] <= columns + 1:
        return None
    scale = np.abs(sample).max(axis=0)
    if not np.all(scale > 0):
        return None
    sample = sample / scale
    sample = sample - sample.mean(axis=0)
    norms = np.sqrt(np.mean(sample * sample, axis=0))
    # A column with less variation than rounding errors of its size tells nothing.
    if not np.all(norms > 1e-12):
        return None
    _, singular, right = np.linalg.svd(sample / norms, full_matrices=False)
    if singular[-1] > _DEPENDENT * singular[0]:
        return None
    involved = [name for name, part in zip(names, right[-1], strict=True) if abs(part) > _INVOLVED]
    return (
        f"columns {listed(involved)} depend linearly on each other: formulas can trade one for another; "
        "leave one out with --inputs"
    )


def check_errors(values: FloatArray, name: str, source: str) -> None:
    """Raise unless all standard deviations are finite and positive."""
    if not (np.isfinite(values) & (values > 0)).all():
        bad = values[~(np.isfinite(values) & (values > 0))][0]
        raise DataError(
            f"{source}: errors in '{visible(name)}' must be above zero, found {bad:g}. "
            "Leave the cell empty to leave the row out."
        )


def check_input_errors(values: FloatArray, name: str, source: str) -> None:
    """Raise unless all standard deviations of an input are finite and not negative."""
    wrong = ~(np.isfinite(values) & (values >= 0))
    if wrong.any():
        raise UsageError(
            f"{source}: --input-errors: errors in '{visible(name)}' must be 0 or more, "
            f"found {values[wrong][0]:g}."
        )


def weights_of(errors: FloatArray) -> FloatArray:
    """Weights `1/sigma**2` of mean 1 for standard deviations, shape (rows,)."""
    unit = np.maximum(errors.min() / errors, math.sqrt(MIN_WEIGHT))
    weights: FloatArray = np.square(unit)
    weights /= weights.mean()
    return weights


def mean_error(errors: FloatArray) -> float:
    """Standard deviation of a row of mean weight, with weights in proportion to `1/errors**2`.

    Parameters
    ----------
    errors
        Shape (rows,), not negative: in other units the smallest double becomes 0.
    """
    errors = np.maximum(errors, np.finfo(np.float64).tiny)
    least = float(errors.min())  # in units of it: the squares of 1e-200 are no numbers
    return least / float(np.sqrt(np.mean(np.square(least / errors))))


def moderate_weights(weights: FloatArray) -> FloatArray:
    """The weights themselves, or multiples of mean 1 where squares of them would not be normal numbers.

    A row with less than `MIN_WEIGHT` of the largest weight counts that much: its residuals do not matter,
    but a weight must not be zero.
    """
    largest = float(weights.max())
    if 1 / MAX_WEIGHT <= largest <= MAX_WEIGHT and weights.min() >= MIN_WEIGHT * largest:
        return weights
    unit: FloatArray = np.maximum(weights / largest, MIN_WEIGHT)
    unit /= unit.mean()
    return unit


def check_weights(values: FloatArray, name: str, source: str) -> None:
    """Raise unless all weights are finite, none is negative and some are positive."""
    if not np.all(np.isfinite(values)) or bool(np.any(values < 0)):
        bad = float(values[~(values >= 0) | np.isinf(values)][0])
        raise DataError(f"{source}: weights in '{visible(name)}' must be zero or positive, found {bad:g}.")
    if not np.any(values > 0):
        raise DataError(f"{source}: all weights in '{visible(name)}' are zero.")
