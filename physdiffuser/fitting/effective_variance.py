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

import numpy as np
import numpy.typing as npt

from physdiffuser.expressions import Expression
from physdiffuser.expressions.tree import bind, free_constants
from physdiffuser.fitting.evaluation_tape import EvaluationTape

FloatArray = npt.NDArray[np.float64]

# Steps of numeric derivatives, relative to the size of the value.
_STEP = 1e-5
_ROUNDS, _ITERATIONS = 12, 40
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
        self._target, self._tape = target, EvaluationTape(skeleton, inputs)
        self._shifted = []
        for column in np.flatnonzero(errors.any(axis=0)):
            step = _STEP * (np.abs(inputs[:, column]) + errors[:, column])
            ends = []
            for sign in (1.0, -1.0):
                moved = inputs.copy()
                moved[:, column] += sign * step
                ends.append(EvaluationTape(skeleton, moved))
            self._shifted.append((ends, errors[:, column] / step))

    def residual(self, parameters: FloatArray) -> FloatArray:
        return self._target - self._tape.value(parameters)

    def propagated(self, parameters: FloatArray) -> FloatArray:
        """Variance of the residuals from the errors of the inputs, shape (rows,)."""
        middle = self._tape.value(parameters)
        total = np.zeros(len(middle))
        for ends, scale in self._shifted:
            high, low = (tape.value(parameters) for tape in ends)
            # At the edge of the domain, as of sqrt(x) at 0, one side has no value.
            rise = np.where(np.isfinite(low), 0.5 * (high - low), high - middle)
            total += np.square(np.where(np.isfinite(rise), rise, 0.0) * scale)
        return total

    def standardised(self, parameters: FloatArray, own: FloatArray) -> FloatArray:
        variance = own + self.propagated(parameters)
        return self.residual(parameters) / np.sqrt(np.maximum(variance, 1e-300))


@np.errstate(all="ignore")
def effective_fit(
    law: Expression,
    inputs: FloatArray,
    target: FloatArray,
    input_errors: FloatArray,
    target_errors: FloatArray | None = None,
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
            own[:] = _own_variance(
                np.square(model.residual(parameters)), model.propagated(parameters), freedom
            )
            if abs(own[0] - before) <= 1e-6 * before:
                break
        parameters = _minimised(model, parameters, own)
    variance = own + model.propagated(parameters)
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
