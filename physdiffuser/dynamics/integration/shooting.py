"""Constants of all equations fitted jointly on the trajectories, by multiple shooting.

A trajectory is cut into segments. Each starts from its own initial state, which is fitted with the constants
(or taken from the values where they have no noise), and is integrated over its length. Short segments make
the problem nearly linear; long ones use all that the data say. Derivatives by the constants and initial
states come from the same batched integration.

References
----------
Bock, *Recent advances in parameter identification techniques for ODE* (1983).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.dynamics.integration.flow import ORDER_4, ORDER_8, InputsAt, System, integrate
from physdiffuser.dynamics.schedule import Stop, never

_PERTURBATION = 1e-6
_PRECISE = 1e-3
_ITERATIONS = 20
_MAX_TRIALS = 6
TOLERANCE, RANKING_TOLERANCE = 1e-6, 1e-3
"""Relative gain that ends a fit whose constants count, and one that only ranks candidates."""


@dataclass(frozen=True, eq=False)
class Segments:
    """Pieces of trajectories of equal length in points.

    Attributes
    ----------
    times
        Shape (segments, points). Where a run is shorter its last interval is repeated.
    values
        Shape (segments, points, states), nan where nothing is known (or the piece is too short).
    initial
        Shape (segments, states): initial states to start from, from smoothed curves.
    errors
        Shape (segments, points, states): standard deviation of each value.
    scales
        Shape (states,): standard deviation of each state.
    fixed
        Whether the initial states are exact and stay as they are.
    inputs_at
        Values of the inputs by segment; None without inputs.
    """

    times: FloatArray
    values: FloatArray
    initial: FloatArray
    errors: FloatArray
    scales: FloatArray
    fixed: bool
    inputs_at: InputsAt | None = None

    @property
    def precise(self) -> bool:
        """Whether the values are known so well that a method of high order is needed."""
        return self.fixed or bool((np.max(self.errors, axis=(0, 1)) < _PRECISE * self.scales).any())


@dataclass(frozen=True, eq=False)
class ShootingFit:
    """Result of a fit.

    Attributes
    ----------
    parameters
        Shape (parameters,).
    initial
        Shape (segments, states).
    residuals
        Shape (segments, points, states), in standard deviations; nan where no value is known.
    covariance
        Of the parameters, shape (parameters, parameters), for errors as given.
    converged
        Whether the last step was small.
    """

    parameters: FloatArray
    initial: FloatArray
    residuals: FloatArray
    covariance: FloatArray
    converged: bool

    @property
    def chi_square(self) -> float:
        """Sum of squares; infinite where the solution diverged."""
        return _squares(self.residuals)

    def squares(self) -> FloatArray:
        """Sum of squares and number of values of each state, shape (2, states)."""
        known = np.isfinite(self.residuals)
        squares = np.where(known, self.residuals, 0.0) ** 2
        return np.stack([squares.sum(axis=(0, 1)), known.sum(axis=(0, 1))])


def _squares(residuals: FloatArray) -> float:
    return float(np.nansum(residuals**2)) if not np.isinf(residuals).any() else math.inf


@dataclass(frozen=True, eq=False)
class _Linearised:
    """Residuals at some constants and initial states, and how they change with these.

    Attributes
    ----------
    residuals
        Shape (segments, points, states); nan where no value is known, infinite after divergence.
    by_parameters, by_initial
        Shapes (segments, values, parameters) and (segments, values, states); 0 where nothing is known.
    """

    residuals: FloatArray
    by_parameters: FloatArray
    by_initial: FloatArray

    @property
    def residual(self) -> FloatArray:
        """Shape (segments, values); 0 where no value is known."""
        known = np.where(np.isnan(self.residuals), 0.0, self.residuals)
        return known.reshape(known.shape[0], -1)


class _Model:
    """Residuals and their derivatives at given constants and initial states."""

    def __init__(self, system: System, segments: Segments, substeps: int, stop: Stop = never) -> None:
        self.system, self.segments, self.substeps, self.stop = system, segments, substeps, stop
        self.method = ORDER_8 if segments.precise else ORDER_4
        self.known = np.isfinite(segments.values)
        if segments.fixed:
            self.known[:, 0] = False
        self.size = np.maximum(np.abs(segments.initial), segments.scales + 1e-300)

    def residuals(self, parameters: FloatArray, initial: FloatArray) -> FloatArray:
        """Shape (segments, points, states); infinite where the solution has diverged."""
        found = self._run(parameters[:, None], initial.T[:, None, :])
        return self._scaled(found[:, :, 0])

    def _run(self, parameters: FloatArray, initial: FloatArray) -> FloatArray:
        segments = self.segments
        return integrate(
            self.system,
            parameters,
            initial,
            segments.times,
            segments.inputs_at,
            self.substeps,
            self.method,
            self.stop,
        )

    def _scaled(self, found: FloatArray) -> FloatArray:
        """From (points, states, segments) to residuals in standard deviations."""
        path = np.moveaxis(found, 2, 0)
        with np.errstate(all="ignore"):
            scaled = (path - self.segments.values) / self.segments.errors
        scaled = np.where(np.isfinite(path), scaled, np.inf)
        return np.where(self.known, scaled, np.nan)

    def linearised(self, parameters: FloatArray, initial: FloatArray) -> _Linearised:
        """Residuals, and their derivatives by parameters and initial states."""
        count, states = parameters.size, self.system.dimension
        free = 0 if self.segments.fixed else states
        copies = 1 + count + free
        steps = _PERTURBATION * np.where(parameters == 0.0, 1.0, np.abs(parameters))
        all_parameters = np.repeat(parameters[:, None], copies, axis=1)
        all_parameters[np.arange(count), 1 + np.arange(count)] += steps
        starts = np.repeat(initial.T[:, None, :], copies, axis=1)
        moves = _PERTURBATION * self.size
        for state in range(free):
            starts[state, 1 + count + state] += moves[:, state]
        found = self._run(all_parameters, starts)
        path = np.moveaxis(found, 3, 0)  # segments, points, states, copies
        base = path[..., :1]
        weights = np.where(self.known, 1.0 / self.segments.errors, 0.0)[..., None]
        with np.errstate(all="ignore"):
            by_parameters = (path[..., 1 : 1 + count] - base) / steps * weights
            by_initial = (path[..., 1 + count :] - base) / moves[:, None, None, :free] * weights
        residuals = self._scaled(found[:, :, 0])
        segments, values = residuals.shape[0], residuals.shape[1] * residuals.shape[2]
        return _Linearised(
            residuals,
            np.nan_to_num(by_parameters, nan=0.0, posinf=0.0, neginf=0.0).reshape(segments, values, count),
            np.nan_to_num(by_initial, nan=0.0, posinf=0.0, neginf=0.0).reshape(segments, values, free),
        )


def fit_segments(
    system: System,
    parameters: FloatArray,
    segments: Segments,
    *,
    iterations: int = _ITERATIONS,
    substeps: int = 1,
    initial: FloatArray | None = None,
    tolerance: float = TOLERANCE,
    stop: Stop = never,
) -> ShootingFit:
    """Levenberg-Marquardt over the constants and the initial states.

    Parameters
    ----------
    parameters
        Shape (parameters,), where to start.
    substeps
        Integration steps between two times.
    initial
        Shape (segments, states), where to start; as in `segments` when None.
    tolerance
        Relative gain of a step that ends the fit.
    stop
        Asked whether to end; a fit that has not converged then counts as diverged.
    """
    model = _Model(system, segments, substeps, stop)
    initial = (segments.initial if initial is None else initial).copy()
    here = model.linearised(parameters, initial)
    loss = _squares(here.residuals)
    damping, converged = 1e-4, False
    covariance = np.full((parameters.size, parameters.size), np.nan)
    for _ in range(iterations):
        if not math.isfinite(loss):
            break
        there: _Linearised | None = None
        for attempt in range(_MAX_TRIALS):
            step, starts = _step(here.residual, here.by_parameters, here.by_initial, damping)
            trial, trial_initial = parameters + step, initial + starts
            # Most first steps are good: what the next one needs is then integrated along with them.
            if attempt == 0:
                there = model.linearised(trial, trial_initial)
            trial_residuals = model.residuals(trial, trial_initial) if there is None else there.residuals
            trial_loss = _squares(trial_residuals)
            if math.isfinite(trial_loss) and trial_loss <= loss:
                there = model.linearised(trial, trial_initial) if there is None else there
                break
            there = None
            damping = max(damping, 1e-6) * 10.0
        if there is None:
            converged = True
            break
        gain = loss - trial_loss
        small = np.all(np.abs(step) <= 1e-12 * np.maximum(np.abs(parameters), 1e-12))
        parameters, initial, here, loss = trial, trial_initial, there, trial_loss
        damping = max(damping / 10.0, 1e-12)
        if gain <= tolerance * max(loss, 1e-30) or small:
            converged = True
            break
    residuals = here.residuals
    if stop() and not converged:
        residuals = np.where(model.known, np.inf, np.nan)
    elif math.isfinite(loss):
        covariance = _inverse(_reduced(here.by_parameters, here.by_initial)[0])
    return ShootingFit(parameters, initial, residuals, covariance, converged)


def _inverse(normal: FloatArray) -> FloatArray:
    """Pseudo-inverse of a normal matrix whose parameters may have very different units."""
    if not normal.size:
        return normal
    if not np.isfinite(normal).all():
        return np.full_like(normal, np.nan)
    size = np.sqrt(np.maximum(np.diag(normal), 0.0))
    size = np.where(size > 0.0, size, 1.0)
    unit = np.linalg.pinv(normal / np.outer(size, size), rcond=1e-14, hermitian=True)
    return np.asarray(unit / np.outer(size, size), dtype=np.float64)


def sensitivities(
    system: System, parameters: FloatArray, segments: Segments, initial: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Normal matrix and gradient of the squared residuals by the parameters, the initial states eliminated.

    Parameters
    ----------
    initial
        Shape (segments, states): where the segments start.

    Returns
    -------
    Shapes (parameters, parameters) and (parameters,).
    """
    model = _Model(system, segments, 1)
    here = model.linearised(parameters, initial)
    normal, gradient, _, _ = _reduced(here.by_parameters, here.by_initial, here.residual)
    return normal, gradient


