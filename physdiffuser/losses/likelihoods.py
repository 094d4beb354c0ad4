"""Losses as likelihoods: their value in nats, and the weighted least squares that lead to their minimum.

A loss of residuals is the likelihood of errors that fall off with it, `exp(-loss/scale)`, with the scale that
fits best. So losses of any kind are in nats and are comparable to the length of a formula.

References
----------
Iteratively reweighted least squares: Holland and Welsch, *Communications in Statistics* A6 (1977).
Quantiles: Koenker and Bassett, *Econometrica* 46 (1978). Huber's loss: Huber, *Annals of Mathematical
Statistics* 35 (1964).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.errors import UsageError

LossFunction = Callable[[FloatArray, FloatArray], FloatArray]

# Huber's constant: efficiency 95 % for normal errors.
HUBER = 1.345
# Residuals below this share of the median one count as it where a weight would be infinite: else a row that a
# formula meets exactly would hold it there for ever.
_LEAST = 0.03
# Scales of Huber's loss that are tried, in units of the median residual.
_SCALES = np.geomspace(0.3, 6.0, 60)
_STEP = 1e-4


@runtime_checkable
class Likelihood(Protocol):
    """A likelihood of the user, with parameters of its own such as the size of the errors.

    Attributes
    ----------
    parameters
        Values from which the parameters are fitted, by name.
    """

    parameters: Mapping[str, float]

    def nats(self, target: FloatArray, prediction: FloatArray, **parameters: float) -> FloatArray:
        """Negative logarithm of the likelihood of each row, shape (rows,); inf where it is zero."""
        ...


class Measure(Protocol):
    """A figure of a target, a prediction and weights of the rows, which count as numbers of rows."""

    def __call__(
        self, target: FloatArray, prediction: FloatArray, weights: FloatArray | None = None
    ) -> float: ...


class Working(Protocol):
    """The target and the weights of the least squares that lower a loss."""

    def __call__(
        self, target: FloatArray, prediction: FloatArray, weights: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]: ...


@dataclass(frozen=True)
class Loss:
    """What is minimised.

    Weights of rows, where there are some, have the mean 1: a row of weight 2 counts as two equal rows.

    Attributes
    ----------
    name
        For the report and the document.
    mean
        Mean loss of `(target, prediction, weights)`.
    nats
        Negative logarithm of the likelihood of all rows, best scale and parameters put in.
    working
        `(target, prediction, weights)` to the target and the weights of least squares that lower the loss.
    smoothed
        What the first search aims at, from the target in each neighbourhood, shape (rows, neighbours); None
        for the target itself.
    is_logit
        Whether the law is the logarithm of odds, and probabilities are what is shown.
    """

    name: str
    mean: Measure
    nats: Measure
    working: Working
    smoothed: Callable[[FloatArray], FloatArray] | None = None
    is_logit: bool = False


def loss_of(asked: Any) -> Loss | None:
    """The loss that a user asks for; None for those that the ordinary search minimises.

    Parameters
    ----------
    asked
        A name, a function of target and prediction, or a `Likelihood`.

    Raises
    ------
    UsageError
        If it is none of these.
    """
    if isinstance(asked, str):
        if asked in ("auto", "squared", "robust"):
            return None
        if asked == "huber":
            return _of_residuals("huber", _huber_mean, _huber_nats, _huber_slope)
        if asked == "absolute":
            return _of_residuals("absolute", _absolute, _laplace_nats(_absolute), _sign)
        if asked == "logistic":
            return Loss("logistic", _logistic, _logistic_nats, _logistic_working, _logit, is_logit=True)
        name, _, level = asked.partition("=")
        if name == "quantile":
            return _quantile(asked, level)
        raise UsageError(
            f"loss={asked!r}: must be auto, squared, robust, huber, absolute, quantile=0.5 or logistic"
        )
    if isinstance(asked, Likelihood) and not isinstance(asked, type):
        return _likelihood(asked)
    if callable(asked):
        return _function(asked)
    raise UsageError(f"loss={asked!r}: must be a name, a function of target and prediction, or a Likelihood")


def check_target(loss: Loss, target: FloatArray) -> None:
    """Refuse a target that the loss is not for.

    Raises
    ------
    UsageError
        If the loss is logistic and the target holds other values than 0 and 1.
    """
    if loss.is_logit and not np.isin(target, (0.0, 1.0)).all():
        other = float(target[~np.isin(target, (0.0, 1.0))][0])
        raise UsageError(f"--loss logistic: the target must be 0 or 1 in every row, and holds {other:g}")


# -- losses of residuals -----------------------------------------------------------------------


def _of_residuals(
    name: str,
    mean: Callable[[FloatArray, FloatArray], float],
    nats: Callable[[FloatArray, FloatArray], float],
    slope: Callable[[FloatArray, FloatArray], FloatArray],
) -> Loss:
    """A loss of the residual alone, from its mean, its nats and its derivative, each with weights."""

    def working(
        target: FloatArray, prediction: FloatArray, weights: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        residual, count = target - prediction, _counts(target, weights)
        return target, count * np.abs(slope(residual, count)) / _sizes(residual)

    return Loss(
        name,
        lambda target, prediction, weights=None: mean(target - prediction, _counts(target, weights)),
        lambda target, prediction, weights=None: nats(target - prediction, _counts(target, weights)),
        working,
    )


def _counts(target: FloatArray, weights: FloatArray | None) -> FloatArray:
    return np.ones(target.shape) if weights is None else weights


def _sizes(residual: FloatArray) -> FloatArray:
    """Sizes of residuals, none of them 0."""
    sizes = np.abs(residual)
    return np.maximum(sizes, _LEAST * float(np.median(sizes)) or 1e-9 * float(sizes.max()) or 1.0)


def _absolute(residual: FloatArray, weights: FloatArray) -> float:
    return float(np.average(np.abs(residual), weights=weights))


def _laplace_nats(
    mean: Callable[[FloatArray, FloatArray], float],
) -> Callable[[FloatArray, FloatArray], float]:
    return lambda residual, weights: residual.size * _log(mean(residual, weights))


def _log(value: float) -> float:
    return math.log(max(value, 1e-300)) if math.isfinite(value) else math.inf


def _sign(residual: FloatArray, weights: FloatArray) -> FloatArray:
    return np.sign(residual)


def _huber_of(residual: FloatArray, scale: float) -> FloatArray:
    """Huber's loss of residuals in units of a scale."""
    size = np.abs(residual) / scale
    return np.where(size <= HUBER, 0.5 * size**2, HUBER * (size - 0.5 * HUBER))


