"""The loss of a prediction, as the Pareto archive counts it: relative to the best constant's."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from physdiffuser.arrays import CHECK_ARRAYS, checked

if TYPE_CHECKING or CHECK_ARRAYS:
    from jaxtyping import Float64

FloatArray = npt.NDArray[np.float64]
Loss = Literal["squared", "huber"]

HUBER_WIDTH = 1.345
"""In units of sigma; 95 % as efficient as least squares on normal noise (Huber, *Robust Statistics*)."""

WORST = 10.0
"""Of Huber's widths: a residual beyond is a misprint, whose size says nothing. Without a limit one of
six in 300 rows was worth up to 44 nats, enough for a narrow peak through it; with it each is worth 12."""

MAD_TO_SIGMA = 1.4826
"""Median absolute deviation to standard deviation, for normal noise."""


@checked
def huber_width(residual: Float64[np.ndarray, "*some rows"]) -> Float64[np.ndarray, "*some"]:
    """Where Huber's loss turns from square to linear, from the residuals themselves.

    Parameters
    ----------
    residual
        Shape (..., rows), unweighted.

    Returns
    -------
    Shape (...,); never 0, so that it can be divided by.
    """
    size = np.abs(residual)
    width: FloatArray = HUBER_WIDTH * MAD_TO_SIGMA * np.median(size, axis=-1)
    # More than half of the rows fitted to the last bit: what is left are outliers.
    least = 1e-15 * size.max(axis=-1, initial=0.0) + 5e-324
    floored: FloatArray = np.maximum(width, least)
    return floored


@checked
def huber_weights(residual: Float64[np.ndarray, "*some rows"]) -> Float64[np.ndarray, "*some rows"]:
    """Weights of iteratively reweighted least squares, shape (..., rows), in (0, 1]."""
    size = np.abs(residual)
    width = huber_width(residual)[..., None]
    weights: FloatArray = width / np.maximum(size, width)
    return weights


@checked
def root_mean_square(values: Float64[np.ndarray, " rows"]) -> float:
    """Root mean square of values of any magnitude, whose squares may be no doubles; shape (rows,)."""
    scale = float(np.abs(values).max(initial=0.0))
    if scale == 0.0 or not np.isfinite(scale):
        return scale
    return scale * float(np.sqrt(np.mean(np.square(values / scale))))


def mean_loss(residual: FloatArray, weights: FloatArray | None = None, loss: Loss = "squared") -> float:
    """Weighted mean of the squared residual, or of Huber's loss scaled to equal it near 0, up to `WORST`.

    Parameters
    ----------
    residual
        Shape (rows,).
    weights
        Shape (rows,), or None.
    loss
        "squared" or "huber".

    Returns
    -------
    inf if a residual is not finite or the mean exceeds double precision.
    """
    return _in_units(*_unit_loss(residual, weights, loss), 1.0)


def _unit_loss(residual: FloatArray, weights: FloatArray | None, loss: Loss) -> tuple[float, float]:
    """The mean loss in units of the largest residual's square, and that residual."""
    scale = float(np.abs(residual).max(initial=0.0))
    if scale == 0.0:
        return 0.0, 0.0
    if not np.isfinite(scale):
        return float("inf"), 1.0
    unit = residual / scale
    if loss == "huber":
        size = np.abs(unit)
        width = float(huber_width(unit))
        linear = 2 * width * np.minimum(size, WORST * width) - width * width
        each = np.where(size <= width, unit * unit, linear)
        mean = float(each.mean() if weights is None else np.average(each, weights=weights))
    elif weights is None:
        mean = float(unit @ unit) / unit.size
    else:
        mean = float((unit * unit) @ weights) / float(weights.sum())
    return mean, scale


def _in_units(mean: float, scale: float, unit: float) -> float:
    share = scale / unit
    return mean * share * share if share < 1e150 else float("inf")


def relative_loss(
    prediction: FloatArray, target: FloatArray, weights: FloatArray | None = None, loss: Loss = "squared"
) -> float:
    """Loss of a prediction over that of a constant: 0 is perfect, 1 as good as a constant.

    Squares of a target of 1e200 have no place in double precision, and those of 1e-200 vanish: both losses
    are in units of a power of two near the target's spread, which changes no digit of them.
    """
    if not np.isfinite(prediction).all():
        return float("inf")
    centre = target.mean() if weights is None else np.average(target, weights=weights)
    constant, spread = _unit_loss(target - centre, weights, loss)
    unit = math.ldexp(1.0, math.frexp(spread)[1] - 1) if 0.0 < spread < math.inf else 1.0
    least = max(_in_units(constant, spread, unit), 1e-300)
    return _in_units(*_unit_loss(target - prediction, weights, loss), unit) / least
