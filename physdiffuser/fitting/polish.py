"""The short way when good values are at hand: Levenberg-Marquardt in all parameters, from one start.

`levenberg_marquardt` follows many starts and solves for the linear parameters at every step. Near the
minimum neither is needed, and for short formulas the price of a step is the number of numpy calls: this is
the same method with a dozen of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from physdiffuser.arrays import CHECK_ARRAYS, FloatArray, checked
from physdiffuser.fitting.levenberg_marquardt import Outcome, exact_loss
from physdiffuser.fitting.varpro import SeparableModel

if TYPE_CHECKING or CHECK_ARRAYS:
    from jaxtyping import Float64

_FIRST_DAMPING = 1e-4
_WORST_CONDITION = 1e-9
"""Smallest eigenvalue of the normal matrix with unit diagonal that can be trusted."""


@checked
def polish(
    model: SeparableModel, values: Float64[np.ndarray, " parameters"], iterations: int, tolerance: float
) -> tuple[Float64[np.ndarray, " parameters"], Outcome]:
    """Minimise the squared loss from good values.

    Parameters
    ----------
    model
        Skeleton, rows, target and weights.
    values
        Shape (parameters,).
    iterations
        Most steps tried.
    tolerance
        As for `levenberg_marquardt`.

    Returns
    -------
    parameters
        Shape (parameters,).
    outcome
        CONVERGED or EXACT only if the answer is as good as that of `levenberg_marquardt`; anything else
        means that it must be asked.
    """
    tape, root = model.tape, model.root_weights
    target = model.target / model.scale

    def at(point: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        value, jacobian = tape.value_and_jacobian(point)
        residual = target - value / model.scale
        jacobian /= model.scale
        if root is not None:
            residual *= root
            jacobian *= root
        return residual, jacobian, float(residual @ residual)

    least = exact_loss(model)
    damping, growth = _FIRST_DAMPING, 2.0
    index = np.arange(values.size)
    residual, jacobian, loss = at(values)
    if not np.isfinite(loss):
        return values, Outcome.NOT_FINITE
    fresh = True
    for _ in range(iterations):
        if loss <= least:
            return values, Outcome.EXACT
        if fresh:
            length = np.sqrt(np.einsum("pr,pr->p", jacobian, jacobian))
            if not (length.min() > 1e-140 and length.max() < 1e140):
                return values, Outcome.STALLED
            jacobian /= length[:, None]
            normal = jacobian @ jacobian.T
            gradient = jacobian @ residual
        damped = normal.copy()
        damped[index, index] += damping
        try:
            step = np.linalg.solve(damped, gradient)
        except np.linalg.LinAlgError:
            return values, Outcome.STALLED
        predicted = float(step @ (gradient + damping * step))
        trial = values + step / length
        new_residual, new_jacobian, new_loss = at(trial)
        fresh = new_loss < loss
        small = predicted <= tolerance * loss or (not fresh and loss <= 1e4 * least and growth >= 8.0)
        if fresh:
            gain = (loss - new_loss) / predicted
            values, residual, jacobian, loss = trial, new_residual, new_jacobian, new_loss
            damping = max(damping * (0.1 if gain > 0.95 else max(1 / 3, 1 - (2 * gain - 1) ** 3)), 1e-14)
            growth = 2.0
        else:
            damping, growth = damping * growth, growth * 2.0
            if damping > 1e8:
                return values, Outcome.STALLED
        if small:
            # With nearly dependent columns the normal matrix promises too little: ask the careful method.
            if float(np.linalg.eigvalsh(normal)[0]) < _WORST_CONDITION:
                return values, Outcome.UNDETERMINED
            return values, Outcome.EXACT if loss <= least else Outcome.CONVERGED
    return values, Outcome.ITERATION_LIMIT