def _huber_scale(residual: FloatArray, weights: FloatArray) -> float:
    """The scale of the most likely errors of Huber's density."""
    middle = float(np.median(np.abs(residual))) or float(np.abs(residual).mean()) or 1e-300
    scales = middle * _SCALES
    total = float(weights.sum())
    nats = [total * math.log(one) + (weights * _huber_of(residual, one)).sum() for one in scales]
    return float(scales[int(np.argmin(nats))])


def _huber_mean(residual: FloatArray, weights: FloatArray) -> float:
    scale = _huber_scale(residual, weights)
    return float(scale**2 * np.average(_huber_of(residual, scale), weights=weights))


def _huber_nats(residual: FloatArray, weights: FloatArray) -> float:
    if not np.isfinite(residual).all():
        return math.inf
    scale = _huber_scale(residual, weights)
    return float(weights.sum()) * _log(scale) + float((weights * _huber_of(residual, scale)).sum())


def _huber_slope(residual: FloatArray, weights: FloatArray) -> FloatArray:
    limit = HUBER * _huber_scale(residual, weights)
    return np.clip(residual, -limit, limit)


def _quantile(name: str, level: str) -> Loss:
    try:
        share = float(level)
    except ValueError:
        share = math.nan
    if not 0.0 < share < 1.0:
        raise UsageError(f"loss={name!r}: the quantile must be a number between 0 and 1, as in quantile=0.5")

    def mean(residual: FloatArray, weights: FloatArray) -> float:
        return float(np.average(np.maximum(share * residual, (share - 1.0) * residual), weights=weights))

    def slope(residual: FloatArray, weights: FloatArray) -> FloatArray:
        return np.where(residual >= 0, share, share - 1.0)

    loss = _of_residuals(name, mean, _laplace_nats(mean), slope)
    return replace(loss, smoothed=lambda near: np.asarray(np.quantile(near, share, axis=1)))


# -- logistic ----------------------------------------------------------------------------------


def _logistic(target: FloatArray, prediction: FloatArray, weights: FloatArray | None = None) -> float:
    rows = np.logaddexp(0.0, prediction) - target * prediction
    return float(np.average(rows, weights=weights))


