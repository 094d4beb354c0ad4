"""Noise models of the target: constant, relative, Poisson, mixed and heavy-tailed errors, with likelihoods.

The standard deviation of a row is `s*sqrt(v(f))` with the prediction `f` of a law and the shape `v` of the
model: 1, `f**2`, `|f|`, or `a**2 + f**2`. The scale `s` is estimated from the residuals for every model.
Robust errors are constant ones that follow Student's t. The ratio `a` of the mixed model, and the degrees of
freedom of Student's t, are one parameter more, and are charged as one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.fitting.student import StudentFit, student_fit

NoiseKind = Literal["constant", "relative", "poisson", "mixed", "robust"]
KINDS: tuple[NoiseKind, ...] = get_args(NoiseKind)

# Values of the mixed model's ratio that are tried, as quantiles of |f| times these factors.
_QUANTILES = (0.02, 0.1, 0.25, 0.5, 0.75, 0.9)
_FACTORS = (0.1, 0.3, 1.0, 3.0)


@dataclass(frozen=True)
class NoiseModelPolicy:
    """What a noise model costs.

    Set by hand (docs/methods/noise.md).
    """

    parameter_nats: float = 2.0
    """Nats by which a model with one parameter more must be better than a simple one, beside its
    parameter."""
    square_root_nats: float = 1.0
    """Nats for errors that grow with the square root of the value: errors in proportion to the value are more
    usual, and few rows hardly distinguish the two."""
    min_count: float = 1e-3
    """Predictions of counts below this share of the median get no larger weights."""


POLICY = NoiseModelPolicy()

# Power of the target's unit in the scale of each model.
_EXPONENTS: dict[NoiseKind, float] = {"constant": 1.0, "relative": 0.0, "poisson": 0.5, "mixed": 0.0}


@dataclass(frozen=True)
class NoiseModel:
    """A noise model fitted to the residuals of one law.

    Attributes
    ----------
    kind
        Which shape.
    ratio
        Of the mixed model, in units of the target: the constant part of the error over the relative error.
    scale
        Standard deviation where the shape is 1.
    nats
        Negative logarithm of the likelihood, up to a constant of the table, with the ratio or the degrees of
        freedom charged.
    freedom
        Degrees of freedom of Student's t; infinite for normal errors.
    """

    kind: NoiseKind
    ratio: float
    scale: float
    nats: float
    freedom: float = math.inf

    def weights(self, prediction: FloatArray) -> FloatArray:
        """Inverse variances by the shape of the model, with mean 1, shape (rows,)."""
        unit = float(np.abs(prediction).max()) or 1.0  # squares of 1e200 are no numbers
        shape = _shape(self.kind, prediction / unit, self.ratio / unit)
        if self.kind == "poisson":
            # The error of a count does not vanish with its expectation.
            shape = np.maximum(shape, POLICY.min_count * float(np.median(shape)))
        inverse = shape.min() / shape
        return np.asarray(inverse / inverse.mean(), float)

    def row_weights(self, target: FloatArray, prediction: FloatArray) -> FloatArray:
        """Weights of rows in a fit, with mean 1, shape (rows,): in heavy tails those far off less."""
        if self.kind != "robust":
            return self.weights(prediction)
        weights = self._student.weights(target - prediction)
        return np.asarray(weights / weights.mean(), float)

    def row_nats(self, target: FloatArray, prediction: FloatArray) -> FloatArray:
        """Negative logarithm of the likelihood of each row, half a log of 2 pi left out, shape (rows,)."""
        if self.kind == "robust":
            return self._student.row_nats(target - prediction)
        deviation = self.deviation(prediction)
        return np.asarray(0.5 * np.square((target - prediction) / deviation) + np.log(deviation), float)

    @property
    def variance_factor(self) -> float:
        """By how much constants vary more than the mean square of weighted residuals says.

        A fit with the weights of Student's t has the variance of the maximum of the likelihood (Lange, Little
        and Taylor, J. Am. Stat. Assoc. 84 (1989) 881).
        """
        return 1.0 if math.isinf(self.freedom) else (self.freedom + 3.0) / (self.freedom + 1.0)

    @property
    def _student(self) -> StudentFit:
        return StudentFit(np.array(self.freedom), np.array(self.scale), np.array(0.0))

    def deviation(self, prediction: FloatArray) -> FloatArray:
        """Standard deviations, shape (rows,)."""
        unit = float(np.abs(prediction).max()) or 1.0
        shape = np.sqrt(_shape(self.kind, prediction / unit, self.ratio / unit))
        exponent = _EXPONENTS.get(self.kind, 1.0)
        return np.asarray(self.scale * shape * unit ** (1.0 - exponent), float)


def fit_noise_model(
    kind: NoiseKind, target: FloatArray, prediction: FloatArray, constants: int
) -> NoiseModel:
    """A noise model with its parameters at the maximum of the likelihood.

    Parameters
    ----------
    target, prediction
        Shape (rows,), finite.
    constants
        Number of fitted constants of the law.
    """
    rows = len(target)
    ratios = [0.0]
    extra = 0.0 if kind in ("constant", "relative", "poisson") else _parameter_nats(rows)
    if kind == "mixed":
        sizes = np.quantile(np.abs(prediction), _QUANTILES)
        ratios = [factor * size for size in sizes for factor in _FACTORS if size > 0] or [1.0]
    if kind == "poisson":
        extra += POLICY.square_root_nats
    fits = [_fitted(kind, ratio, target, prediction, max(rows - constants, 1)) for ratio in ratios]
    best = min(fits, key=lambda fit: fit.nats)
    return replace(best, nats=best.nats + extra)


def _parameter_nats(rows: int) -> float:
    return 0.5 * float(np.log(max(rows, 2))) + POLICY.parameter_nats


def _fitted(
    kind: NoiseKind, ratio: float, target: FloatArray, prediction: FloatArray, freedom: int
) -> NoiseModel:
    # In units of the largest value: the squares of 1e200 are no numbers.
    unit = float(np.abs(target).max()) or 1.0
    shape = _shape(kind, prediction / unit, ratio / unit)
    residual = (target - prediction) / unit
    if kind == "robust":
        return _heavy_tailed(residual, unit, freedom)
    variance = float(np.square(residual / np.sqrt(shape)).sum()) / freedom
    if not np.isfinite(variance) or variance <= 0.0:
        return NoiseModel(kind, ratio, 0.0, float("inf"))
    # The determinant counts as often as the scale is estimated from rows: (n - p)/n of each logarithm.
    share = freedom / len(target)
    nats = 0.5 * freedom * float(np.log(variance)) + 0.5 * share * float(np.log(shape).sum())
    return NoiseModel(kind, ratio, float(np.sqrt(variance)) * unit ** _EXPONENTS[kind], nats)


def _heavy_tailed(residual: FloatArray, unit: float, freedom: int) -> NoiseModel:
    """Student's t for residuals in units of `unit`."""
    if not np.isfinite(residual).all() or not residual.any():
        return NoiseModel("robust", 0.0, 0.0, float("inf"))
    fit = student_fit(residual)
    # As for normal errors, with the variance that they would have to be as likely.
    variance = float(fit.variance) * len(residual) / freedom
    return NoiseModel(
        "robust", 0.0, float(fit.scale) * unit, 0.5 * freedom * float(np.log(variance)), float(fit.freedom)
    )


def _shape(kind: NoiseKind, prediction: FloatArray, ratio: float) -> FloatArray:
    size = np.minimum(np.abs(prediction), 1e150)  # whose square is a number
    if kind in ("constant", "robust"):
        return np.ones(len(size))
    if kind == "mixed":
        floor = min(max(ratio, 1e-150), 1e150)
        return np.asarray(floor**2 + np.square(size), float)
    size = np.maximum(size, 1e-150)
    return np.square(size) if kind == "relative" else size
