"""From a table of trajectories to a system of differential equations."""

from __future__ import annotations

import math
import os
import time as clock
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from physdiffuser.dynamics.all_rows import chosen_by_all_rows, on_all_rows
from physdiffuser.dynamics.attempts import Attempt, best_attempt
from physdiffuser.dynamics.options import DynamicsOptions
from physdiffuser.dynamics.report.answer import equations, summary
from physdiffuser.dynamics.report.conserved import conserved
from physdiffuser.dynamics.report.solution import Conserved, DynamicsSolution, SimulatedRun
from physdiffuser.dynamics.schedule import POLICY as SCHEDULE
from physdiffuser.dynamics.schedule import Period, never
from physdiffuser.dynamics.trajectories.reading import TrajectoryRequest, read_trajectories
from physdiffuser.dynamics.trajectories.runs import Trajectories
from physdiffuser.dynamics.trajectories.units import with_units
from physdiffuser.dynamics.verification.diagnostics import diagnostics
from physdiffuser.dynamics.verification.simulation import kept_points
from physdiffuser.errors import UsageError
from physdiffuser.search.parallel.workers import forked_workers
from physdiffuser.verification.patience import symbolic_patience

if TYPE_CHECKING:
    import pandas

READING = ("encoding", "delimiter", "header", "thousands", "units_row")


def solve_dynamics(
    source: str | os.PathLike[str] | pandas.DataFrame | Mapping[str, Any],
    *,
    time_column: str | None = None,
    states: Sequence[str] | None = None,
    inputs: Sequence[str] = (),
    runs: str | None = None,
    **options: Any,
) -> DynamicsSolution:
    """Find the differential equations behind a table of trajectories.

    Parameters
    ----------
    source
        A path, `-` for standard input, a DataFrame, or a mapping of column names to values.
    time_column
        Name of the time; the first column when None. Rows need not be equidistant.
    states
        Names of the state variables; all other columns when None. Values may be missing.
    inputs
        Names of known driving inputs, which are interpolated linearly between the times.
    runs
        Name of a column of numbers that tells the runs apart.
    **options
        As in `DynamicsOptions` (time, steps, seed, operators, noise_model, ...), and for reading a file as in
        `physdiffuser.solve` (encoding, delimiter, header, thousands, units_row).

    Returns
    -------
    DynamicsSolution
        `equations`, `simulate`, `to_sympy`, `latex` and the rest.

    Raises
    ------
    PhysdiffuserError
        With one message, when the table, a file or an option cannot be used.

    Examples
    --------
    >>> import numpy as np
    >>> t = np.linspace(0, 4, 60)
    >>> found = solve_dynamics({"t": t, "x": 3 * np.exp(-0.5 * t)}, steps=2)
    >>> found.equations[0].best.text
    '-0.5*x'
    """
    started = clock.monotonic()
    for name, given in (("states", states), ("inputs", inputs)):
        if isinstance(given, str):
            raise UsageError(f"{name}={given!r}: must be a list of names, such as [{given!r}]")
    reading = {name: options.pop(name) for name in READING if name in options}
    chosen = DynamicsOptions.of(options)
    request = TrajectoryRequest(time_column, None if states is None else tuple(states), tuple(inputs), runs)
    table = read_trajectories(source, request, **reading)
    if chosen.units is not None:
        table = with_units(table, chosen.units)
    return solve_trajectories(table, chosen, started)


def solve_trajectories(
    table: Trajectories, options: DynamicsOptions, started: float | None = None
) -> DynamicsSolution:
    """Find the differential equations behind trajectories.

    Raises
    ------
    NothingFoundError
        If no system of finite equations follows the trajectories.
    """
    started = clock.monotonic() if started is None else started
    limit = options.time_limit
    period = Period(started, math.inf if limit is None else started + limit)
    with forked_workers(options.jobs) as workers:
        attempt = best_attempt(table, options, period.part(SCHEDULE.attempts), workers)
    attempt = chosen_by_all_rows(attempt, options.seed, period.part(SCHEDULE.reconsidered).is_over)
    searched = clock.monotonic()
    final, selector = on_all_rows(attempt, period.part(SCHEDULE.final_fit).is_over)
    solutions = equations(
        attempt.table, selector, final, attempt.found, attempt.rivals, attempt.judged, options.seed
    )
    answer = summary(attempt.table, solutions, attempt.simulation)
    notes = dict(table.notes)
    quantities: tuple[Conserved, ...] = ()
    if period.is_over():
        notes["conserved"] = "not searched for: the time was used up"
    else:
        with symbolic_patience(limit, never):
            quantities = conserved(answer, attempt.everything, options.seed)
    return replace(
        answer,
        runs=_simulated_runs(attempt),
        conserved=quantities,
        warnings=(*table.warnings, *diagnostics(attempt.table, attempt.simulation)),
        notes=notes,
        timing={
            "elapsed_seconds": clock.monotonic() - started,
            "search_seconds": searched - started,
        },
        seed=options.seed,
    )


def _simulated_runs(attempt: Attempt) -> tuple[SimulatedRun, ...]:
    """The runs beside their simulations, for the report."""
    table, simulation = attempt.table, attempt.simulation
    return tuple(
        SimulatedRun(
            run.label,
            run.times,
            run.states[:, : table.measured],
            path,
            error,
            kept_points(attempt.division, number, run.points),
        )
        for number, (run, path, error) in enumerate(
            zip(table.runs, simulation.paths, simulation.bands, strict=True)
        )
    )
