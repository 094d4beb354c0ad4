"""Levenberg-Marquardt from many starts of one skeleton at once.

Exact derivatives, damping by the gain ratio (Nielsen 1999; Madsen, Nielsen & Tingleff, *Methods for
Non-Linear Least Squares Problems*, 2004), Marquardt's scaling so that parameters of 1e-34 and 1e30 move
alike, linear parameters projected out. Work is bounded by a count of iterations, never by the clock, so
results do not depend on the machine's load.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from physdiffuser.arrays import CHECK_ARRAYS, BoolArray, FloatArray, checked
from physdiffuser.fitting.linear import unit_columns
from physdiffuser.fitting.losses import Loss
from physdiffuser.fitting.student import student_fit, student_weights
from physdiffuser.fitting.varpro import Projected, SeparableModel

if TYPE_CHECKING or CHECK_ARRAYS:
    from jaxtyping import Float64

_EPSILON = float(np.finfo(np.float64).eps)
_FIRST_DAMPING = 1e-3
_MIN_DAMPING = 1e-14
_MAX_DAMPING = 1e14


class Outcome(Enum):
    """How a fit ended. Thousands of candidates fail in every search, so this is a value, not an error."""

    CONVERGED = "converged"
    EXACT = "exact"
    ITERATION_LIMIT = "iteration limit"
    STALLED = "stalled"
    NOT_FINITE = "not finite"
    UNDETERMINED = "undetermined"
    NO_PARAMETERS = "no parameters"

    @property
    def usable(self) -> bool:
        """Whether the fitted values can be used."""
        return self is not Outcome.NOT_FINITE

    @property
    def advice(self) -> str:
        """What it means and what to do about it."""
        return _ADVICE[self]


_ADVICE = {
    Outcome.CONVERGED: "the loss can not be lowered by a small change of the constants",
    Outcome.EXACT: "the formula meets every row to rounding error",
    Outcome.ITERATION_LIMIT: "the loss was still falling; allow more iterations",
    Outcome.STALLED: "no step lowers the loss although its slope is not zero; try other starts, "
    "or rescale the formula",
    Outcome.NOT_FINITE: "at every start the formula is not finite on some row; the rows leave its domain",
    Outcome.UNDETERMINED: "the rows do not fix every constant; remove one, or add rows",
    Outcome.NO_PARAMETERS: "there is nothing to fit",
}


@dataclass(frozen=True)
class Solutions:
    """Where the starts ended.

    Attributes
    ----------
    parameters
        Shape (parameters, starts).
    loss
        Shape (starts,): weighted sum of squares in units of the target's scale (in its place
        the robust loss times the number of rows); inf for starts that never were finite.
    outcomes
        One per start.
    iterations
        Number of iterations made.
    """

    parameters: FloatArray
    loss: FloatArray
    outcomes: tuple[Outcome, ...]
    iterations: int


@np.errstate(all="ignore")
@checked
def levenberg_marquardt(
    model: SeparableModel,
    starts: Float64[np.ndarray, "parameters starts"],
    *,
    iterations: int = 60,
    tolerance: float = 1e-14,
    loss: Loss = "squared",
) -> Solutions:
    """Minimise the loss from every start.

    Parameters
    ----------
    model
        Skeleton, rows, target and weights.
    starts
        Shape (parameters, starts); the values of linear parameters are ignored. As many as the
        model has, where it is of skeletons side by side.
    iterations
        Most steps tried per start.
    tolerance
        A start has converged when its next step promises to lower the loss by less than this fraction.
    loss
        "squared", or "robust" for errors with heavy tails (iteratively reweighted least squares).
    """
    descent = _Descent(model, starts, tolerance, robust=loss == "robust")
    if model.nonlinear_index.size == 0:
        descent.solve_linear(iterations)
        return descent.solutions(0)
    done = 0
    while descent.active.size and done < iterations:
        done += 1
        descent.update_curvature()
        descent.step()
    descent.finish(np.ones(descent.active.size, dtype=np.bool_), Outcome.ITERATION_LIMIT)
    return descent.solutions(done)


class _Descent:
    """Where all starts are. Those that have ended leave the arrays of the active ones.

    Attributes
    ----------
    active
        Shape (active,): numbers of the starts that go on; all other arrays but the results are of these.
    weights
        Shape (active, rows): roots of the weights by which a robust fit multiplies residuals, or None.
    fresh
        Shape (active,): whether a start has moved since its curvature was computed.
    """

    def __init__(self, model: SeparableModel, starts: FloatArray, tolerance: float, robust: bool) -> None:
        self.tolerance = tolerance
        count = starts.shape[1]
        self._final = np.array(starts, dtype=np.float64)
        self._final_loss = np.full(count, np.inf)
        self._outcomes = [Outcome.NOT_FINITE] * count
        self.weights: FloatArray | None = None
        state = model.start(self._final)
        if robust:
            state, self.weights = _reweight(model, state)
        self.least = exact_loss(model)
        self.active = np.flatnonzero(np.isfinite(state.loss))
        self.state = state.take(self.active)
        self.model = model.take(self.active) if self.active.size < count else model
        self.weights = None if self.weights is None else self.weights[self.active]
        self._final[:, self.active] = self.state.parameters
        self._final_loss[self.active] = self.state.loss
        size, nonlinear = self.active.size, model.nonlinear_index.size
        self.damping = np.full(size, _FIRST_DAMPING)
        self.growth = np.full(size, 2.0)
        self.fresh = np.ones(size, dtype=np.bool_)
        self.hessian = np.zeros((size, nonlinear, nonlinear))
        self.gradient = np.zeros((size, nonlinear))
        self.scale = np.ones((size, nonlinear))

    def solutions(self, iterations: int) -> Solutions:
        """Where the starts ended."""
        return Solutions(self._final, self._final_loss, tuple(self._outcomes), iterations)

    def finish(self, which: BoolArray, outcome: Outcome) -> None:
        """Keep the results of some of the active starts."""
        chosen = self.active[which]
        self._final[:, chosen] = self.state.parameters[:, which]
        self._final_loss[chosen] = self.state.loss[which]
        if self.weights is not None and chosen.size:
            # With weights of their own the sums of squares of two starts cannot be compared.
            left = self.state.residual[which] / self.weights[which]
            self._final_loss[chosen] = np.asarray(student_fit(left).variance) * left.shape[-1]
        for index in chosen:
            self._outcomes[index] = outcome

    def solve_linear(self, iterations: int) -> None:
        """Finish a model of linear parameters only, which the start has solved but for the weights."""
        if self.weights is not None:
            for _ in range(iterations):
                before = self.state.parameters
                self.state, self.weights = _reweight(self.model, self.state, self.weights)
                parameters = self.state.parameters
                if np.all(np.abs(parameters - before) <= 1e-12 * np.abs(parameters)):
                    break
        for start in range(self.active.size):
            outcome = Outcome.EXACT if self.state.loss[start] <= self.least else Outcome.CONVERGED
            self.finish(np.arange(self.active.size) == start, outcome)

    def update_curvature(self) -> None:
        """Normal matrix and gradient of the starts that have moved, with columns of length 1."""
        if not self.fresh.any():
            return
        everything = bool(self.fresh.all())
        part = self.state if everything else self.state.take(self.fresh)
        lengths, unit = unit_columns(part.slopes)
        scale = np.asarray(lengths)
        if not np.isfinite(scale).all():
            # A derivative that is not finite (sqrt at 0) holds that parameter still.
            unit = np.where(np.isfinite(scale)[:, :, None], unit, 0.0)
            scale = np.where(np.isfinite(scale), scale, 1.0)
        hessian = np.asarray(np.matmul(unit, unit.transpose(0, 2, 1)))
        gradient = np.asarray(np.matmul(unit, part.residual[:, :, None]))[:, :, 0]
        if everything:
            self.scale, self.hessian, self.gradient = scale, hessian, gradient
        else:
            self.scale[self.fresh], self.hessian[self.fresh] = scale, hessian
            self.gradient[self.fresh] = gradient

    def step(self) -> None:
        """Try one step from every active start, and drop those that have ended."""
        state, least, nonlinear = self.state, self.least, self.model.nonlinear_index
        # Columns have length 1, so the damping is relative to each parameter's own curvature.
        step = _solve(self.hessian, self.damping, self.gradient)
        predicted = np.einsum("sn,sn->s", step, self.gradient + self.damping[:, None] * step)
        trial_parameters = state.parameters.copy()
        trial_parameters[nonlinear] += (step / self.scale).T
        trial = self.model.project(trial_parameters, self.weights)
        better = trial.loss < state.loss
        gain = np.where(better, (state.loss - trial.loss) / np.maximum(predicted, 5e-324), 0.0)
        small = predicted <= self.tolerance * state.loss
        # At the floor of rounding step after step promises something and gives nothing.
        floor = ~better & (state.loss <= 1e4 * least) & (self.growth >= 8.0)
        current = state.parameters[nonlinear]
        still = (np.abs(trial_parameters[nonlinear] - current) <= _EPSILON * np.abs(current)).all(axis=0)
        self.state = state.where(better, trial)
        self._damp(better, gain)
        self.fresh = better
        if self.weights is not None and better.any():
            previous = self.state.loss
            self.state, self.weights = _reweight(self.model, self.state, self.weights)
            # With new weights the old promise says nothing; only a step that changes nothing is the end.
            small = small & (np.abs(self.state.loss - previous) <= 1e-10 * previous)
            self.fresh = np.ones_like(better)
        exact = self.state.loss <= least
        converged = small | floor | still
        stalled = ~better & (self.damping > _MAX_DAMPING)
        ended = exact | converged | stalled
        if ended.any():
            self.finish(exact, Outcome.EXACT)
            self.finish(~exact & converged, Outcome.CONVERGED)
            self.finish(~exact & ~converged & stalled, Outcome.STALLED)
            self._keep(~ended)

    def _damp(self, better: BoolArray, gain: FloatArray) -> None:
        """Nielsen's rule: lower the damping smoothly with the gain, raise it ever faster on failure."""
        lowered = self.damping * np.maximum(1.0 / 3.0, 1.0 - (2.0 * np.minimum(gain, 2.0) - 1.0) ** 3)
        lowered = np.where(gain > 0.95, self.damping * 0.1, lowered)
        raised = self.damping * self.growth
        self.damping = np.where(better, np.maximum(lowered, _MIN_DAMPING), raised)
        self.growth = np.where(better, 2.0, self.growth * 2.0)

    def _keep(self, which: BoolArray) -> None:
        self.active = self.active[which]
        self.state, self.model = self.state.take(which), self.model.take(which)
        self.weights = None if self.weights is None else self.weights[which]
        self.damping, self.growth, self.fresh = self.damping[which], self.growth[which], self.fresh[which]
        self.hessian, self.gradient = self.hessian[which], self.gradient[which]
        self.scale = self.scale[which]


