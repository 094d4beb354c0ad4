"""From a table of trajectories to a system of differential equations."""

from __future__ import annotations

import os
import time as clock
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from physdiffuser.dynamics.answer import equations, summary
from physdiffuser.dynamics.candidates import Candidate, Preparation, candidates
from physdiffuser.dynamics.constants import with_exact_constants
from physdiffuser.dynamics.options import DynamicsOptions
from physdiffuser.dynamics.reading import TrajectoryRequest, read_trajectories
from physdiffuser.dynamics.selection import Fitted, Selector
from physdiffuser.dynamics.simulation import simulate_all
from physdiffuser.dynamics.smoothing import Curve, smooth_all
from physdiffuser.dynamics.solution import DynamicsSolution
from physdiffuser.dynamics.trajectories import Trajectories, divide
from physdiffuser.dynamics.verdict import judge_system
from physdiffuser.dynamics.weak import weak_form
from physdiffuser.errors import NothingFoundError, UsageError

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
    deadline = float("inf") if limit is None else started + limit
    division = divide(table)
    prepared = prepare(division.fitted, options)
    found = _all_candidates(prepared, options, deadline)
    searched = clock.monotonic()
    selector = Selector(prepared, lambda: clock.monotonic() > deadline)
    best, rivals = selector.choose(found)
    best = selector.lengthened(best)
    if not np.isfinite(best.length):
        raise NothingFoundError(
            "no system of equations follows the trajectories. Give more time (--time) or steps (--steps), "
            "or check that the states are all that the system depends on."
        )
    exact = with_exact_constants(selector, best)
    everything = prepare(table, options)
    simulation = simulate_all(table, division, selector, exact, everything.curves)
    judged = judge_system(exact, simulation, [gap for _, _, gap in rivals], prepared.exact)
    final, final_selector = _on_all_rows(best, exact, everything, selector, division.held_out != "")
    solutions = equations(table, final_selector, final, found, rivals, judged, options.seed)
    return replace(
        summary(table, solutions, simulation),
        warnings=table.warnings,
        notes=table.notes,
        timing={
            "elapsed_seconds": clock.monotonic() - started,
            "search_seconds": searched - started,
        },
        seed=options.seed,
    )


def prepare(table: Trajectories, options: DynamicsOptions) -> Preparation:
    """Smooth the states and set up the weak form."""
    by_state: list[list[Curve]] = []
    for state in range(len(table.states)):
        series = []
        for run in table.runs:
            known = np.isfinite(run.states[:, state])
            series.append((run.times[known], run.states[known, state]))
        by_state.append(smooth_all(series, options.noise_model))
    curves = [[own[number] for own in by_state] for number in range(len(table.runs))]
    exact = all(curve.interpolates for own in by_state for curve in own)
    columns = tuple(range(len(table.states) + len(table.inputs)))
    return Preparation(table, curves, weak_form(table, curves, exact), exact, columns)


def _all_candidates(
    prepared: Preparation, options: DynamicsOptions, deadline: float
) -> list[list[Candidate]]:
    """Candidates for every state; each search gets an equal share of what is left of 70 % of the time."""
    count = len(prepared.table.states)
    found = []
    for state in range(count):
        seconds = None
        if deadline < float("inf"):
            seconds = max(0.7 * (deadline - clock.monotonic()) / (count - state), 0.5)
        own = candidates(prepared, state, options.search(seconds))
        if not own:
            name = prepared.table.states[state].shown
            raise NothingFoundError(f"no equation with finite values was found for '{name}'. Give more time.")
        found.append(own)
    return found


def _on_all_rows(
    free: Fitted, exact: Fitted, everything: Preparation, selector: Selector, held_out: bool
) -> tuple[Fitted, Selector]:
    """The system with its constants fitted to all rows, after the check on the held-out ones."""
    if not held_out:
        return exact, selector
    whole = Selector(everything, selector.stop)
    intervals = free.intervals if free.intervals < selector.longest else whole.longest
    if everything.exact:
        intervals = 1
    fitted = whole.fit(free.skeletons, free.parts(), intervals, free.substeps)
    if not np.isfinite(fitted.length):
        return exact, selector
    return with_exact_constants(whole, fitted), whole
