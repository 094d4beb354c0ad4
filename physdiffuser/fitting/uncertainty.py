"""How well the data fix the constants, and what that means for predictions.

Linearised at the fit (Seber & Wild, *Nonlinear Regression*, ch. 5), with Student's t. The sandwich
covariance in its HC3 form (MacKinnon & White, *J. Econometrics* 29, 1985) stays right when the noise
differs from row to row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np

from physdiffuser.arrays import CHECK_ARRAYS, BoolArray, FloatArray, checked
from physdiffuser.expressions import Expression
from physdiffuser.fitting.batched.evaluation_tape import EvaluationTape
from physdiffuser.fitting.linear import power_of_two
from physdiffuser.fitting.losses import Loss
from physdiffuser.fitting.student import pseudo_residuals

if TYPE_CHECKING or CHECK_ARRAYS:
    from jaxtyping import Float64

Covariance = Literal["auto", "classical", "sandwich"]

_EPSILON = float(np.finfo(np.float64).eps)
_MANY = 1_000
"""Degrees of freedom from which the expansion is exact to ten digits."""
_INFINITE = 10**12
"""Degrees of freedom with which Student's t is the normal distribution."""
_ROWS_FOR_SANDWICH = 8
"""Rows beyond the number of constants from which the sandwich is used by "auto"; see docs/fitting.md."""


@dataclass(frozen=True)
class Uncertainty:
    """Standard errors of fitted constants.

    Attributes
    ----------
    skeleton
        The formula, with a parameter for every constant that was fitted.
    parameters
        Shape (parameters,): the fitted values.
    standard_errors
        Shape (parameters,); inf for a constant that the rows do not fix.
    correlation
        Shape (parameters, parameters). Kept apart from the errors: their product would under- or
        overflow for constants of 1e-170 or 1e170.
    sigma
        Standard deviation of the target about the formula, for a row of weight 1.
    degrees_of_freedom
        Rows less parameters.
    sigma_is_known
        Whether `sigma` was given: intervals then have the quantiles of the normal distribution.
    """

    skeleton: Expression
    parameters: FloatArray
    standard_errors: FloatArray
    correlation: FloatArray
    sigma: float
    degrees_of_freedom: int
    sigma_is_known: bool = False

    @property
    @checked
    def covariance(self) -> Float64[np.ndarray, "parameters parameters"]:
        """Shape (parameters, parameters)."""
        # A constant that the rows do not fix has an infinite error: its row is inf or nan, and said so.
        with np.errstate(all="ignore"):
            covariance: FloatArray = self.correlation * np.outer(self.standard_errors, self.standard_errors)
        return covariance

    def quantile(self, level: float) -> float:
        """Half width of a central interval in standard errors."""
        return student_quantile(level, _INFINITE if self.sigma_is_known else self.degrees_of_freedom)

    @checked
    def intervals(self, level: float = 0.95) -> Float64[np.ndarray, "parameters 2"]:
        """Confidence intervals, shape (parameters, 2)."""
        with np.errstate(over="ignore"):  # an interval may reach beyond the largest double
            half = self.quantile(level) * self.standard_errors
            return np.stack([self.parameters - half, self.parameters + half], axis=1)