def _logistic_nats(target: FloatArray, prediction: FloatArray, weights: FloatArray | None = None) -> float:
    nats = target.size * _logistic(target, prediction, weights)
    return nats if math.isfinite(nats) else math.inf


def _logistic_working(
    target: FloatArray, prediction: FloatArray, weights: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    odds = np.clip(prediction, -20.0, 20.0)
    probability = 1.0 / (1.0 + np.exp(-odds))
    curvature = np.maximum(probability * (1.0 - probability), 1e-4)
    return odds + (target - probability) / curvature, _counts(target, weights) * curvature


def _logit(near: FloatArray) -> FloatArray:
    share = (near.sum(axis=1) + 0.5) / (near.shape[1] + 1.0)
    return np.asarray(np.log(share / (1.0 - share)))


# -- of the user -------------------------------------------------------------------------------


def _function(function: LossFunction) -> Loss:
    """A loss that is a function: its errors fall off as exp(-loss/scale)."""

    def rows(target: FloatArray, prediction: FloatArray) -> FloatArray:
        return _checked(function(target, prediction), target, "the loss")

    def mean(target: FloatArray, prediction: FloatArray, weights: FloatArray | None = None) -> float:
        return float(np.average(rows(target, prediction), weights=weights))

    def nats(target: FloatArray, prediction: FloatArray, weights: FloatArray | None = None) -> float:
        value = mean(target, prediction, weights)
        if value < 0:
            raise UsageError(f"the loss has a mean of {value:g}; a loss must not be negative")
        return target.size * _log(value)

    return Loss(getattr(function, "__name__", "function"), mean, nats, _numeric(rows))


def _likelihood(model: Likelihood) -> Loss:
    names = list(model.parameters)
    start = np.array([float(model.parameters[name]) for name in names])

    def rows(target: FloatArray, prediction: FloatArray, values: FloatArray) -> FloatArray:
        given = dict(zip(names, values.tolist(), strict=True))
        return _checked(model.nats(target, prediction, **given), target, "nats")

    def fitted(target: FloatArray, prediction: FloatArray, count: FloatArray) -> FloatArray:
        """The most likely values of the parameters."""
        if not names:
            return start
        from scipy.optimize import minimize

        def total(values: FloatArray) -> float:
            nats = float((count * rows(target, prediction, values)).sum())
            return nats if math.isfinite(nats) else 1e300

        found = minimize(total, start, method="Nelder-Mead", options={"maxiter": 200 * len(names)})
        return np.asarray(found.x)

    def nats(target: FloatArray, prediction: FloatArray, weights: FloatArray | None = None) -> float:
        count = _counts(target, weights)
        value = float((count * rows(target, prediction, fitted(target, prediction, count))).sum())
        return value if math.isfinite(value) else math.inf

    def working(
        target: FloatArray, prediction: FloatArray, weights: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        values = fitted(target, prediction, _counts(target, weights))
        return _numeric(lambda y, p: rows(y, p, values))(target, prediction, weights)

    name = type(model).__name__
    return Loss(name, lambda y, p, weights=None: nats(y, p, weights) / y.size, nats, working)


def _checked(values: Any, target: FloatArray, what: str) -> FloatArray:
    found = np.asarray(values, dtype=np.float64)
    if found.shape != target.shape:
        raise UsageError(f"{what} has shape {found.shape}; it must return shape {target.shape}")
    return found


def _numeric(
    rows: Callable[[FloatArray, FloatArray], FloatArray],
) -> Working:
    """Least squares whose solution lowers a loss of which only the values are known."""

    def working(
        target: FloatArray, prediction: FloatArray, weights: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        step = _STEP * (float(np.std(target)) or 1.0)
        above, here, below = (rows(target, prediction + shift) for shift in (step, 0.0, -step))
        slope, curvature = (above - below) / (2 * step), (above - 2 * here + below) / step**2
        residual = target - prediction
        size = _sizes(residual)
        # Where the loss falls towards the target, its slope over the residual: then no step is too long.
        towards = slope * residual <= 0
        share = np.where(towards, np.abs(slope) / size, np.maximum(curvature, 0.0))
        share = np.maximum(share, 1e-9 * (float(share.max()) or 1.0))
        aim = np.where(towards, target, prediction - slope / share)
        return aim, _counts(target, weights) * share

    return working
