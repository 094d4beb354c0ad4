"""Trajectories: runs of a system, each a series of times and the states measured at them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.data.dataset import Column


@dataclass(frozen=True, eq=False)
class Trajectory:
    """One run.

    Attributes
    ----------
    label
        Value of the column of runs, as text; empty when the table is one run.
    times
        Shape (points,), strictly increasing.
    states
        Shape (points, states), nan where a value is missing.
    inputs
        Shape (points, inputs), finite: known driving inputs.
    """

    label: str
    times: FloatArray
    states: FloatArray
    inputs: FloatArray

    @property
    def points(self) -> int:
        """Number of times."""
        return int(self.times.size)

    def take(self, begin: int, end: int) -> Trajectory:
        """The points from `begin` up to `end`, which is not included."""
        return replace(
            self, times=self.times[begin:end], states=self.states[begin:end], inputs=self.inputs[begin:end]
        )


@dataclass(frozen=True, eq=False)
class Trajectories:
    """All runs of a table, and what its columns are called.

    Attributes
    ----------
    time, states, inputs
        The columns. A formula knows the states as variables 0, 1, ..., then the inputs, then the time.
    runs
        At least one.
    order
        Of the equations. With 2, the first half of the states are the measured ones, and the second half
        their derivatives, which are not measured (nan).
    warnings, notes
        For the user, as in `Dataset`.
    source
        Where the table came from, for messages.
    """

    time: Column
    states: tuple[Column, ...]
    inputs: tuple[Column, ...]
    runs: tuple[Trajectory, ...]
    order: int = 1
    warnings: tuple[str, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
    source: str = "<memory>"

    @property
    def points(self) -> int:
        """Times of all runs together."""
        return sum(run.points for run in self.runs)

    @property
    def names(self) -> tuple[str, ...]:
        """Aliases of the variables of formulas: states, inputs, time."""
        return tuple(column.alias for column in (*self.states, *self.inputs, self.time))

    @property
    def measured(self) -> int:
        """Number of states that are measured; the others are derivatives of these."""
        return len(self.states) // self.order

    @property
    def scales(self) -> FloatArray:
        """Standard deviation of each state over all runs, shape (states,); of derivatives roughly."""
        every = np.concatenate([run.states[:, : self.measured] for run in self.runs])
        scales = np.asarray(np.nanstd(every, axis=0), dtype=np.float64)
        if self.order == 1:
            return scales
        slopes = [_rough_slopes(run, state) for state in range(self.measured) for run in self.runs]
        count = len(self.runs)
        rates = [np.concatenate(slopes[count * s : count * (s + 1)]) for s in range(self.measured)]
        return np.concatenate([scales, [float(rate.std()) or 1.0 for rate in rates]])

    @property
    def has_several_orbits(self) -> bool:
        """Whether two runs begin at different states."""
        first = np.stack([run.states[0, : self.measured] for run in self.runs])
        with np.errstate(all="ignore"):
            apart = np.abs(first - first[0]) > APART * self.scales[: self.measured]
        return bool(apart.any())

    def second_order(self) -> Trajectories:
        """The same runs with the derivatives of the states, called `x_dot`, as states without values."""
        columns = (*self.states, *self.inputs, self.time)
        taken = {name for column in columns for name in (column.name, column.alias)}
        derivatives = []
        for column in self.states:
            name, alias = f"{column.name}_dot", f"{column.alias}_dot"
            while name in taken or alias in taken:
                name, alias = f"{name}_", f"{alias}_"
            taken |= {name, alias}
            known = column.unit is not None and self.time.unit is not None
            unit = column.unit / self.time.unit if known else None  # type: ignore[operator]
            derivatives.append(Column(name, alias, unit))
        runs = [
            replace(run, states=np.concatenate([run.states, np.full_like(run.states, np.nan)], axis=1))
            for run in self.runs
        ]
        return replace(self, states=(*self.states, *derivatives), runs=tuple(runs), order=2)


def _rough_slopes(run: Trajectory, state: int) -> FloatArray:
    """Slopes between points some steps apart, so that noise does not dominate."""
    known = np.isfinite(run.states[:, state])
    times, values = run.times[known], run.states[known, state]
    apart = max(times.size // 20, 1)
    return np.asarray((values[apart:] - values[:-apart]) / (times[apart:] - times[:-apart]), dtype=np.float64)


@dataclass(frozen=True)
class Division:
    """What is fitted and what is held out.

    Attributes
    ----------
    fitted
        The runs, or the beginnings of runs, that search and fit see.
    held_out
        In words: `run 3`, or `the last fifth`.
    run
        Position of the run that is held out whole; None when the last fifth of each run is.
    """

    fitted: Trajectories
    held_out: str
    run: int | None


APART = 0.3
"""Standard deviations of a state by which the first values of two runs differ that are not the same orbit."""
MIN_RUNS = 3
HELD_OUT_SHARE = 0.2
MIN_POINTS = 30
"""Runs with fewer points than this keep all of them: their last fifth would be too little to test on."""


def divide(table: Trajectories) -> Division:
    """Hold out the last run where there are three, otherwise the last fifth of each run."""
    runs = table.runs
    if len(runs) >= MIN_RUNS:
        label = runs[-1].label or str(len(runs))
        return Division(replace(table, runs=runs[:-1]), f"run {label}", len(runs) - 1)
    if any(run.points < MIN_POINTS for run in runs):
        return Division(table, "", None)
    kept = tuple(run.take(0, run.points - int(HELD_OUT_SHARE * run.points)) for run in runs)
    return Division(replace(table, runs=kept), "the last fifth", None)
