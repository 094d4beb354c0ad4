"""The table as the search sees it: numbers, names and what was done to them on the way in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from physdiffuser.arrays import FloatArray, IndexArray, spread_places
from physdiffuser.core.solution import ColumnSummary
from physdiffuser.io.display import visible

if TYPE_CHECKING:
    from physdiffuser.data.statements.groups import Groups
    from physdiffuser.units.unit import Unit


@dataclass(frozen=True)
class Column:
    """A named column.

    Attributes
    ----------
    name
        The name exactly as the table has it; used in everything the user reads about the table.
    alias
        The identifier that stands for it inside expressions. Equal to `name` when that is an
        identifier with no other meaning (see `physdiffuser.data.aliases`).
    unit
        Exponents over the base units, or None when not given.

    Notes
    -----
    A name comes from a file and may hold terminal escape sequences; print `shown`, not `name`.
    """

    name: str
    alias: str
    unit: Unit | None = None

    @property
    def shown(self) -> str:
        """The name with everything unprintable escaped, for terminals and messages."""
        return visible(self.name, limit=200)


@dataclass(frozen=True)
class Dataset:
    """Observations ready for the search.

    Attributes
    ----------
    inputs
        Shape (rows, columns), float64, finite.
    target
        Shape (rows,), float64, finite.
    columns
        One per column of `inputs`.
    target_column
        Name, alias and unit of the target.
    weights
        Shape (rows,), positive, or None when every row counts the same.
    stated_errors
        Shape (rows,), positive: standard deviations of the target in its own units, where the user knows
        them. The weights then follow from them.
    input_errors
        Shape (rows, columns): standard deviations of the inputs in their units, 0 where they are exact; None
        if none are stated.
    warnings
        What the reader changed or noticed, in the order it did.
    source
        Where the table came from, for messages.
    notes
        What was assumed, by topic: ``target``, ``dialect``, ``encoding``, ...
    unit_strings
        Column name to unit as written in the table's own row of units; empty when it has none.
    unused
        Names of the table's columns that are neither inputs nor the target.
    row_numbers
        Shape (rows,): where each row stands in the table as the user has it, counted from 0; None when it
        is the table itself.
    groups
        Which group each row belongs to; None when the table is one group.
    """

    inputs: FloatArray
    target: FloatArray
    columns: tuple[Column, ...]
    target_column: Column
    weights: FloatArray | None = None
    stated_errors: FloatArray | None = None
    input_errors: FloatArray | None = None
    warnings: tuple[str, ...] = ()
    source: str = "<memory>"
    notes: Mapping[str, str] = field(default_factory=dict)
    unit_strings: Mapping[str, str] = field(default_factory=dict)
    unused: tuple[str, ...] = ()
    row_numbers: IndexArray | None = None
    groups: Groups | None = None

    def __post_init__(self) -> None:
        if self.inputs.ndim != 2 or self.inputs.shape != (self.target.shape[0], len(self.columns)):
            raise ValueError(
                f"inputs {self.inputs.shape} do not fit target {self.target.shape} "
                f"and {len(self.columns)} columns"
            )

    @property
    def rows(self) -> int:
        """Number of observations."""
        return int(self.target.shape[0])

    @property
    def names(self) -> tuple[str, ...]:
        """Aliases of the input columns, in order: the variable names of expressions."""
        return tuple(column.alias for column in self.columns)

    @property
    def aliases(self) -> dict[str, str]:
        """Alias to original name, for the columns whose name could not be used as it is."""
        columns = (*self.columns, self.target_column)
        return {column.alias: column.name for column in columns if column.alias != column.name}

    def sample(self, most: int) -> Dataset:
        """At most so many of the rows, evenly spaced."""
        return self.take(spread_places(self.rows, most))

    def take(self, rows: IndexArray) -> Dataset:
        """The same table with only the given rows, in that order."""
        return replace(
            self,
            inputs=self.inputs[rows],
            target=self.target[rows],
            weights=None if self.weights is None else self.weights[rows],
            groups=None if self.groups is None else self.groups.take(rows),
            stated_errors=None if self.stated_errors is None else self.stated_errors[rows],
            input_errors=None if self.input_errors is None else self.input_errors[rows],
            row_numbers=rows if self.row_numbers is None else self.row_numbers[rows],
        )


# Rows among which distinct values are counted: sorting a long column would take longer than all else.
_LOOKED_AT = 5_000


def summaries(dataset: Dataset) -> tuple[ColumnSummary, ...]:
    """A summary of each input column, in order, and of the target, last."""
    pairs = zip(dataset.columns, dataset.inputs.T, strict=True)
    described = [_summary(column, values, dataset) for column, values in pairs]
    return (*described, _summary(dataset.target_column, dataset.target, dataset))


def _summary(column: Column, values: FloatArray, dataset: Dataset) -> ColumnSummary:
    some = values[spread_places(values.size, _LOOKED_AT)]
    written = dataset.unit_strings.get(column.name, "")
    return ColumnSummary(
        name=column.name,
        alias=column.alias,
        unit=str(column.unit) if column.unit is not None else written,
        low=float(values.min()),
        median=2 * float(np.median(values / 2)),  # the sum of two values may exceed the largest double
        high=float(values.max()),
        distinct=int(np.unique(some).size),
        looked_at=int(some.size),
    )
