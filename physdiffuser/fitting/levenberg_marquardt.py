"""Levenberg-Marquardt from many starts of one skeleton at once.

Exact derivatives, damping by the gain ratio (Nielsen 1999; Madsen, Nielsen & Tingleff, *Methods for
Non-Linear Least Squares Problems*, 2004), Marquardt's scaling so that parameters of 1e-34 and 1e30 move
alike, linear parameters projected out. Work is bounded by a count of iterations, never by the clock, so
results do not depend on the machine's load.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from physdiffuser.arrays import BoolArray, FloatArray
from physdiffuser.fitting.linear import unit_columns
from physdiffuser.fitting.losses import Loss
from physdiffuser.fitting.student import student_fit, student_weights
from physdiffuser.fitting.varpro import Projected, SeparableModel

_EPSILON = float(np.finfo(np.float64).eps)
_FIRST_DAMPING = 1e-3
_LEAST_DAMPING = 1e-14
_LARGEST_DAMPING = 1e14


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
def levenberg_marquardt(
    model: SeparableModel,
    starts: FloatArray,
    *,
    iterations: int = 60,
    tolerance: float = 1e-14,
    loss: Loss = "squared",
) -> Solutions:
    """Minimise the loss from every start.

    Longer than 60 lines: one iteration over arrays of all starts, whose state every part reads and changes.

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
    count = starts.shape[1]
    final = np.array(starts, dtype=np.float64)
    final_loss = np.full(count, np.inf)
    outcomes = [Outcome.NOT_FINITE] * count

    weights = None
    state = model.start(final)
    if loss == "robust":
        state, weights = _reweight(model, state)
    least = exact_loss(model)
    active = np.flatnonzero(np.isfinite(state.loss))
    state = state.take(active)
    if active.size < count:
        model = model.take(active)
    weights = None if weights is None else weights[active]
    final[:, active] = state.parameters
    final_loss[active] = state.loss

    def finish(which: BoolArray, outcome: Outcome) -> None:
        chosen = active[which]
        final[:, chosen] = state.parameters[:, which]
        final_loss[chosen] = state.loss[which]
        if weights is not None and chosen.size:
            # With weights of their own the sums of squares of two starts cannot be compared.
            left = state.residual[which] / weights[which]
            final_loss[chosen] = np.asarray(student_fit(left).variance) * left.shape[-1]
        for index in chosen:
            outcomes[index] = outcome

    nonlinear = model.nonlinear_index
    if nonlinear.size == 0:
        if loss == "robust":
            for _ in range(iterations):
                before = state.parameters
                state, weights = _reweight(model, state, weights)
                if np.all(np.abs(state.parameters - before) <= 1e-12 * np.abs(state.parameters)):
                    break
        for start in range(active.size):
            outcome = Outcome.EXACT if state.loss[start] <= least else Outcome.CONVERGED
            finish(np.arange(active.size) == start, outcome)
        return Solutions(final, final_loss, tuple(outcomes), 0)

    damping = np.full(active.size, _FIRST_DAMPING)
    growth = np.full(active.size, 2.0)
    fresh = np.ones(active.size, dtype=np.bool_)
    hessian = np.zeros((active.size, nonlinear.size, nonlinear.size))
    gradient = np.zeros((active.size, nonlinear.size))
    scale = np.ones((active.size, nonlinear.size))
    done = 0
    while active.size and done < iterations:
        done += 1
        if fresh.any():
            everything = bool(fresh.all())
            part = state if everything else state.take(fresh)
            lengths, unit = unit_columns(part.slopes)
            scale_now = np.asarray(lengths)
            if not np.isfinite(scale_now).all():
                # A derivative that is not finite (sqrt at 0) holds that parameter still.
                unit = np.where(np.isfinite(scale_now)[:, :, None], unit, 0.0)
                scale_now = np.where(np.isfinite(scale_now), scale_now, 1.0)
            hessian_now = np.asarray(np.matmul(unit, unit.transpose(0, 2, 1)))
            gradient_now = np.asarray(np.matmul(unit, part.residual[:, :, None]))[:, :, 0]
            if everything:
                scale, hessian, gradient = scale_now, hessian_now, gradient_now
            else:
                scale[fresh], hessian[fresh], gradient[fresh] = scale_now, hessian_now, gradient_now
        # Columns have length 1, so the damping is relative to each parameter's own curvature.
        step = _solve(hessian, damping, gradient)
        predicted = np.einsum("sn,sn->s", step, gradient + damping[:, None] * step)
        trial_parameters = state.parameters.copy()
        trial_parameters[nonlinear] += (step / scale).T
        trial = model.project(trial_parameters, weights)
        better = trial.loss < state.loss
        gain = np.where(better, (state.loss - trial.loss) / np.maximum(predicted, 5e-324), 0.0)
        small = predicted <= tolerance * state.loss
        # At the floor of rounding step after step promises something and gives nothing.
        floor = ~better & (state.loss <= 1e4 * least) & (growth >= 8.0)
        current = state.parameters[nonlinear]
        still = (np.abs(trial_parameters[nonlinear] - current) <= _EPSILON * np.abs(current)).all(axis=0)
        state = state.where(better, trial)
        # Nielsen's rule: lower the damping smoothly with the gain, raise it ever faster on failure.
        lowered = damping * np.maximum(1.0 / 3.0, 1.0 - (2.0 * np.minimum(gain, 2.0) - 1.0) ** 3)
        lowered = np.where(gain > 0.95, damping * 0.1, lowered)
        damping = np.where(better, np.maximum(lowered, _LEAST_DAMPING), damping * growth)
        growth = np.where(better, 2.0, growth * 2.0)
        fresh = better
        moved = better.copy()
        if weights is not None and better.any():
            previous = state.loss
            state, weights = _reweight(model, state, weights)
            # With new weights the old promise says nothing; only a step that changes nothing is the end.
            small = small & (np.abs(state.loss - previous) <= 1e-10 * previous)
            fresh = np.ones_like(better)

        exact = state.loss <= least
        stuck = ~moved & (damping > _LARGEST_DAMPING)
        ended = exact | small | floor | still | stuck
        if not ended.any():
            continue
        finish(exact, Outcome.EXACT)
        finish(~exact & (small | floor | still), Outcome.CONVERGED)
        finish(~exact & ~small & ~floor & ~still & stuck, Outcome.STALLED)
        go_on = ~ended
        active = active[go_on]
        state = state.take(go_on)
        model = model.take(go_on)
        weights = None if weights is None else weights[go_on]
        damping, growth, fresh = damping[go_on], growth[go_on], fresh[go_on]
        hessian, gradient, scale = hessian[go_on], gradient[go_on], scale[go_on]
    finish(np.ones(active.size, dtype=np.bool_), Outcome.ITERATION_LIMIT)
    return Solutions(final, final_loss, tuple(outcomes), done)


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