@lru_cache(maxsize=256)
def student_quantile(level: float, degrees_of_freedom: int) -> float:
    """Half width, in standard errors, of a central interval; inf without degrees of freedom.

    Abramowitz & Stegun, *Handbook of Mathematical Functions*: the finite sums 26.7.3 and 26.7.4 solved
    by bisection, the expansion 26.7.5 where there are many degrees of freedom.
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"level is {level}, must lie between 0 and 1; 0.95 is usual")
    if degrees_of_freedom < 1:
        return float("inf")
    if degrees_of_freedom > _MANY:
        from statistics import NormalDist

        return _expanded(NormalDist().inv_cdf(0.5 + level / 2), degrees_of_freedom)
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        if _central(middle, degrees_of_freedom) < level:
            low = middle
        else:
            high = middle
    return math.sqrt(degrees_of_freedom) * math.tan((low + high) / 2)


def _central(angle: float, freedom: int) -> float:
    """Probability of |t| below `sqrt(freedom)*tan(angle)`."""
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    count = (freedom - odd) // 2
    # 1, 1/2 c**2, 1*3/(2*4) c**4, ... for even numbers, and c, 2/3 c**3, 2*4/(3*5) c**5, ... for odd ones.
    steps = np.arange(1, count, dtype=np.float64)
    ratios = (2 * steps - 1 + odd) / (2 * steps + odd) * cosine**2
    terms = float(1.0 + np.cumprod(ratios).sum()) if count else 0.0
    if odd:
        return 2 / math.pi * (angle + sine * cosine * terms)
    return sine * terms


def _expanded(normal: float, freedom: int) -> float:
    """Student's quantile from the normal one."""
    square, inverse = normal * normal, 1.0 / freedom
    corrections = (
        (square + 1) / 4,
        ((5 * square + 16) * square + 3) / 96,
        (((3 * square + 19) * square + 17) * square - 15) / 384,
    )
    total = 0.0
    for part in reversed(corrections):
        total = (total + part) * inverse
    return normal * (1.0 + total)


@np.errstate(all="ignore")
@checked
def uncertainty(
    skeleton: Expression,
    parameters: Float64[np.ndarray, " parameters"],
    inputs: Float64[np.ndarray, "rows columns"],
    target: Float64[np.ndarray, " rows"],
    *,
    weights: Float64[np.ndarray, " rows"] | None = None,
    sigma: float | None = None,
    covariance: Covariance = "auto",
    loss: Loss = "squared",
) -> Uncertainty:
    """Standard errors at a least-squares fit.

    Parameters
    ----------
    skeleton
        An expression with parameters.
    parameters
        Shape (parameters,): the fit.
    inputs
        Shape (rows, columns).
    target
        Shape (rows,).
    weights
        Shape (rows,), positive: 1/sigma**2 up to a factor, or None.
    sigma
        Standard deviation of a row of weight 1 where it is known; otherwise it comes from the residuals.
    covariance
        "classical" takes the weights for the truth about the noise; "sandwich" does not. "auto" takes
        the sandwich when sigma is not given and there are enough rows for it.
    loss
        That was minimised. After "robust" residuals count as they did in the fit.
    """
    tape = EvaluationTape(skeleton, inputs)
    count, rows = tape.parameters, tape.rows
    value, jacobian = tape.value_and_jacobian(np.asarray(parameters, dtype=np.float64))
    scale = float(power_of_two(np.abs(target).max(initial=0.0)))
    residual = (target - value) / scale
    root = None if weights is None else np.sqrt(weights / weights.mean())
    slopes = jacobian / scale
    if root is not None:
        residual, slopes = residual * root, slopes * root
    freedom = rows - count
    usual = float(np.sqrt(float(residual @ residual) / freedom)) if freedom > 0 else float("inf")
    if loss == "robust" and residual.any():
        residual = pseudo_residuals(residual, count)
    largest = power_of_two(np.abs(slopes).max(axis=1, initial=0.0))
    unit = slopes / largest[:, None]
    length = np.sqrt(np.einsum("pr,pr->p", unit, unit))
    length[length == 0.0] = 1.0
    unit /= length[:, None]
    spread = np.sqrt(float(residual @ residual) / freedom) if freedom > 0 else float("inf")
    if sigma is not None:
        spread = usual = sigma / scale
    if not (np.isfinite(unit).all() and np.isfinite(residual).all()):
        nothing = np.full(count, np.inf)
        return Uncertainty(
            skeleton, parameters, nothing, np.eye(count), usual * scale, freedom, sigma is not None
        )

    sandwich = covariance == "sandwich" or (
        covariance == "auto" and sigma is None and freedom >= _ROWS_FOR_SANDWICH
    )
    half, free = _covariance(unit, residual, None if sandwich else spread)
    scaled = np.sqrt(np.maximum(np.diag(half), 0.0))
    safe = np.where(scaled > 0.0, scaled, 1.0)
    correlation = half / np.outer(safe, safe)
    np.fill_diagonal(correlation, 1.0)
    errors = scaled / length / largest
    # No constant is known better than its last bit.
    errors = np.maximum(errors, _EPSILON * np.abs(parameters))
    errors = np.where(free, np.inf, errors)
    return Uncertainty(
        skeleton,
        np.asarray(parameters, dtype=np.float64),
        errors,
        correlation,
        usual * scale,
        freedom,
        sigma is not None,
    )


