"""Fits to rows whose inputs have errors: the effective variance.

An error of an input moves the value of a law by its slope times the error, so the variance of a residual is
`s_y**2 + sum((df/dx_j * s_j)**2)`. The sum of squared residuals over these variances is minimised with the
variances as functions of the constants: with variances held fixed the slope of a straight line would be too
small by `s_x**2` over the variance of `x`. For a line this is York's method.

References: Orear, "Least squares when both variables have uncertainties", *Am. J. Phys.* 50 (1982); York,
Evensen, Martinez and De Basabe Delgado, "Unified equations for the slope, intercept, and standard errors of
the best straight line", *Am. J. Phys.* 72 (2004).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from physdiffuser.arrays import CHECK_ARRAYS, FloatArray, checked
from physdiffuser.expressions import Expression, evaluate
from physdiffuser.expressions.tree import bind, free_constants

if TYPE_CHECKING or CHECK_ARRAYS:
    from jaxtyping import Float64

# Steps of numeric derivatives, relative to the size of the value.
_STEP = 1e-5
_ROUNDS, _ITERATIONS = 12, 40
# Times that the most likely values of the inputs are computed anew.
_ADJUSTMENTS = 2
_CONVERGED = 1e-10


@dataclass(frozen=True)
class EffectiveFit:
    """A formula fitted to rows whose inputs have errors.

    Attributes
    ----------
    expression
        With the fitted constants.
    variance
        Of each residual, shape (rows,).
    """

    expression: Expression
    variance: FloatArray


class _Model:
    """Residuals of a skeleton in units of their effective standard deviation."""

    def __init__(
        self, skeleton: Expression, inputs: FloatArray, target: FloatArray, errors: FloatArray
    ) -> None:
        self._skeleton, self._inputs, self._target, self._errors = skeleton, inputs, target, errors
        self._columns = np.flatnonzero(errors.any(axis=0))

    def at(
        self, parameters: FloatArray, own: FloatArray, rounds: int = _ADJUSTMENTS
    ) -> tuple[FloatArray, FloatArray]:
        """Residuals, and their variance from the errors of the inputs, shape (rows,) each.

        The law is linearised at the most likely values of the inputs, not at those that were read.
        """
        inputs, errors = self._inputs, self._errors
        adjusted = inputs
        for turn in range(rounds + 1):
            value = evaluate(self._skeleton, adjusted, parameters)
            slopes = self._slopes(adjusted, value, parameters)
            propagated = np.square(slopes * errors).sum(axis=1)
            residual = self._target - value - (slopes * (inputs - adjusted)).sum(axis=1)
            if turn == rounds:
                break
            share = residual / np.maximum(own + propagated, 1e-300)
            moved = inputs + np.square(errors) * slopes * share[:, None]
            # Far from the law the linearisation says little: at most three standard deviations.
            moved = np.clip(moved, inputs - 3.0 * errors, inputs + 3.0 * errors)
            finite = np.isfinite(evaluate(self._skeleton, moved, parameters))
            adjusted = np.where(finite[:, None], moved, adjusted)
        return residual, propagated

    def _slopes(self, inputs: FloatArray, value: FloatArray, parameters: FloatArray) -> FloatArray:
        """Derivatives by the columns that have errors, shape (rows, columns)."""
        slopes = np.zeros_like(inputs)
        for column in self._columns:
            step = _STEP * (np.abs(inputs[:, column]) + self._errors[:, column])
            ends = []
            for sign in (1.0, -1.0):
                moved = inputs.copy()
                moved[:, column] += sign * step
                ends.append(evaluate(self._skeleton, moved, parameters))
            high, low = ends
            # At the edge of the domain, as of sqrt(x) at 0, one side has no value.
            rise = np.where(np.isfinite(low), 0.5 * (high - low), high - value)
            slopes[:, column] = np.where(np.isfinite(rise), rise, 0.0) / np.maximum(step, 5e-324)
        return slopes

    def standardised(self, parameters: FloatArray, own: FloatArray) -> FloatArray:
        """Residuals in units of their standard deviation, shape (rows,)."""
        residual, propagated = self.at(parameters, own)
        return residual / np.sqrt(np.maximum(own + propagated, 1e-300))


@np.errstate(all="ignore")
@checked
def effective_fit(
    law: Expression,
    inputs: Float64[np.ndarray, "rows columns"],
    target: Float64[np.ndarray, " rows"],
    input_errors: Float64[np.ndarray, "rows columns"],
    target_errors: Float64[np.ndarray, " rows"] | None = None,
) -> EffectiveFit | None:
    """Fit the float constants of a formula again, with errors of the inputs.

    Parameters
    ----------
    law
        The formula, with constants near their best values.
    inputs
        Shape (rows, columns).
    target
        Shape (rows,).
    input_errors
        Shape (rows, columns): standard deviations, 0 where a value is exact.
    target_errors
        Shape (rows,): standard deviations of the target. None: they are constant, and such that chi-square
        equals its degrees of freedom.

    Returns
    -------
    None where a value is not finite.
    """
    skeleton, values = free_constants(law)
    model, parameters = _Model(skeleton, inputs, target, input_errors), np.array(values)
    freedom = max(len(target) - len(values), 1)
    own = np.zeros(len(target)) if target_errors is None else np.square(target_errors)
    for _ in range(_ROUNDS if target_errors is None else 1):
        if target_errors is None:
            before = own[0]
            residual, propagated = model.at(parameters, own)
            own[:] = _own_variance(np.square(residual), propagated, freedom)
            if abs(own[0] - before) <= 1e-6 * before:
                break
        parameters = _minimised(model, parameters, own)
    variance = own + model.at(parameters, own)[1]
    if not (np.isfinite(parameters).all() and np.isfinite(variance).all() and variance.min() > 0.0):
        return None
    return EffectiveFit(bind(skeleton, list(parameters)), variance)


def _own_variance(squares: FloatArray, propagated: FloatArray, freedom: int) -> float:
    """The variance of the target with which chi-square equals its degrees of freedom, or 0."""
    low, high = 0.0, float(squares.sum()) / freedom
    if not np.isfinite(high) or float((squares / np.maximum(propagated, 1e-300)).sum()) <= freedom:
        return 0.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        if float((squares / (middle + propagated)).sum()) > freedom:
            low = middle
        else:
            high = middle
    return high


def _minimised(model: _Model, parameters: FloatArray, own: FloatArray) -> FloatArray:
    """Levenberg-Marquardt with numeric derivatives of the standardised residuals."""
    if not parameters.size:
        return parameters
    residual = model.standardised(parameters, own)
    loss, damping = float(residual @ residual), 1e-3
    for _ in range(_ITERATIONS):
        jacobian = np.empty((parameters.size, residual.size))
        for index, value in enumerate(parameters):
            step = _STEP * (abs(value) or 1.0)
            high, low = parameters.copy(), parameters.copy()
            high[index] += step
            low[index] -= step
            jacobian[index] = (model.standardised(high, own) - model.standardised(low, own)) / (2 * step)
        length = np.sqrt(np.square(jacobian).sum(axis=1))
        if not (np.isfinite(length).all() and np.isfinite(loss)):
            return parameters
        unit = jacobian / np.maximum(length, 1e-300)[:, None]
        system = unit @ unit.T + damping * np.eye(parameters.size)
        trial = parameters - np.linalg.lstsq(system, unit @ residual, rcond=None)[0] / np.maximum(
            length, 1e-300
        )
        new = model.standardised(trial, own)
        square = float(new @ new)
        if not square < loss:
            damping *= 10.0
            if damping > 1e8:
                break
            continue
        gain, parameters, residual, loss = loss - square, trial, new, square
        damping = max(damping / 10.0, 1e-12)
        if gain <= _CONVERGED * loss:
            break
    return parameters
