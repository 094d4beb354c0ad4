"""The loss of a prediction, as the Pareto archive counts it: relative to the best constant's."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import numpy as np

from physdiffuser.arrays import CHECK_ARRAYS, FloatArray, checked
from physdiffuser.fitting.student import student_fit

if TYPE_CHECKING or CHECK_ARRAYS:
    from jaxtyping import Float64

Loss = Literal["squared", "robust"]
"""Least squares for normal errors, or the likelihood of Student's t for errors with heavy tails."""


@checked
def root_mean_square(
    values: Float64[np.ndarray, " rows"], weights: Float64[np.ndarray, " rows"] | None = None
) -> float:
    """Weighted root mean square of values of any magnitude, whose squares may be no doubles; shape (rows,).

    nan or inf where a value is.
    """
    scale = float(np.abs(values).max(initial=0.0))
    if scale == 0.0 or not np.isfinite(scale):
        return scale
    return scale * float(np.sqrt(np.average(np.square(values / scale), weights=weights)))


def _unit_loss(residual: FloatArray, weights: FloatArray | None, loss: Loss) -> tuple[float, float]:
    """The mean loss in units of the largest residual's square, and that residual."""
    scale = float(np.abs(residual).max(initial=0.0))
    if scale == 0.0:
        return 0.0, 0.0
    if not np.isfinite(scale):
        return float("inf"), 1.0
    unit = residual / scale
    if loss == "robust":
        root = 1.0 if weights is None else np.sqrt(weights / weights.mean())
        mean = float(student_fit(unit * root).variance)
    elif weights is None:
        mean = float(unit @ unit) / unit.size
    else:
        mean = float((unit * unit) @ weights) / float(weights.sum())
    return mean, scale


def _in_units(mean: float, scale: float, unit: float) -> float:
    share = scale / unit
    return mean * share * share if share < 1e150 else float("inf")


@checked
def relative_loss(
    prediction: Float64[np.ndarray, " rows"],
    target: Float64[np.ndarray, " rows"],
    weights: Float64[np.ndarray, " rows"] | None = None,
    loss: Loss = "squared",
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
