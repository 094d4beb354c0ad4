"""Simulations from the found equations, and what they show on rows that the fit has not seen."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.dynamics.integration.flow import System, simulate
from physdiffuser.dynamics.integration.segments import cut, run_inputs, value_errors
from physdiffuser.dynamics.integration.shooting import fit_segments
from physdiffuser.dynamics.search.selection import Fitted, Selector, mean_square
from physdiffuser.dynamics.trajectories.runs import Division, Trajectories
from physdiffuser.dynamics.trajectories.smoothing import Curve
from physdiffuser.dynamics.verification.band import path_errors
from physdiffuser.dynamics.verification.chaos import Horizon, horizon

EXACT_AGREEMENT = 1e-4
"""Largest error of a simulation, as a share of the state's spread, that agrees with values without noise."""
MAX_SQUARE = 1.25
"""Mean square of held-out residuals over that of the fitted ones that is still within the errors."""
MIN_SIGNAL = 3.0
"""Every held-out state must vary by so many standard deviations of its error to be a test."""


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
        Whether each state varies in the held-out rows by more than the noise and the error of the simulation.
    agrees
        Whether the simulation meets the held-out rows within the noise and the errors that the constants
        give it; None when there are none.
    bands
        Standard deviations of the simulated values by the errors of the constants, as in `path_errors`.
    horizon
        How far a chaotic system is predicted; None for others.
    """

    paths: tuple[FloatArray, ...]
    r2_fitted: FloatArray
    r2_held_out: FloatArray
    held_out: str
    square: float
    diverged: bool
    informative: bool
    agrees: bool | None
    bands: tuple[FloatArray | None, ...] = ()
    horizon: Horizon | None = None


def simulate_all(
    table: Trajectories,
    division: Division,
    selector: Selector,
    fitted: Fitted,
    curves: list[list[Curve]],
    seed: int = 0,
) -> Simulation:
    """Simulate every run from its first point, and compare.

    Parameters
    ----------
    division
        What of them was fitted.
    curves
        Of each run of `table`, for initial states of runs that the fit has not seen.
    seed
        Of the draws that give the errors of the simulated values.
    """
    system = System(fitted.expressions, len(table.inputs))
    initial = _initial_states(table, division, selector, fitted, curves)
    exact, count = selector.prepared.exact, table.measured
    paths = tuple(
        simulate(system, initial[number], run.times, run_inputs(table, number), 1e-10 if exact else 1e-8)
        for number, run in enumerate(table.runs)
    )
    bands = path_errors(table, selector, fitted, paths, seed)
    errors = [error[:, :count] for error in value_errors(table, curves, exact)]
    scales = table.scales[:count]
    fitted_pairs, held_pairs, sizes, uncertain = [], [], [], []
    for number, (run, path, band) in enumerate(zip(table.runs, paths, bands, strict=True)):
        kept = kept_points(division, number, run.points)
        seen, own = run.states[:, :count], path[:, :count]
        fitted_pairs.append((seen[:kept], own[:kept]))
        held_pairs.append((seen[kept:], own[kept:]))
        size = np.tile(EXACT_AGREEMENT * scales, (run.points - kept, 1)) if exact else errors[number][kept:]
        sizes.append(size)
        unknown = 0.0 if band is None else np.nan_to_num(band[kept:, :count], nan=np.inf)
        uncertain.append(np.hypot(size, unknown))
    square, agrees, informative = math.nan, None, False
    measured, simulated = (np.concatenate(parts) for parts in zip(*held_pairs, strict=True))
    known = np.isfinite(measured)
    if known.any():
        allowed = np.concatenate(uncertain)
        square = _mean_square(simulated, measured, np.concatenate(sizes))
        error = 1e-9 * scales if exact else np.median(allowed, axis=0)
        informative = bool((np.nanstd(measured, axis=0) > MIN_SIGNAL * error).all())
        limit = 1.0 if exact else _limit(int(known.sum())) * max(mean_square(fitted), 1.0)
        agrees = _mean_square(simulated, measured, allowed) <= limit
    return Simulation(
        paths,
        _r2(fitted_pairs),
        _r2(held_pairs),
        division.held_out,
        square,
        any(not np.isfinite(path).all() for path in paths),
        informative,
        agrees,
        bands,
        horizon(system, table, paths),
    )


def _mean_square(simulated: FloatArray, measured: FloatArray, errors: FloatArray) -> float:
    """Mean squared residual of the known values in their errors; infinite where a simulation has ended."""
    with np.errstate(all="ignore"):
        residuals = (simulated - measured) / errors
    return float(np.mean(np.where(np.isfinite(simulated), residuals, np.inf)[np.isfinite(measured)] ** 2))


def _limit(count: int) -> float:
    """Mean square of so many residuals that noise alone exceeds once in a thousand."""
    return MAX_SQUARE * (1.0 + 3.1 * math.sqrt(2.0 / max(count, 1)))


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
        # With the constants as they are each segment is fitted for itself: the first one is enough.
        single = replace(table, runs=(single.runs[0].take(0, intervals + 1),))
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
