"""From a table to trajectories: which column is the time, which are states, where a run ends."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from physdiffuser.arrays import FloatArray, IndexArray
from physdiffuser.data.aliases import assign_aliases
from physdiffuser.data.dataset import Column
from physdiffuser.data.readers.formats import read_table
from physdiffuser.data.selection import did_you_mean, find_column, refuse_text
from physdiffuser.data.table import Table, TableColumn
from physdiffuser.dynamics.trajectories.runs import Trajectories, Trajectory
from physdiffuser.errors import DataError, UsageError
from physdiffuser.io.display import counted, listed, visible

if TYPE_CHECKING:
    import pandas

FEWEST = 5
"""Points that a run must have: a derivative takes neighbours."""
MAX_MISSING = 0.7
"""A state with a larger share of gaps is refused."""


@dataclass(frozen=True)
class TrajectoryRequest:
    """The columns that the user named; None where nothing was said.

    Attributes
    ----------
    time
        The time; the first column when None.
    states
        The state variables; all other columns when None.
    inputs
        Known driving inputs.
    runs
        Identifies rows of the same run.
    """

    time: str | None = None
    states: tuple[str, ...] | None = None
    inputs: tuple[str, ...] = ()
    runs: str | None = None


def read_trajectories(
    source: str | os.PathLike[str] | pandas.DataFrame | Mapping[str, Any],
    request: TrajectoryRequest,
    **reading: Any,
) -> Trajectories:
    """Read a table of trajectories.

    Parameters
    ----------
    source
        A path, `-` for standard input, a DataFrame, or a mapping of column names to values.
    **reading
        How a file is written, as in `read_table`.

    Raises
    ------
    UsageError
        If a column does not exist or is asked to play two parts.
    DataError
        If time does not increase within a run, has gaps, or too little is left.
    """
    table = read_table(source, **reading)  # type: ignore[arg-type]  # a mapping is made a frame
    warnings = list(table.warnings)
    parts = _parts(table, request, warnings)
    runs = _runs(table, parts)
    if all(rows.size < FEWEST for rows in runs):
        column = "none given" if parts.runs is None else f"'{visible(parts.runs.name)}'"
        raise DataError(
            f"{table.source}: no run has {FEWEST} points. A run is a series of times; "
            f"check the column of runs ({column})."
        )
    states, inputs = _without_constants(table, parts, runs, warnings)
    names = [*(column.name for column in states), *(column.name for column in inputs), parts.time.name]
    aliases = assign_aliases(names)
    columns = [Column(name, alias) for name, alias in zip(names, aliases, strict=True)]
    trajectories = [_trajectory(table, parts, rows, states, inputs) for rows in runs]
    kept = tuple(run for run in trajectories if run is not None)
    if len(kept) < len(trajectories):
        few = len(trajectories) - len(kept)
        warnings.append(f"{counted(few, 'run')} with fewer than {FEWEST} points left out")
    if not kept:
        raise DataError(
            f"{table.source}: no run has {FEWEST} values of every state. "
            "Leave sparse columns out with --states."
        )
    return Trajectories(
        time=columns[-1],
        states=tuple(columns[: len(states)]),
        inputs=tuple(columns[len(states) : -1]),
        runs=kept,
        warnings=tuple(warnings),
        notes={**table.notes, "time": f"{columns[-1].shown}"},
        source=table.source,
    )


@dataclass(frozen=True)
class _Parts:
    time: TableColumn
    states: list[TableColumn]
    inputs: list[TableColumn]
    runs: TableColumn | None


def _parts(table: Table, request: TrajectoryRequest, warnings: list[str]) -> _Parts:
    """Find the columns, and refuse those that play two parts."""
    by_position = {column.position - 1: column for column in table.columns}

    def position(name: str, option: str) -> int:
        found = find_column(table.names, name)
        if found is None:
            raise UsageError(
                f"{option}: {table.source} has no column '{visible(name)}'. {did_you_mean(table.names, name)}"
            )
        return found

    runs = None if request.runs is None else position(request.runs, "--runs")
    inputs = [position(name, "--inputs") for name in request.inputs]
    time = None if request.time is None else position(request.time, "--time-column")
    if time is None:
        free = [place for place in by_position if place != runs and place not in inputs]
        numbers = [place for place in free if by_position[place].kind == "number"]
        if not numbers:
            raise DataError(f"{table.source}: there is no column of numbers that could be the time.")
        time = numbers[0]
    if request.states is not None:
        states = [position(name, "--states") for name in request.states]
    else:
        taken = {time, runs, *inputs}
        states = [p for p, c in by_position.items() if p not in taken and c.kind in ("number", "boolean")]
        text = [c.name for p, c in by_position.items() if p not in taken and c.kind == "text"]
        if text:
            warnings.append(f"left out because they hold text: {listed(text)}")
    _refuse_twice(table, {"--time-column": [time], "--runs": [runs], "--inputs": inputs, "--states": states})
    if not states:
        raise DataError(
            f"{table.source}: besides the time '{visible(by_position[time].name)}' there is no column of "
            "numbers. A system needs at least one state variable."
        )
    named = [time, *states, *inputs, *([] if runs is None else [runs])]
    refuse_text([by_position[place] for place in named], table.source)
    return _Parts(
        by_position[time],
        [by_position[place] for place in states],
        [by_position[place] for place in inputs],
        None if runs is None else by_position[runs],
    )


def _refuse_twice(table: Table, parts: dict[str, Sequence[int | None]]) -> None:
    seen: dict[int, str] = {}
    for option, positions in parts.items():
        for place in positions:
            if place is None:
                continue
            if place in seen:
                name = visible(table.names[place])
                first = seen[place]
                both = f"twice in {option}" if first == option else f"in {first} and in {option}"
                raise UsageError(f"column '{name}' stands {both}. A column has one part; name it once.")
            seen[place] = option


def _runs(table: Table, parts: _Parts) -> list[IndexArray]:
    """Rows of each run, in order of appearance."""
    time = parts.time.values
    missing = np.flatnonzero(np.isnan(time))
    shown = visible(parts.time.name)
    if missing.size:
        raise DataError(
            f"{table.source}: the time '{shown}' is missing in {counted(int(missing.size), 'row')} "
            f"(first: data row {missing[0] + 1}). Fill it, or remove those rows."
        )
    if parts.runs is None:
        labels = np.zeros(table.rows)
    else:
        labels = parts.runs.values
        if np.isnan(labels).any():
            row = int(np.flatnonzero(np.isnan(labels))[0]) + 1
            raise DataError(
                f"{table.source}: the column of runs '{visible(parts.runs.name)}' is empty in data row "
                f"{row}. Give every row the number of its run."
            )
    runs = [np.flatnonzero(labels == label) for label in dict.fromkeys(labels.tolist())]
    for rows in runs:
        _check_times(table, parts, time[rows], rows)
    return runs


def _check_times(table: Table, parts: _Parts, times: FloatArray, rows: IndexArray) -> None:
    steps = np.diff(times)
    wrong = np.flatnonzero(steps <= 0)
    if not wrong.size:
        return
    at = int(wrong[0])
    row, shown = int(rows[at + 1]) + 1, visible(parts.time.name)
    if steps[at] == 0:
        raise DataError(
            f"{table.source}: data rows {int(rows[at]) + 1} and {row} have the same time "
            f"'{shown}' = {times[at]:g}. Keep one row for each time, or name the column that tells "
            "runs apart with --runs."
        )
    hint = (
        "If the table holds several runs, name the column that tells them apart with --runs"
        if parts.runs is None
        else "Sort the rows of each run by time"
    )
    raise DataError(
        f"{table.source}: the time '{shown}' goes back from {times[at]:g} to {times[at + 1]:g} in data row "
        f"{row}. {hint}."
    )


def _without_constants(
    table: Table, parts: _Parts, runs: list[IndexArray], warnings: list[str]
) -> tuple[list[TableColumn], list[TableColumn]]:
    """States that change, and inputs; a column that is constant within each run is an input."""
    states: list[TableColumn] = []
    inputs = list(parts.inputs)
    for column in parts.states:
        values = column.values
        share = float(np.isnan(values).mean())
        if share > MAX_MISSING:
            raise DataError(
                f"{table.source}: {100 * share:.0f} % of the values of '{visible(column.name)}' are missing. "
                "Leave the column out with --states."
            )
        if share:
            warnings.append(f"'{visible(column.name)}' has {100 * share:.3g} % missing values")
        within = all(
            np.nanmax(values[rows]) == np.nanmin(values[rows]) for rows in runs if _known(values[rows])
        )
        if not within:
            states.append(column)
        elif np.nanmax(values) == np.nanmin(values):
            warnings.append(f"left out because it is constant: '{visible(column.name)}'")
        else:
            warnings.append(
                f"'{visible(column.name)}' is constant within each run and was taken for an input"
            )
            inputs.append(column)
    if not states:
        raise DataError(
            f"{table.source}: every state is constant, so there is no dynamics to be found. "
            "Name the columns that change with --states."
        )
    for column in inputs:
        if np.isnan(column.values).any():
            row = int(np.flatnonzero(np.isnan(column.values))[0]) + 1
            raise DataError(
                f"{table.source}: the input '{visible(column.name)}' is missing in data row {row}. "
                "An input must be known at all times; fill the gap."
            )
    return states, inputs


def _known(values: FloatArray) -> bool:
    return bool(np.isfinite(values).any())


def _trajectory(
    table: Table,
    parts: _Parts,
    rows: IndexArray,
    states: list[TableColumn],
    inputs: list[TableColumn],
) -> Trajectory | None:
    values = np.column_stack([column.values[rows] for column in states])
    keep = np.isfinite(values).any(axis=1)
    if int(np.isfinite(values).sum(axis=0).min()) < FEWEST:
        return None
    rows, values = rows[keep], values[keep]
    driving = (
        np.column_stack([column.values[rows] for column in inputs]) if inputs else np.zeros((rows.size, 0))
    )
    label = "" if parts.runs is None else f"{parts.runs.values[rows[0]]:g}"
    return Trajectory(label, parts.time.values[rows].copy(), values, driving)
