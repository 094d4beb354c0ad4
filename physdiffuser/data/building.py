"""From a `Table` to a `Dataset`: choose columns, leave out what cannot be used, and say so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from physdiffuser.arrays import BoolArray, FloatArray
from physdiffuser.data import checks
from physdiffuser.data.aliases import assign_aliases
from physdiffuser.data.checks import check_weights
from physdiffuser.data.dataset import Column, Dataset
from physdiffuser.data.selection import InputError, Roles, refuse_text
from physdiffuser.data.statements.groups import Groups
from physdiffuser.data.table import Table, TableColumn
from physdiffuser.errors import DataError
from physdiffuser.io.display import counted, listed, visible

MAX_HINTED = 50
"""A column of text with at most so many different ones may hold groups."""
ROWS_PER_HINTED = 3
"""... if there are so many rows for each of them."""
MAX_MISSING = 0.5
"""A table of which more rows than this share have gaps is refused."""


@dataclass
class _Parts:
    """The columns that play a part; mutable, so that each can be released once it is copied."""

    inputs: list[TableColumn]
    target: TableColumn
    weights: TableColumn | None
    as_errors: bool
    """Whether that column holds standard deviations."""
    groups: list[TableColumn]
    """Those that define groups."""
    how: str
    """Why this is the target."""
    input_errors: dict[str, InputError | TableColumn]
    """Errors of inputs by the name of the input."""

    def columns(self) -> list[TableColumn]:
        """All of them."""
        errors = [column for column in self.input_errors.values() if isinstance(column, TableColumn)]
        return [*self.inputs, self.target, *([] if self.weights is None else [self.weights]), *errors]


def dataset_from_table(table: Table, roles: Roles) -> Dataset:
    """Apply the rules for gaps, text, constants and the rest to a table, and empty it.

    Raises
    ------
    DataError
        When too little is left.
    """
    warnings = list(table.warnings)
    every = [column.name for column in table.columns]
    parts = _assign_parts(table, roles, warnings)
    # The parts are now the only owners of the arrays.
    table.columns.clear()
    for column in parts.columns():
        warnings += column.remarks
        if column.kind == "boolean":
            warnings.append(f"column '{visible(column.name)}' holds truth values; they are read as 0 and 1")
    # Before gaps are counted, so that those of a useless column cost no rows; and after, because the
    # rows that are left may agree.
    if table.rows > 1:
        _leave_out_constants(parts, None, table.source, warnings)
    keep = _complete_rows(parts, table, warnings)
    if keep is not None:
        _leave_out_constants(parts, keep, table.source, warnings)
    target = _take(parts.target.values, keep)
    weights = None if parts.weights is None else _take(parts.weights.values, keep)
    names = [column.name for column in (*parts.inputs, parts.target)]
    remarked = {column.name for column in parts.columns() if column.remarks}
    matrix = _assemble(parts.inputs, keep)
    for name, values in zip(names, [*matrix.T, target], strict=True):
        warning = checks.limit_warning(name, values) or checks.sentinel_warning(name, values)
        if warning is not None and name not in remarked:
            warnings.append(warning)
    warnings += checks.shape_warnings(*matrix.shape)
    collinear = checks.collinear_warning(names[:-1], matrix)
    if collinear is not None:
        warnings.append(collinear)
    columns = [Column(name, alias) for name, alias in zip(names, assign_aliases(names), strict=True)]
    return Dataset(
        inputs=matrix,
        target=target,
        columns=tuple(columns[:-1]),
        target_column=columns[-1],
        weights=checks.weights_of(weights) if parts.as_errors and weights is not None else weights,
        stated_errors=weights if parts.as_errors else None,
        input_errors=_error_matrix(parts, names[:-1], matrix, keep, table.source),
        warnings=tuple(warnings),
        source=table.source,
        unit_strings=table.unit_strings,
        unused=tuple(name for name in every if name not in names),
        notes={**table.notes, "target": f"{columns[-1].shown} ({parts.how})"},
        row_numbers=None if keep is None else np.flatnonzero(keep),
        groups=_groups(parts.groups, keep),
    )


def _groups(columns: list[TableColumn], keep: BoolArray | None) -> Groups | None:
    if not columns:
        return None
    groups = Groups.of([column.name for column in columns], [column.texts() for column in columns])
    return groups if keep is None else groups.take(np.flatnonzero(keep))


def _assign_parts(table: Table, roles: Roles, warnings: list[str]) -> _Parts:
    """Find inputs, target and weights among the columns that can be used."""
    columns = {column.position - 1: column for column in table.columns}
    named = {roles.target, roles.weights, *(roles.inputs or ()), *roles.error_columns} - {None}
    refuse_text([column for position, column in columns.items() if position in named], table.source)
    usable, said = _usable_columns(columns, named | set(roles.groups), table)
    warnings += said
    target, how = _choose_target(usable, roles, table)
    if roles.inputs is not None:
        inputs = list(roles.inputs)
    else:
        spoken_for = {target, roles.weights, *roles.error_columns, *roles.groups}
        inputs = [position for position in usable if position not in spoken_for]
    if not inputs:
        raise DataError(
            f"{table.source}: besides the target '{visible(usable[target].name)}' there is no "
            f"column of numbers ({_left_out(table, usable)}). A law needs at least one input."
        )
    return _Parts(
        [usable[position] for position in inputs],
        usable[target],
        None if roles.weights is None else usable[roles.weights],
        roles.as_errors,
        [columns[position] for position in roles.groups],
        how,
        {
            usable[position].name: error if error.column is None else usable[error.column]
            for position, error in roles.input_errors.items()
            if position in usable
        },
    )


def _error_matrix(
    parts: _Parts, names: list[str], matrix: FloatArray, keep: BoolArray | None, source: str
) -> FloatArray | None:
    """Standard deviations of the inputs, 0 where none is stated; None if none is."""
    if not parts.input_errors:
        return None
    errors = np.zeros_like(matrix)
    for name, error in parts.input_errors.items():
        if name not in names:
            continue  # a column that never changes
        column = names.index(name)
        if isinstance(error, InputError):
            errors[:, column] = error.of(matrix[:, column])
        else:
            errors[:, column] = _take(error.values, keep)
            checks.check_input_errors(errors[:, column], error.name, source)
    return errors


def _usable_columns(
    columns: dict[int, TableColumn], named: set[int | None], table: Table
) -> tuple[dict[int, TableColumn], list[str]]:
    """Leave out text, empty and unnamed columns; give a name to unnamed ones with data."""
    usable: dict[int, TableColumn] = {}
    warnings = []
    text = [column for position, column in columns.items() if column.kind == "text" and position not in named]
    if text:
        names = listed([column.name or f"column {column.position}" for column in text])
        hints = [_group_hint(column) for column in text if _holds_groups(column)]
        warnings.append("; ".join([f"left out because they hold text: {names}", *hints]))
    empty = [column for column in columns.values() if column.kind == "empty" and column.name]
    if empty and table.rows:
        warnings.append(f"left out because they are empty: {listed([column.name for column in empty])}")
    for position, column in columns.items():
        if column.kind == "text":
            continue
        if column.kind == "empty":
            if not column.name:
                warnings.append(f"column {column.position} has neither name nor values and was left out")
            continue
        if not column.name:
            if _is_index(column):
                warnings.append(f"column {column.position} has no name and numbers the rows; it was left out")
                continue
            column = replace(column, name=_free_name(f"column_{column.position}", table.names))
            warnings.append(f"column {column.position} has no name; it is called '{column.name}'")
        usable[position] = column
    return usable, warnings


def _holds_groups(column: TableColumn) -> bool:
    """Whether a column of text may divide the rows into groups: a few values, each in several rows."""
    values = len(column.labels)
    return 2 <= values <= MAX_HINTED and column.values.size >= ROWS_PER_HINTED * values


def _group_hint(column: TableColumn) -> str:
    name = visible(column.name or f"column {column.position}")
    return (
        f"column '{name}' holds {len(column.labels)} values; --group {name} fits one law with "
        "separate constants"
    )


def _is_index(column: TableColumn) -> bool:
    """Whether an unnamed first column only counts the rows."""
    values = column.values
    if column.position != 1 or values.size < 2 or np.isnan(values[0]):
        return False
    step = np.diff(values)
    return bool(np.all(step >= 1) and np.all(values == np.floor(values)))


def _free_name(name: str, names: Sequence[str]) -> str:
    while name in names:
        name += "_"
    return name


def _choose_target(usable: dict[int, TableColumn], roles: Roles, table: Table) -> tuple[int, str]:
    if not table.names:
        raise DataError(f"{table.source}: the table has no columns.")
    if len(table.names) < 2:
        raise DataError(
            f"{table.source}: there is only one column, '{visible(table.names[0])}'. A law needs at "
            "least one input and a target; if columns are separated by an unusual character, name it "
            "with --delimiter."
        )
    if roles.target is not None:
        return roles.target, "as asked"
    # A column whose own error is stated is an input.
    taken = {*(roles.inputs or ()), roles.weights, *roles.error_columns, *roles.input_errors, *roles.groups}
    free = [position for position in usable if position not in taken]
    if not free:
        raise DataError(
            f"{table.source}: no column is left for the target ({_left_out(table, usable)}). "
            "Name one with --target."
        )
    target = free[-1]
    last = len(table.names) - 1
    return target, "last column" if target == last else "last usable column"


def _left_out(table: Table, usable: dict[int, TableColumn]) -> str:
    gone = [c for c in table.columns if c.position - 1 not in usable and c.name]
    if not gone:
        return f"{counted(len(table.names), 'column')} in all"
    return "left out: " + ", ".join(f"'{visible(c.name)}' ({c.kind})" for c in gone[:6])


def _complete_rows(parts: _Parts, table: Table, warnings: list[str]) -> BoolArray | None:
    """Return which rows to keep, None for all of them."""
    keep: BoolArray | None = None
    gaps = {column.name: np.isnan(column.values) for column in parts.columns()}
    labels = {column.name: np.array([not text for text in column.texts()]) for column in parts.groups}
    gaps = {name: gap for name, gap in (gaps | labels).items() if gap.any()}
    if gaps:
        keep = np.ones(table.rows, bool)
        for gap in gaps.values():
            keep &= ~gap
        dropped = table.rows - int(np.count_nonzero(keep))
        worst = visible(max(gaps, key=lambda name: int(np.count_nonzero(gaps[name]))))
        if dropped > MAX_MISSING * table.rows:
            raise DataError(
                f"{table.source}: {dropped} of {counted(table.rows, 'row')} have a missing value, most of "
                f"them in column '{worst}'. Fill the gaps, or leave the column out with --inputs."
            )
        warnings.append(
            f"{counted(dropped, 'row')} of {table.rows:,} left out because of missing values "
            f"(most in column '{worst}')"
        )
    if parts.weights is not None:
        values = parts.weights.values
        kept, name = _take(values, keep), parts.weights.name
        if parts.as_errors:
            checks.check_errors(kept, name, table.source)
        else:
            check_weights(kept, name, table.source)
        positive = values > 0
        zeros = int(np.count_nonzero(values == 0))
        if zeros:
            keep = positive if keep is None else keep & positive
            warnings.append(f"{counted(zeros, 'row')} left out because the weight is zero")
    rows = table.rows if keep is None else int(np.count_nonzero(keep))
    if rows < 2:
        raise DataError(
            f"{table.source}: {counted(rows, 'usable row')}. A law cannot be found from fewer than two; "
            "ten or more are better."
        )
    return keep


def _take(values: FloatArray, keep: BoolArray | None) -> FloatArray:
    return values if keep is None else values[keep]


def _leave_out_constants(parts: _Parts, keep: BoolArray | None, source: str, warnings: list[str]) -> None:
    constant = {}
    for column in parts.inputs:
        values = _take(column.values, keep)
        lowest = float(np.fmin.reduce(values))
        if lowest == np.fmax.reduce(values):
            constant[column.name] = lowest
    if not constant:
        return
    if len(constant) == len(parts.inputs):
        raise DataError(
            f"{source}: every input column is constant ({listed(list(constant))}). "
            "There is nothing that could explain the target."
        )
    shown = ", ".join(f"'{visible(name)}' = {value:g}" for name, value in list(constant.items())[:5])
    more = f" and {len(constant) - 5} more" if len(constant) > 5 else ""
    warnings.append(f"left out because the value never changes: {shown}{more}")
    parts.inputs = [column for column in parts.inputs if column.name not in constant]


def _assemble(columns: list[TableColumn], keep: BoolArray | None) -> FloatArray:
    """Put the columns into one array, releasing each as soon as it is copied; `columns` ends empty."""
    rows = columns[0].values.size if keep is None else int(np.count_nonzero(keep))
    matrix = np.empty((len(columns), rows))
    columns.reverse()
    for index in range(len(columns)):
        matrix[index] = _take(columns.pop().values, keep)
    return matrix.T
