"""Simulations from the found equations, and what they show on rows that the fit has not seen."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from physdiffuser.dynamics.integration.flow import System, simulate
from physdiffuser.dynamics.integration.segments import cut, run_inputs, value_errors
from physdiffuser.dynamics.integration.shooting import fit_segments
from physdiffuser.dynamics.search.selection import Fitted, Selector, mean_square
from physdiffuser.dynamics.trajectories.runs import Division, Trajectories
from physdiffuser.dynamics.trajectories.smoothing import Curve

FloatArray = npt.NDArray[np.float64]

EXACT_AGREEMENT = 1e-4
"""Largest error of a simulation, as a share of the state's spread, that agrees with values without noise."""
MOST_SQUARE = 1.6
"""Mean square of held-out residuals over that of the fitted ones that is still within the noise."""
LEAST_SIGNAL = 3.0
"""A held-out state must vary by so many standard deviations of its noise to be a test."""


@dataclass(frozen=True, eq=False)
class Simulation:
    """Simulated runs beside the measured ones.

    Attributes
    ----------
    paths
        Of each run of the table, shape (points, states): simulated from its first point. A system of second
        order has the derivatives behind the measured states.
    r2_fitted, r2_held_out
        By state; nan where there are no such rows.
    held_out
        In words; empty when nothing was held out.
    square
        Mean squared held-out residual in standard deviations of the noise.
    diverged
        Whether a simulation blew up or could not be continued.
    informative
        Whether the held-out rows vary by more than noise.
    agrees
        Whether the simulation meets the held-out rows within the noise; None when there are none.
    """

    paths: tuple[FloatArray, ...]
    r2_fitted: FloatArray
    r2_held_out: FloatArray
    held_out: str
    square: float
    diverged: bool
    informative: bool
    agrees: bool | None


def simulate_all(
    table: Trajectories, division: Division, selector: Selector, fitted: Fitted, curves: list[list[Curve]]
) -> Simulation:
    """Simulate every run from its first point, and compare.

    Parameters
    ----------
    table
        All runs, whole.
    division
        What of them was fitted.
    selector, fitted
        The fit on those.
    curves
        Of each run of `table`, for initial states of runs that the fit has not seen.
    """
    system = System(fitted.expressions, len(table.inputs))
    initial = _initial_states(table, division, selector, fitted, curves)
    exact = selector.prepared.exact
    measured_states = table.measured
    errors = [error[:, :measured_states] for error in value_errors(table, curves, exact)]
    scales = table.scales[:measured_states]
    paths: list[FloatArray] = []
    fitted_pairs, held_pairs, held_residuals = [], [], []
    for number, run in enumerate(table.runs):
        path = simulate(
            system, initial[number], run.times, run_inputs(table, number), 1e-10 if exact else 1e-8
        )
        paths.append(path)
        kept = kept_points(division, number, run.points)
        seen, own = run.states[:, :measured_states], path[:, :measured_states]
        fitted_pairs.append((seen[:kept], own[:kept]))
        held_pairs.append((seen[kept:], own[kept:]))
        size = EXACT_AGREEMENT * scales if exact else errors[number][kept:]
        with np.errstate(all="ignore"):
            held_residuals.append((own[kept:] - seen[kept:]) / size)
    diverged = any(not np.isfinite(path).all() for path in paths)
    residuals = np.concatenate(held_residuals)
    measured = np.concatenate([seen for seen, _ in held_pairs])
    known = np.isfinite(measured)
    square, agrees, informative = math.nan, None, False
    if known.any():
        with np.errstate(all="ignore"):
            square = float(np.mean(np.where(np.isfinite(residuals), residuals, np.inf)[known] ** 2))
        noise = np.ones_like(scales) * 1e-9 * scales if exact else _noise(errors)
        spread = np.nanstd(measured, axis=0)
        informative = bool((spread > LEAST_SIGNAL * noise).any())
        limit = 1.0 if exact else _limit(int(known.sum())) * max(mean_square(fitted), 1.0)
        agrees = square <= limit
    return Simulation(
        tuple(paths),
        _r2(fitted_pairs),
        _r2(held_pairs),
        division.held_out,
        square,
        diverged,
        informative,
        agrees,
    )


def _limit(count: int) -> float:
    """Mean square of so many residuals that noise alone exceeds once in a thousand."""
    return MOST_SQUARE * (1.0 + 3.1 * math.sqrt(2.0 / max(count, 1)))


def _noise(errors: list[FloatArray]) -> FloatArray:
    return np.asarray(np.median(np.concatenate(errors), axis=0), dtype=np.float64)


def kept_points(division: Division, number: int, points: int) -> int:
    """How many points of a run the fit has seen."""
    if division.run is not None:
        return 0 if number == division.run else points
    return division.fitted.runs[number].points


def _initial_states(
    table: Trajectories, division: Division, selector: Selector, fitted: Fitted, curves: list[list[Curve]]
) -> list[FloatArray]:
    """The state at the first point of each run: as fitted, or fitted now with the constants as they are."""
    found: list[FloatArray] = []
    for number, run in enumerate(table.runs):
        first = run.states[0]
        if selector.prepared.exact and np.isfinite(first).all():
            found.append(first)
            continue
        single = replace(table, runs=(run,))
        if division.run is None:
            single = replace(table, runs=(division.fitted.runs[number],))
        own = [curves[number]]
        errors = value_errors(single, own, selector.prepared.exact)
        intervals = min(fitted.intervals if fitted.intervals > 1 else 12, single.runs[0].points - 1)
        segments = cut(single, own, errors, intervals)
        fit = fit_segments(
            System(fitted.expressions, len(table.inputs)), np.zeros(0), segments, substeps=fitted.substeps
        )
        start = fit.initial[0] if math.isfinite(fit.chi_square) else segments.initial[0]
        found.append(start)
    return found


def _r2(pairs: list[tuple[FloatArray, FloatArray]]) -> FloatArray:
    """Coefficient of determination of each state over all pairs of measured and simulated rows."""
    measured = np.concatenate([seen for seen, _ in pairs])
    simulated = np.concatenate([path for _, path in pairs])
    result = np.full(measured.shape[1], np.nan)
    for state in range(measured.shape[1]):
        known = np.isfinite(measured[:, state])
        if known.sum() < 2:
            continue
        truth, path = measured[known, state], simulated[known, state]
        total = float(np.sum((truth - truth.mean()) ** 2))
        if total == 0.0:
            continue
        left = float(np.sum((truth - path) ** 2)) if np.isfinite(path).all() else math.inf
        result[state] = 1.0 - left / total
    return result