def _reduced(
    by_parameters: FloatArray,
    by_initial: FloatArray,
    residual: FloatArray | None = None,
    damping: float = 0.0,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Normal equations of the parameters, the initial states of each segment eliminated."""
    normal = np.einsum("svp,svq->pq", by_parameters, by_parameters)
    residual = np.zeros(by_parameters.shape[:2]) if residual is None else residual
    gradient = np.einsum("svp,sv->p", by_parameters, residual)
    own = np.einsum("svi,svj->sij", by_initial, by_initial)
    states = own.shape[1]
    if not states:
        return normal, gradient, own, np.zeros((own.shape[0], 0, gradient.size + 1))
    diagonal = np.einsum("sii->si", own)
    lift = damping * diagonal + 1e-12 * diagonal.max(axis=1, keepdims=True) + 1e-300
    own = own + lift[:, :, None] * np.eye(states)
    cross = np.einsum("svi,svp->sip", by_initial, by_parameters)
    left = np.einsum("svi,sv->si", by_initial, residual)
    solved = np.linalg.solve(own, np.concatenate([cross, left[:, :, None]], axis=2))
    normal = normal - np.einsum("sip,siq->pq", cross, solved[:, :, :-1])
    gradient = gradient - np.einsum("sip,si->p", cross, solved[:, :, -1])
    return normal, gradient, own, solved


def _step(
    residual: FloatArray, by_parameters: FloatArray, by_initial: FloatArray, damping: float
) -> tuple[FloatArray, FloatArray]:
    """Steps of the parameters and of the initial states."""
    normal, gradient, _, solved = _reduced(by_parameters, by_initial, residual, damping)
    count = gradient.size
    step = np.zeros(count)
    if count:
        size = np.sqrt(np.maximum(np.einsum("svp,svp->p", by_parameters, by_parameters), 1e-300))
        with np.errstate(all="ignore"):
            scaled = normal / np.outer(size, size) + damping * np.eye(count)
        if not (np.isfinite(scaled).all() and np.isfinite(gradient).all() and np.isfinite(solved).all()):
            # Derivatives too large for their squares: the solution is about to diverge.
            return step, np.zeros((residual.shape[0], 1))
        step = -np.linalg.lstsq(scaled, gradient / size, rcond=1e-13)[0] / size
    if not solved.shape[1]:
        return step, np.zeros((residual.shape[0], 1))
    return step, -solved[:, :, -1] - np.einsum("sip,p->si", solved[:, :, :-1], step)


def joined(parts: Sequence[FloatArray]) -> FloatArray:
    """Parameters of several equations in one vector."""
    return np.concatenate([np.asarray(part, dtype=np.float64) for part in parts]) if parts else np.zeros(0)