def _covariance(unit: FloatArray, residual: FloatArray, spread: float | None) -> tuple[FloatArray, BoolArray]:
    """Covariance of the constants, and which of them the rows do not fix.

    Parameters
    ----------
    unit
        Shape (parameters, rows): derivatives, each of length 1.
    residual
        Shape (rows,).
    spread
        Standard deviation of a row, the same for all; None for the sandwich in its HC3 form.
    """
    count, rows = unit.shape
    left, singular, right = np.linalg.svd(unit.T, full_matrices=False)
    # Directions the rows say nothing about: every constant that takes part in one is not determined.
    blind = singular <= max(rows, count) * _EPSILON * singular.max(initial=0.0)
    free = (np.abs(right[blind]) > 1e-6).any(axis=0) | (np.abs(unit).max(axis=1) == 0.0)
    if rows < count:
        free |= True
    inverse = np.where(blind, 0.0, 1.0 / np.where(blind, 1.0, singular))
    pseudo = right.T * inverse  # (parameters, directions)
    if spread is not None:
        return spread * spread * (pseudo @ pseudo.T), free
    leverage = np.minimum((left[:, ~blind] ** 2).sum(axis=1), 1.0 - 1e-9)
    meat = left * (residual / (1.0 - leverage))[:, None]
    return pseudo @ (meat.T @ meat) @ pseudo.T, free


@np.errstate(all="ignore")
@checked
def prediction_interval(
    known: Uncertainty,
    inputs: Float64[np.ndarray, "rows columns"],
    level: float = 0.95,
    *,
    of: Literal["observation", "mean"] = "observation",
    weights: Float64[np.ndarray, " rows"] | None = None,
) -> Float64[np.ndarray, "rows 2"]:
    """Intervals for new rows.

    Parameters
    ----------
    known
        From `uncertainty`.
    inputs
        Shape (rows, columns).
    level
        Fraction of rows whose target the interval holds.
    of
        "observation": where a new measurement will lie, noise included; "mean": where the law lies.
    weights
        Shape (rows,): weights of the new rows, in the same units and relative to the mean weight of the
        fitted rows; 1 when None.

    Returns
    -------
    Shape (rows, 2); infinite where a constant that matters is not determined.
    """
    tape = EvaluationTape(known.skeleton, inputs)
    value, jacobian = tape.value_and_jacobian(known.parameters)
    determined = np.isfinite(known.standard_errors)
    errors = np.where(determined, known.standard_errors, 0.0)
    part = jacobian * errors[:, None]
    size = float(power_of_two(np.abs(part).max(initial=known.sigma)))
    part = part / size
    variance = np.maximum(np.einsum("pr,pq,qr->r", part, known.correlation, part), 0.0)
    if of == "observation":
        noise = (known.sigma / size) ** 2
        variance = variance + (noise if weights is None else noise / weights)
    half = known.quantile(level) * np.sqrt(variance) * size
    half = np.where((np.abs(jacobian[~determined]) > 0.0).any(axis=0), np.inf, half)
    return np.stack([value - half, value + half], axis=1)
