"""Fit the constants of a skeleton: from nothing (`fit_constants`) or from values at hand (`refit`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from physdiffuser.arrays import CHECK_ARRAYS, FloatArray, IndexArray, checked
from physdiffuser.expressions import Expression
from physdiffuser.expressions.tree import bind, distinct_constants, free_constants, parameter_count
from physdiffuser.fitting.levenberg_marquardt import Outcome, levenberg_marquardt
from physdiffuser.fitting.losses import Loss, relative_loss
from physdiffuser.fitting.polish import polish
from physdiffuser.fitting.starts.starts import draw_starts
from physdiffuser.fitting.varpro import SeparableModel

if TYPE_CHECKING or CHECK_ARRAYS:
    from jaxtyping import Float64

_ROWS_FOR_STARTS = 500
_FIRST_STEPS = 8


@dataclass(frozen=True)
class Fit:
    """Constants of a skeleton, fitted.

    Attributes
    ----------
    parameters
        Shape (parameters,).
    expression
        The skeleton with the fitted values in place.
    loss
        Relative to the best constant's (`fitting.losses.relative_loss`); inf when not finite.
    outcome
        How the fit ended, with advice.
    skeleton
        What was fitted.
    """

    parameters: FloatArray
    expression: Expression
    loss: float
    outcome: Outcome
    skeleton: Expression


@checked
def fit_constants(
    skeleton: Expression,
    inputs: Float64[np.ndarray, "rows columns"],
    target: Float64[np.ndarray, " rows"],
    *,
    weights: Float64[np.ndarray, " rows"] | None = None,
    loss: Loss = "squared",
    initial: Float64[np.ndarray, " parameters *starts"] | Sequence[float] | None = None,
    starts: int = 16,
    iterations: int = 60,
    tolerance: float = 1e-14,
    rng: np.random.Generator | None = None,
) -> Fit:
    """Fit every parameter of a skeleton, from several starts that the data suggest.

    More than eight parameters: one keyword for each option of a fit.

    Parameters
    ----------
    skeleton
        An expression with `Parameter` nodes.
    inputs
        Shape (rows, columns).
    target
        Shape (rows,).
    weights
        Shape (rows,), positive (1/sigma**2 for known errors), or None.
    loss
        "squared", or "robust" for errors with heavy tails.
    initial
        Shape (parameters,) or (parameters, k): starts to use before any other; no others are drawn where
        these are as many as `starts`.
    starts
        How many starts to follow. Fewer are needed when all parameters are linear (then one solve).
    iterations
        Most Levenberg-Marquardt steps per start.
    tolerance
        Relative decrease of the loss under which a start has converged.
    rng
        For the random starts; equal generators give equal results. `default_rng(0)` when None.
    """
    count = parameter_count(skeleton)
    if count == 0:
        return _without_parameters(skeleton, inputs, target, weights, loss)
    model = SeparableModel(skeleton, inputs, target, weights)
    if not model.nonlinear:
        return _finish(skeleton, model, np.ones((count, 1)), iterations, tolerance, loss, weights)
    rng = np.random.default_rng(0) if rng is None else rng
    given = (
        np.empty((count, 0)) if initial is None else np.array(initial, dtype=np.float64).reshape(count, -1)
    )
    if given.shape[1] >= starts:
        return _finish(skeleton, model, given, iterations, tolerance, loss, weights)
    small = model
    if target.shape[0] > _ROWS_FOR_STARTS:
        rows = np.sort(rng.choice(target.shape[0], _ROWS_FOR_STARTS, replace=False))
        part = None if weights is None else weights[rows]
        small = SeparableModel(skeleton, inputs[rows], target[rows], part)
        inputs, target = inputs[rows], target[rows]
    drawn = draw_starts(skeleton, inputs, target, model.nonlinear, max(64, 8 * starts), rng)
    points = np.concatenate([given, _most_promising(small, drawn, starts)], axis=1)
    # A few steps tell which starts are worth following to the end.
    first = levenberg_marquardt(small, points, iterations=_FIRST_STEPS, tolerance=1e-6, loss=loss)
    kept = _distinct(first.parameters, first.loss, model.nonlinear, max(3, starts // 4))
    if small is not model:
        second = levenberg_marquardt(small, first.parameters[:, kept], iterations=iterations, loss=loss)
        best = _distinct(second.parameters, second.loss, model.nonlinear, 2)
        return _finish(skeleton, model, second.parameters[:, best], iterations, tolerance, loss, weights)
    return _finish(skeleton, model, first.parameters[:, kept], iterations, tolerance, loss, weights)


@np.errstate(all="ignore")
def _most_promising(model: SeparableModel, points: FloatArray, count: int) -> FloatArray:
    """The points of smallest loss once the linear parameters are solved for, no two alike."""
    projected = model.loss_only(points)
    return projected.parameters[:, _distinct(points, projected.loss, model.nonlinear, count)]


def _distinct(points: FloatArray, loss: FloatArray, nonlinear: tuple[int, ...], count: int) -> IndexArray:
    """Indices of the best points that differ by more than 2 % in some nonlinear parameter."""
    order = np.argsort(loss, kind="stable")
    values = points[list(nonlinear)][:, order]
    chosen: list[int] = []
    for position in range(order.size):
        if chosen:
            others = values[:, chosen]
            distance = np.abs(others - values[:, [position]])
            close = distance <= 0.02 * np.maximum(np.abs(others), np.abs(values[:, [position]]))
            if close.all(axis=0).any():
                continue
        chosen.append(position)
        if len(chosen) == count:
            break
    return order[chosen]


@checked
def refit(
    expression: Expression,
    inputs: Float64[np.ndarray, "rows columns"],
    target: Float64[np.ndarray, " rows"],
    *,
    weights: Float64[np.ndarray, " rows"] | None = None,
    loss: Loss = "squared",
    iterations: int = 20,
    tolerance: float = 1e-14,
    tied: bool = False,
) -> Fit:
    """Fit the float constants of a formula again, starting from the values they have.

    Exact numbers (`2`, `3/2`) and named constants stay, and with `tied` equal constants stay equal. Takes a
    fraction of a millisecond for a short formula on some hundred rows.
    """
    skeleton, values = distinct_constants(expression) if tied else free_constants(expression)
    if not values:
        return _without_parameters(expression, inputs, target, weights, loss)
    model = SeparableModel(skeleton, inputs, target, weights)
    start = np.array(values)
    if model.nonlinear and loss == "squared":
        parameters, outcome = _polish_from(model, start, iterations, tolerance)
        if outcome in (Outcome.CONVERGED, Outcome.EXACT):
            return _fit(skeleton, model, parameters, outcome, loss, weights)
    return _finish(skeleton, model, start[:, None], iterations, tolerance, loss, weights)


@np.errstate(all="ignore")
def _polish_from(
    model: SeparableModel, start: FloatArray, iterations: int, tolerance: float
) -> tuple[FloatArray, Outcome]:
    if model.linear:
        # The best linear constants first: they may be far off, and cost one solve.
        start = model.loss_only(start[:, None]).parameters[:, 0]
    return polish(model, start, iterations, tolerance)


def _without_parameters(
    expression: Expression,
    inputs: FloatArray,
    target: FloatArray,
    weights: FloatArray | None,
    loss: Loss,
) -> Fit:
    from physdiffuser.expressions import evaluate

    value = relative_loss(evaluate(expression, inputs), target, weights, loss)
    outcome = Outcome.NO_PARAMETERS if np.isfinite(value) else Outcome.NOT_FINITE
    return Fit(np.zeros(0), expression, value, outcome, expression)


@np.errstate(all="ignore")
def _finish(
    skeleton: Expression,
    model: SeparableModel,
    points: FloatArray,
    iterations: int,
    tolerance: float,
    loss: Loss,
    weights: FloatArray | None,
) -> Fit:
    found = levenberg_marquardt(model, points, iterations=iterations, tolerance=tolerance, loss=loss)
    best = int(np.argmin(found.loss))
    return _fit(skeleton, model, found.parameters[:, best], found.outcomes[best], loss, weights)


@np.errstate(all="ignore")
def _fit(
    skeleton: Expression,
    model: SeparableModel,
    parameters: FloatArray,
    outcome: Outcome,
    loss: Loss,
    weights: FloatArray | None,
) -> Fit:
    value = relative_loss(model.tape.value(parameters), model.target, weights, loss)
    return Fit(parameters, bind(skeleton, list(parameters)), value, outcome, skeleton)
