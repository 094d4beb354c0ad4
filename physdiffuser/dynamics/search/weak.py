"""The weak form of the equations: integrals against test functions, which need no derivative of the data.

For a test function `w` that vanishes at both ends of its window, `-int w' x dt = int w f(x, t) dt`. Where the
states have no noise, the windows are the intervals between two times and `w` is 1 on them: the left side is
then the exact difference of two values.

References
----------
Messenger and Bortz, *Multiscale Modeling and Simulation* 19 (2021).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from physdiffuser.arrays import FloatArray
from physdiffuser.dynamics.trajectories.runs import Trajectories, Trajectory
from physdiffuser.dynamics.trajectories.smoothing import Curve
from physdiffuser.expressions import Expression, evaluate, value_and_jacobian

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(4)
NODES = _NODES.size
"""Nodes of the quadrature between two times."""
_HALF_WIDTH = 5
"""Half the width of a test function, in steps between times."""
_POWER = 4
"""The test function is (1 - s**2)**power."""
MAX_WINDOWS = 1_000
_INTERPOLATED = 1e-7
"""Windows where the interpolation errs by more than this share count for less."""


@dataclass(frozen=True, eq=False)
class WeakForm:
    """Rows of the weak form of one system.

    Attributes
    ----------
    nodes
        Shape (nodes, variables): states, inputs and time where the integrals are evaluated.
    weights
        Shape (windows, nodes), sparse: the test functions with their quadrature weights, normalised.
    rates
        Shape (windows, states): mean rate of change of each state under each test function.
    errors
        Shape (windows, states): its standard error.
    """

    nodes: FloatArray
    weights: sparse.csr_array
    rates: FloatArray
    errors: FloatArray

    @property
    def windows(self) -> int:
        """Number of rows."""
        return int(self.rates.shape[0])

    def mean(self, values: FloatArray) -> FloatArray:
        """Means under each test function, shape (windows, ...), of values at the nodes (nodes, ...)."""
        return np.asarray(self.weights @ values, dtype=np.float64)

    def residual(self, expression: Expression, state: int) -> FloatArray:
        """Shape (windows,), in standard errors; infinite where the formula has no value."""
        with np.errstate(all="ignore"):
            missed = (self.mean(evaluate(expression, self.nodes)) - self.rates[:, state]) / self.errors[
                :, state
            ]
        return np.where(np.isfinite(missed), missed, np.inf)

    def fit(
        self, skeleton: Expression, parameters: FloatArray, state: int, iterations: int = 30
    ) -> tuple[FloatArray, float]:
        """Levenberg-Marquardt from one start: parameters and mean squared residual in standard errors."""

        def at(values: FloatArray) -> tuple[FloatArray, FloatArray]:
            value, slopes = value_and_jacobian(skeleton, self.nodes, values)
            root = 1.0 / self.errors[:, state]
            return root * (self.mean(value) - self.rates[:, state]), root[:, None] * self.mean(slopes.T)

        if not parameters.size:
            residual = self.residual(skeleton, state)
            return parameters, float(np.mean(residual**2))
        with np.errstate(all="ignore"):
            residual, slopes = at(parameters)
            loss = float(residual @ residual)
            damping = 1e-3
            for _ in range(iterations):
                if not math.isfinite(loss) or not np.isfinite(slopes).all():
                    break
                size = np.sqrt(np.square(slopes).sum(axis=0)) + 1e-300
                unit = slopes / size
                moved = False
                while damping < 1e8:
                    stacked = np.concatenate([unit, math.sqrt(damping) * np.eye(size.size)])
                    right = np.concatenate([-residual, np.zeros(size.size)])
                    step = np.linalg.lstsq(stacked, right, rcond=None)[0] / size
                    new_residual, new_slopes = at(parameters + step)
                    new_loss = float(new_residual @ new_residual)
                    if math.isfinite(new_loss) and new_loss <= loss:
                        moved = True
                        break
                    damping *= 10.0
                if not moved:
                    break
                gain = loss - new_loss
                parameters, residual, slopes, loss = parameters + step, new_residual, new_slopes, new_loss
                damping = max(damping / 10.0, 1e-14)
                if gain <= 1e-8 * loss:
                    break
        return parameters, loss / self.windows if math.isfinite(loss) else math.inf


def weak_form(table: Trajectories, curves: Sequence[Sequence[Curve]], exact: bool) -> WeakForm:
    """Set up the weak form.

    Parameters
    ----------
    curves
        Of each run, one for each state.
    exact
        Whether the states have no noise, so that each interval between two times is a window.
    """
    nodes, weights, rates, errors = [], [], [], []
    for run, smoothed in zip(table.runs, curves, strict=True):
        grid = _Grid(table, run, smoothed)
        nodes.append(grid.variables)
        if exact:
            part, rate, error = _hats(grid) if table.order == 2 else _steps(grid)
        else:
            part, rate, error = _windows(grid)
        weights.append(part)
        rates.append(rate)
        errors.append(error)
    return WeakForm(
        np.concatenate(nodes),
        sparse.csr_array(sparse.block_diag(weights, format="csr")),
        np.concatenate(rates),
        np.concatenate(errors),
    )


class _Grid:
    """One run with the nodes of the quadrature between its times."""

    def __init__(self, table: Trajectories, run: Trajectory, curves: Sequence[Curve]) -> None:
        self.times, self.curves, self.measured = run.times, curves, table.measured
        self.order = table.order
        self.steps = np.diff(run.times)
        self.points = (run.times[:-1, None] + 0.5 * self.steps[:, None] * (1.0 + _NODES)).ravel()
        self.lengths = (0.5 * self.steps[:, None] * _WEIGHTS).ravel()
        states = [curve.value(self.points) for curve in curves]
        inputs = [np.interp(self.points, run.times, column) for column in run.inputs.T]
        self.variables = np.column_stack([*states, *inputs, self.points])

    @property
    def errors(self) -> FloatArray:
        """Weight of each step between two times: larger where the interpolation is inaccurate."""
        # (steps * nodes,) -> (steps, nodes)
        bent = _interpolation_error(self.points, self.curves).reshape(self.steps.size, -1).mean(axis=1)
        return np.asarray(1.0 + bent / _INTERPOLATED, dtype=np.float64)


Rows = tuple[sparse.csr_array, FloatArray, FloatArray]
"""Weights of the nodes, rates and their errors."""


def _steps(grid: _Grid) -> Rows:
    """Each interval between two times is a window."""
    rows = np.repeat(np.arange(grid.steps.size), _NODES.size)
    shares = grid.lengths / np.repeat(grid.steps, _NODES.size)
    part = sparse.csr_array((shares, (rows, np.arange(grid.points.size))))
    ends = np.column_stack([curve.value(grid.times) for curve in grid.curves])
    rate = np.diff(ends, axis=0) / grid.steps[:, None]
    return part, rate, grid.errors[:, None] * (rate.std(axis=0) + 1e-300)


def _hats(grid: _Grid) -> Rows:
    """Test functions that rise over one interval and fall over the next.

    The integral of the second derivative against one of them is the difference of the two slopes, which are
    known exactly.
    """
    steps = grid.steps
    count, nodes = steps.size - 1, _NODES.size
    rise, fall = 0.5 * (1.0 + _NODES), 0.5 * (1.0 - _NODES)
    shape = np.concatenate([np.tile(rise, (count, 1)), np.tile(fall, (count, 1))], axis=1)
    first = nodes * np.arange(count)[:, None] + np.arange(2 * nodes)
    norm = 0.5 * (steps[:-1] + steps[1:])
    shares = shape * grid.lengths[first] / norm[:, None]
    rows = np.repeat(np.arange(count), 2 * nodes)
    part = sparse.csr_array((shares.ravel(), (rows, first.ravel())), shape=(count, grid.points.size))
    ends = np.column_stack([curve.value(grid.times) for curve in grid.curves[: grid.measured]])
    slopes = np.diff(ends, axis=0) / steps[:, None]
    second = np.diff(slopes, axis=0) / norm[:, None]
    first_rates = part @ grid.variables[:, grid.measured : 2 * grid.measured]
    rate = np.concatenate([first_rates, second], axis=1)
    inaccurate = np.maximum(grid.errors[:-1], grid.errors[1:])
    return part, rate, inaccurate[:, None] * (rate.std(axis=0) + 1e-300)


def _interpolation_error(points: FloatArray, curves: Sequence[Curve]) -> FloatArray:
    """Largest error of the interpolated states at each node, as a share of their spread."""
    shares = [curve.error(points) / (float(np.std(curve.value(points))) or 1.0) for curve in curves]
    return np.asarray(np.max(shares, axis=0), dtype=np.float64)


def _windows(grid: _Grid) -> Rows:
    """Test functions on overlapping windows of one run."""
    times, points, lengths = grid.times, grid.points, grid.lengths
    half = _HALF_WIDTH * float(np.median(grid.steps))
    half = min(half, 0.25 * float(times[-1] - times[0]))
    count = min(max(int((times[-1] - times[0]) / half * 3), 8), MAX_WINDOWS)
    centres = np.linspace(times[0] + half, times[-1] - half, count)
    first, last = np.searchsorted(points, centres - half, "right"), np.searchsorted(points, centres + half)
    inside = np.concatenate([np.arange(begin, end) for begin, end in zip(first, last, strict=True)])
    rows = np.repeat(np.arange(count), last - first)
    place = (points[inside] - centres[rows]) / half
    shape = 1.0 - place**2
    weight = shape**_POWER * lengths[inside]
    norm = np.bincount(rows, weight, minlength=count)[rows]
    steepness = -2.0 * _POWER * place * shape ** (_POWER - 1) / half * lengths[inside]
    size = (count, points.size)
    test = sparse.csr_array((weight / norm, (rows, inside)), shape=size)
    slope = sparse.csr_array((steepness / norm, (rows, inside)), shape=size)
    rates, errors = [], []
    for curve in grid.curves:
        # The derivative of a state that is a derivative itself: the curve already holds the first one.
        rates.append(-(slope @ curve.value(points)))
        if curve.covariance is None:
            errors.append(np.full(count, 1e-9 * (float(np.std(rates[-1])) + 1e-300)))
            continue
        loading = slope @ curve.basis(points)
        errors.append(np.sqrt(np.maximum(np.einsum("wc,cd,wd->w", loading, curve.covariance, loading), 0.0)))
    error = np.column_stack(errors)
    return test, np.column_stack(rates), np.maximum(error, 1e-12 * np.abs(error).max())