def exact_loss(model: SeparableModel) -> float:
    """Sum of squares that is rounding error: two units in the last place of every row."""
    size = model.target / model.scale
    if model.root_weights is not None:
        size = size * model.root_weights
    return float(size @ size) * (2.0 * _EPSILON) ** 2 + 5e-324


def _solve(hessian: FloatArray, damping: FloatArray, gradient: FloatArray) -> FloatArray:
    size = hessian.shape[-1]
    if size == 1:
        diagonal = hessian[:, :, 0] + damping[:, None]
        return gradient / np.where(diagonal > 0.0, diagonal, 1.0)
    damped = hessian.copy()
    index = np.arange(size)
    # Unit diagonal: below 1e-13 the damping would no longer keep dependent columns apart.
    damped[:, index, index] = np.maximum(damped[:, index, index], 1e-30) + np.maximum(damping, 1e-13)[:, None]
    try:
        step = np.linalg.solve(damped, gradient[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:
        return np.zeros_like(gradient)
    return np.where(np.isfinite(step), step, 0.0)


def _reweight(
    model: SeparableModel, state: Projected, weights: FloatArray | None = None
) -> tuple[Projected, FloatArray]:
    """One round of reweighting: Student's weights from the residuals, linear parameters solved anew."""
    residual = state.residual
    if weights is not None:
        residual = residual / weights
    finite = np.isfinite(residual)
    new = np.sqrt(student_weights(np.where(finite, residual, 0.0)))
    # Far rows keep a trace of weight, so that dividing by it gives their residual back.
    new = np.maximum(new, 1e-6)
    return model.project(state.parameters, new), new
