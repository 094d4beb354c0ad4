"""Units of the columns of trajectories, and which right-hand sides they allow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from physdiffuser.data.dataset import Dataset
from physdiffuser.data.statements.unit_files import UnitSource, load_units
from physdiffuser.dynamics.trajectories.runs import Trajectories
from physdiffuser.expressions import Expression
from physdiffuser.expressions.units.dimensions import UnitChecker


def with_units(table: Trajectories, source: UnitSource) -> Trajectories:
    """The table with units on its columns; as it is, with a warning, when some column has none.

    Raises
    ------
    FileError, UsageError
        If the units cannot be read, or name a column that the table does not have.
    """
    columns = (*table.states, *table.inputs)
    pseudo = Dataset(np.zeros((1, len(columns))), np.zeros(1), columns, table.time)
    given = load_units(source, pseudo)
    if given.units is None:
        missing = "units are ignored: give every state, every input and the time a unit"
        return replace(table, warnings=(*table.warnings, missing))
    warned = replace(table, warnings=(*table.warnings, *given.warnings))
    named = tuple(replace(column, unit=unit) for column, unit in zip(columns, given.units, strict=True))
    count = len(table.states)
    return replace(
        warned, states=named[:count], inputs=named[count:], time=replace(table.time, unit=given.target)
    )


class RateUnits:
    """Which right-hand sides balance.

    Parameters
    ----------
    table
        With units or without; without, all formulas balance.
    """

    def __init__(self, table: Trajectories) -> None:
        units = [column.unit for column in (*table.states, *table.inputs, table.time)]
        known = [unit for unit in units if unit is not None]
        states = known[: len(table.states)] if len(known) == len(units) else []
        self._checkers = [UnitChecker(known, unit / known[-1]) for unit in states]

    def balances(self, skeleton: Expression, state: int) -> bool:
        """Whether the formula, whose parameters have any units, can be the rate of a state."""
        return not self._checkers or self._checkers[state].balances(skeleton)
