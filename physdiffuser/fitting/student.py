"""Student's t as the distribution of errors with heavy tails: scale, degrees of freedom, weights and loss.

The likelihood is at its maximum where each row has the weight `(nu + 1)/(nu + (r/s)**2)`: rows far off count
less, the more so the fewer degrees of freedom the errors have. Scale and degrees of freedom are estimated
from the residuals (Lange, Little and Taylor, "Robust statistical modeling using the t distribution", *JASA*
84, 1989; the scale by the faster iteration of Kent, Tyler and Vardi, *Comm. Stat.: Simul. Comput.* 23, 1994).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from physdiffuser.arrays import CHECK_ARRAYS, FloatArray, checked

if TYPE_CHECKING or CHECK_ARRAYS:
    from jaxtyping import Float64


FREEDOMS = (1.0, 2.0, 4.0, 8.0, 30.0)
"""Degrees of freedom that are tried. With one, a misprint costs the logarithm of its size; with thirty the
errors are normal for all purposes."""

_ROUNDS = 8
"""Of the iteration for the scale, from the median."""
_MEDIAN_TO_SIGMA = 1.4826
"""Median absolute deviation to standard deviation, for normal errors."""
_MIN_VARIANCE = 1e-2
"""Relative to that of the median. More than half of the rows fitted to the last bit leave only outliers."""
_NORMAL = 0.5 * math.log(2 * math.pi * math.e)
"""Nats of a row of normal errors with a standard deviation of 1."""


@dataclass(frozen=True)
class StudentFit:
    """Student's t with the largest likelihood for some residuals.

    Attributes
    ----------
    freedom, scale
        Degrees of freedom and scale, shape (...,); the scale is in units of the residuals.
    nats
        Negative logarithm of the likelihood for a row, shape (...,), less that of normal errors with a
        standard deviation of 1.
    """

    freedom: FloatArray
    scale: FloatArray
    nats: FloatArray

    @property
    def variance(self) -> FloatArray:
        """Of normal errors with the same likelihood, in place of the mean square; shape (...,)."""
        return np.exp(2.0 * self.nats)

    @checked
    def weights(self, residual: Float64[np.ndarray, "*sets rows"]) -> Float64[np.ndarray, "*sets rows"]:
        """Weights of iteratively reweighted least squares, shape (..., rows)."""
        freedom = self.freedom[..., None]
        square = np.square(residual / self.scale[..., None])
        return np.asarray((freedom + 1.0) / (freedom + square))

    @checked
    def row_nats(self, residual: Float64[np.ndarray, " rows"]) -> Float64[np.ndarray, " rows"]:
        """Negative logarithm of the likelihood of each row, half a log of 2 pi left out, shape (rows,)."""
        tail = np.log1p(np.square(residual / self.scale) / self.freedom)
        each = 0.5 * (self.freedom + 1.0) * tail + np.log(self.scale) + _constant(float(self.freedom)) + 0.5
        return np.asarray(each)


@np.errstate(all="ignore")
@checked
def student_fit(residual: Float64[np.ndarray, "*sets rows"]) -> StudentFit:
    """Fit Student's t to residuals.

    Parameters
    ----------
    residual
        Shape (..., rows), finite; of weighted rows multiplied by the root of their weights.
    """
    size = np.abs(residual)
    # In units of the largest: parts of 1e-300 are no normal numbers.
    largest = np.maximum(size.max(axis=-1, initial=0.0), 5e-324)
    size = size / largest[..., None]
    unit = np.maximum(_MEDIAN_TO_SIGMA * np.median(size, axis=-1), 1e-15)
    square = np.square(size / unit[..., None])
    best = None
    for freedom in FREEDOMS:
        variance = np.ones_like(unit)
        for _ in range(_ROUNDS):
            share = 1.0 / (freedom * variance[..., None] + square)
            variance = (share * square).mean(axis=-1) / share.mean(axis=-1)
            variance = np.maximum(variance, _MIN_VARIANCE)
        tail = np.log1p(square / (freedom * variance[..., None])).mean(axis=-1)
        nats = 0.5 * np.log(variance) + 0.5 * (freedom + 1.0) * tail + _constant(freedom)
        scale = np.maximum(np.sqrt(variance) * unit * largest, 5e-324)
        fit = StudentFit(freedom * np.ones_like(unit), scale, nats + np.log(unit) + np.log(largest))
        if best is None:
            best = fit
            continue
        better = fit.nats < best.nats
        best = StudentFit(
            np.where(better, fit.freedom, best.freedom),
            np.where(better, fit.scale, best.scale),
            np.where(better, fit.nats, best.nats),
        )
    assert best is not None
    return best


@checked
def student_weights(residual: Float64[np.ndarray, "*some rows"]) -> Float64[np.ndarray, "*some rows"]:
    """Weights of iteratively reweighted least squares, shape (..., rows), above 0 and at most 2."""
    return student_fit(residual).weights(residual)


@checked
def pseudo_residuals(residual: Float64[np.ndarray, " rows"], parameters: int) -> Float64[np.ndarray, " rows"]:
    """Residuals whose least-squares covariance is that of the fit with Student's t, shape (rows,).

    The score over its mean slope, with Huber's correction for few rows (Huber and Ronchetti, *Robust
    Statistics*, section 7.6).

    Parameters
    ----------
    residual
        Shape (rows,).
    parameters
        Number of fitted constants.
    """
    fit = student_fit(residual)
    score = fit.weights(residual) * residual
    square = np.square(residual / fit.scale)
    slope = (fit.freedom + 1.0) * (fit.freedom - square) / np.square(fit.freedom + square)
    mean = float(slope.mean())
    correction = 1.0 + parameters * float(slope.var()) / (len(residual) * mean * mean)
    return np.asarray(correction * score / mean)


def _constant(freedom: float) -> float:
    return (
        math.lgamma(0.5 * freedom)
        - math.lgamma(0.5 * (freedom + 1.0))
        + 0.5 * math.log(math.pi * freedom)
        - _NORMAL
    )
