"""Chaotic systems: the largest Lyapunov exponent, and for how long a simulation follows the measured rows.

References
----------
Benettin et al., *Meccanica* 15 (1980).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.dynamics.integration.flow import InputsAt, System, integrate
from physdiffuser.dynamics.integration.segments import run_inputs
from physdiffuser.dynamics.trajectories.runs import Trajectories
from physdiffuser.expressions.tree import variables


@dataclass(frozen=True)
class ChaosPolicy:
    """When a system is called chaotic.

    Set on the development systems (docs/dynamics.md).
    """

    min_dimensions: int = 3
    """In a plane no bounded flow is chaotic (Poincare and Bendixson)."""
    min_growth: float = 5.0
    """Logarithm by which an error must grow along the runs; shear of a regular motion makes it grow a
    little."""
    max_spreading: float = 3.0
    """Growth of the motion from the first half of a run to the second; beyond it errors grow with the
    states."""
    lost: float = 0.5
    """Standard deviations of a state by which a simulation that has lost the measured rows is away from
    them."""
    step: float = 1e-6
    """Relative step of finite differences."""


POLICY = ChaosPolicy()


@dataclass(frozen=True)
class Horizon:
    """How far a chaotic system is predicted.

    Attributes
    ----------
    exponent
        Largest Lyapunov exponent along the runs, per unit of time.
    lyapunov_times
        How long the simulations from the first points follow the rows, in units of 1/exponent, in the
        run that is lost first.
    """

    exponent: float
    lyapunov_times: float


def lyapunov_exponent(
    system: System,
    path: FloatArray,
    times: FloatArray,
    scales: FloatArray,
    inputs_at: InputsAt | None = None,
) -> float:
    """Mean rate at which a small error grows along a path, without the first quarter; nan if it has no value.

    Parameters
    ----------
    system
        The equations, without parameters.
    path
        Shape (points, states).
    times
        Shape (points,).
    scales
        Shape (states,): units of the errors.
    """
    states = path.shape[1]
    starts = np.repeat(path[:-1].T[:, None, :], states + 1, axis=1)
    for state in range(states):
        starts[state, 1 + state] += POLICY.step * scales[state]
    steps = np.stack([times[:-1], times[1:]], axis=1)
    found = integrate(system, np.zeros((0, states + 1)), starts, steps, inputs_at, 2)[1]
    # Shape (states, states, intervals): how each state at the end depends on each at the beginning.
    # Both are in units of the scales, so that errors of different states compare.
    slopes = (found[:, 1:] - found[:, :1]) / (POLICY.step * scales[:, None, None])
    direction = np.ones(states) / math.sqrt(states)
    growth = []
    for interval in range(slopes.shape[2]):
        direction = slopes[:, :, interval] @ direction
        size = float(np.linalg.norm(direction))
        if not (math.isfinite(size) and size > 0.0):
            return math.nan
        growth.append(math.log(size))
        direction /= size
    first = len(growth) // 4
    return float(sum(growth[first:]) / (times[-1] - times[first]))


def horizon(system: System, table: Trajectories, paths: Sequence[FloatArray]) -> Horizon | None:
    """How far the simulated runs follow the measured ones; None if the system is not chaotic.

    Parameters
    ----------
    system
        The equations, without parameters.
    table, paths
        The runs, and each as simulated from its first point.
    """
    driven = any(variables(equation) - set(range(system.dimension)) for equation in system.equations)
    if system.dimension + driven < POLICY.min_dimensions:
        return None
    scales = np.where(table.scales > 0.0, table.scales, 1.0)
    exponents, followed, durations = [], [], []
    for number, (run, path) in enumerate(zip(table.runs, paths, strict=True)):
        if run.points < POLICY.min_dimensions or not np.isfinite(path).all() or _spreads(path):
            return None
        own = lyapunov_exponent(system, path, run.times, scales, run_inputs(table, number))
        exponents.append(own)
        durations.append(float(run.times[-1] - run.times[0]))
        followed.append(_followed(run.times, run.states, path, scales))
    weights = np.array(durations)
    exponent = float(np.array(exponents) @ weights / weights.sum())
    if not exponent * float(weights.max()) > POLICY.min_growth:
        return None
    return Horizon(exponent, exponent * min(followed))


def _spreads(path: FloatArray) -> bool:
    """Whether the second half of a path is much wider than the first."""
    half = path.shape[0] // 2
    apart = np.abs(path - path.mean(axis=0)).max(axis=1)
    return bool(apart[half:].max() > POLICY.max_spreading * apart[:half].max())


def _followed(times: FloatArray, measured: FloatArray, path: FloatArray, scales: FloatArray) -> float:
    """How long a path stays near the measured values."""
    with np.errstate(invalid="ignore"):
        away = np.abs(measured - path) > POLICY.lost * scales
    lost = np.flatnonzero(away.any(axis=1))
    return float(times[lost[0] if lost.size else -1] - times[0])
