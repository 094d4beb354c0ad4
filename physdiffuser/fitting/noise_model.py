"""Rows are not equally certain: how the noise of a table grows, read off the residuals of a fit.

Least squares with equal weights is right when every row has the same error. Many tables have relative
errors, or inputs rounded to a few digits. The weights that make the residuals most likely are chosen
among a few such laws (feasible generalised least squares), and only if the rows clearly ask for it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from physdiffuser.expressions import Expression
from physdiffuser.fitting.evaluation_tape import EvaluationTape
from physdiffuser.fitting.levenberg_marquardt import levenberg_marquardt
from physdiffuser.fitting.varpro import SeparableModel

FloatArray = npt.NDArray[np.float64]

_LEAST_GAIN = 3.0
"""In nats. A law of the noise has one parameter at most and there are few of them."""
_MOST_DIGITS = 10
"""A column with more digits than this was not rounded by hand."""
_LOOKED_AT = 500
_WIDEST = 1e5
"""The variance of no row is taken for smaller than this fraction of the median."""


def rounding_step(column: FloatArray) -> FloatArray | None:
    """The step to which each value of a column was rounded; None where they were not.

    A column may be rounded to decimals or to significant digits: a value's step is that of the most
    decimals of the column or of its most digits, whichever is coarser. Whole numbers are taken as exact:
    counts and indices have no error.
    """
    digits = decimals = 0
    for value in column[:: max(1, column.size // _LOOKED_AT)].tolist():
        mantissa, _, exponent = f"{value!r}".lstrip("-").partition("e")
        whole, _, after = mantissa.partition(".")
        after = "" if after == "0" else after
        digits = max(digits, len((whole + after).lstrip("0")))
        decimals = max(decimals, len(after) - int(exponent or 0))
    if digits > _MOST_DIGITS or (decimals <= 0 and digits <= 6):
        return None
    leading = np.floor(np.log10(np.maximum(np.abs(column), 5e-324)))
    step: FloatArray = np.maximum(10.0**-decimals, 10.0 ** (leading + 1 - digits))
    return step


@np.errstate(all="ignore")
def noise_weights(
    skeleton: Expression,
    values: FloatArray,
    inputs: FloatArray,
    target: FloatArray,
    weights: FloatArray | None = None,
) -> FloatArray | None:
    """Weights that fit the residuals of a formula clearly better than the given ones.

    Parameters
    ----------
    skeleton
        An expression with parameters.
    values
        Shape (parameters,): the least-squares fit.
    inputs
        Shape (rows, columns).
    target
        Shape (rows,).
    weights
        Shape (rows,): the weights used so far, or None.

    Returns
    -------
    Shape (rows,), mean 1; None where the given weights do.
    """
    rows = target.shape[0]
    if rows < max(6, values.size + 3):
        return None
    given = np.ones(rows) if weights is None else weights / weights.mean()
    prediction = EvaluationTape(skeleton, inputs).value(values)
    if not np.isfinite(prediction).all() or not (target - prediction).any():
        return None
    # By the fit, not the datum: weights that follow the noise itself bias what is fitted with them.
    size = np.abs(prediction)
    rounded = _rounding(skeleton, values, inputs, target, prediction)
    # The last entry is what the law must gain over those before it: relative errors are met most.
    laws = [(size * size, _LEAST_GAIN), (size, _LEAST_GAIN)]
    if rounded is not None:
        laws.append((rounded, 0.0))
        laws.append((rounded / np.median(rounded) + size * size / np.median(size * size), 0.0))
    best, least = None, _log_likelihood(target - prediction, given)
    for law, gain in laws:
        variance = np.maximum(law, np.median(law) / _WIDEST)
        if not np.isfinite(variance).all() or variance.min() <= 0.0:
            continue
        candidate = given / variance
        candidate = candidate / candidate.mean()
        # Each law is judged at its own best fit: residuals of another fit favour the rows that fit liked.
        model = SeparableModel(skeleton, inputs, target, candidate)
        found = levenberg_marquardt(model, values[:, None], iterations=10, tolerance=1e-6)
        residual = target - model.tape.value(found.parameters[:, 0])
        likelihood = _log_likelihood(residual, candidate)
        if likelihood > least + gain:
            best, least = candidate, likelihood
    return best


def _log_likelihood(residual: FloatArray, weights: FloatArray) -> float:
    """Of normal residuals whose variances are known up to a factor, that factor at its best."""
    scale = float(np.abs(residual).max(initial=0.0))
    if not (0.0 < scale < np.inf):
        return float("-inf")
    squares = (residual / scale) ** 2
    mean = float((squares * weights).mean())
    return float(-0.5 * residual.size * (np.log(mean) + 2.0 * np.log(scale)) + 0.5 * np.log(weights).sum())


def _rounding(
    skeleton: Expression,
    values: FloatArray,
    inputs: FloatArray,
    target: FloatArray,
    prediction: FloatArray,
) -> FloatArray | None:
    """Variance of the target from the rounding of the table's columns; None where nothing was rounded."""
    variance = np.zeros(target.shape[0])
    own = rounding_step(target)
    if own is not None:
        variance += own * own
    for column in range(inputs.shape[1]):
        step = rounding_step(inputs[:, column])
        if step is not None:
            moved = inputs.copy()
            moved[:, column] += step / 4
            change = EvaluationTape(skeleton, moved).value(values) - prediction
            variance += np.where(np.isfinite(change), 16.0 * change * change, 0.0)
    return variance if variance.any() else None
