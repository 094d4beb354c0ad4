"""Constants of a formula under a loss: fitted by reweighted least squares, their errors by the bootstrap."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.expressions import Expression, evaluate
from physdiffuser.expressions.tree import distinct_constants
from physdiffuser.fitting import refit
from physdiffuser.losses.likelihoods import Loss

ITERATIONS, TOLERANCE, PATIENCE = 40, 1e-7, 3
# Tables drawn with replacement for the errors.
SAMPLES = 200
# Shares of the samples that may fail before the errors are not given.
MAX_FAILED = 0.1


@dataclass(frozen=True)
class LossFit:
    """A formula with the constants of least loss.

    Attributes
    ----------
    expression
        With the fitted constants.
    nats
        Negative logarithm of its likelihood.
    """

    expression: Expression
    nats: float


@dataclass(frozen=True)
class Errors:
    """Errors of fitted constants.

    Attributes
    ----------
    sigma, low, high
        Shape (constants,): standard errors, and ends of the 95 % intervals.
    covariance
        Shape (constants, constants).
    """

    sigma: FloatArray
    low: FloatArray
    high: FloatArray
    covariance: FloatArray


@np.errstate(all="ignore")
def fit_loss(
    expression: Expression,
    inputs: FloatArray,
    target: FloatArray,
    loss: Loss,
    weights: FloatArray | None = None,
) -> LossFit:
    """Fit the constants of a formula, from the values they have.

    Parameters
    ----------
    inputs, target
        Shape (rows, columns) and (rows,).
    weights
        Shape (rows,), of mean 1: how many rows each counts as.
    """

    def nats(formula: Expression) -> float:
        prediction = evaluate(formula, inputs)
        return loss.nats(target, prediction, weights) if np.isfinite(prediction).all() else math.inf

    best = LossFit(expression, nats(expression))
    current, waited = expression, 0
    for _ in range(ITERATIONS):
        prediction = evaluate(current, inputs)
        if not np.isfinite(prediction).all():
            break
        aim, share = loss.working(target, prediction, weights)
        if not (np.isfinite(aim).all() and np.isfinite(share).all() and share.max() > 0):
            break
        share = np.maximum(share, 1e-9 * share.max())
        current = refit(current, inputs, aim, weights=share / share.mean(), tied=True).expression
        found = LossFit(current, nats(current))
        # The value may rise a little on the way: weights near a row that is met exactly are approximate.
        waited = 0 if found.nats < best.nats - TOLERANCE * max(1.0, abs(best.nats)) else waited + 1
        best = found if found.nats < best.nats else best
        if waited > PATIENCE:
            break
    return best


def bootstrap_errors(
    expression: Expression,
    inputs: FloatArray,
    target: FloatArray,
    loss: Loss,
    seed: int,
    over: Callable[[], bool],
    weights: FloatArray | None = None,
) -> Errors | None:
    """Errors of the constants of a fitted formula; None where they cannot be given.

    Rows are drawn with replacement and the constants are fitted again: this assumes nothing about the errors
    but that rows are independent.

    References
    ----------
    B. Efron and R. J. Tibshirani, "An Introduction to the Bootstrap" (1993), chapters 6 and 13.
    """
    values = distinct_constants(expression)[1]
    rng = np.random.default_rng([seed, 13])
    rows = target.size
    if not values or rows < 2 * len(values):
        return None
    drawn: list[tuple[float, ...]] = []
    failed = 0
    for _ in range(SAMPLES):
        if over():
            return None
        some = rng.integers(rows, size=rows)
        own = None if weights is None else weights[some] / weights[some].mean()
        fit = fit_loss(expression, inputs[some], target[some], loss, own)
        found = distinct_constants(fit.expression)[1]
        if len(found) == len(values) and np.isfinite(found).all():
            drawn.append(found)
        else:
            failed += 1
    if failed > MAX_FAILED * SAMPLES:
        return None
    table = np.array(drawn)
    low, high = np.quantile(table, [0.025, 0.975], axis=0)
    covariance = np.atleast_2d(np.cov(table.T))
    return Errors(np.sqrt(np.diag(covariance)), low, high, covariance)
