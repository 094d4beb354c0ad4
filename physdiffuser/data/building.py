"""From a `Table` to a `Dataset`: choose columns, leave out what cannot be used, and say so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from physdiffuser.data import checks
from physdiffuser.data.aliases import assign_aliases
from physdiffuser.data.checks import check_weights
from physdiffuser.data.dataset import Column, Dataset, FloatArray
from physdiffuser.data.display import counted, listed, visible
from physdiffuser.data.selection import Roles, refuse_text
from physdiffuser.data.table import Table, TableColumn
from physdiffuser.errors import DataError

MOST_MISSING = 0.5
"""A table of which more rows than this share have gaps is refused."""


def dataset_from_table(table: Table, roles: Roles) -> Dataset:
    """Apply the rules for gaps, text, constants and the rest to a table.

    Raises
    ------
    DataError
        When too little is left.
    """
    warnings = list(table.warnings)
    columns = {column.position - 1: column for column in table.columns}
    named = {roles.target, roles.weights, *(roles.inputs or ())} - {None}
    refuse_text([columns[position] for position in sorted(p for p in named if p is not None)], table.source)
    usable, said = _usable_columns(columns, named, table)
    warnings += said
    target_position, how = _choose_target(usable, roles, table)
    input_positions = (
        list(roles.inputs)
        if roles.inputs is not None
        else [p for p in usable if p not in (target_position, roles.weights)]
    )
    if not input_positions:
        raise DataError(
            f"{table.source}: besides the target '{visible(usable[target_position].name)}' there is no "
            f"column of numbers ({_left_out(table, usable)}). A law needs at least one input."
        )
    used = [*input_positions, target_position] + ([] if roles.weights is None else [roles.weights])
    chosen = {position: usable[position] for position in used}
    for position in used:
        column = chosen[position]
        warnings += column.remarks
        if column.kind == "boolean":
            warnings.append(f"column '{visible(column.name)}' holds truth values; they are read as 0 and 1")
    keep, said = _complete_rows(chosen, roles.weights, table)
    warnings += said
    # From here on every array is shortened once and the long one released.
    del usable, columns
    holder = {position: column.values for position, column in chosen.items()}
    names = {position: column.name for position, column in chosen.items()}
    remarked = {position for position, column in chosen.items() if column.remarks}
    chosen.clear()
    table = replace(table, columns=())
    target = _take(holder.pop(target_position), keep)
    weights = None if roles.weights is None else _take(holder.pop(roles.weights), keep)
    for position in list(holder):
        holder[position] = _take(holder[position], keep)
    constant = [p for p in input_positions if holder[p].min() == holder[p].max()]
    if constant:
        values = [f"'{visible(names[p])}' = {holder[p][0]:g}" for p in constant[:5]]
        more = f" and {len(constant) - 5} more" if len(constant) > 5 else ""
        warnings.append(f"left out because the value never changes: {', '.join(values)}{more}")
        input_positions = [p for p in input_positions if p not in constant]
        if not input_positions:
            raise DataError(
                f"{table.source}: every input column is constant ({listed([names[p] for p in constant])}). "
                "There is nothing that could explain the target."
            )
    warnings += _value_warnings(
        {names[p]: holder[p] for p in input_positions if p not in remarked}
        | ({} if target_position in remarked else {names[target_position]: target})
    )
    matrix = _assemble(holder, input_positions)
    input_names = [names[p] for p in input_positions]
    warnings += checks.shape_warnings(*matrix.shape)
    collinear = checks.collinear_warning(input_names, matrix)
    if collinear is not None:
        warnings.append(collinear)
    aliases = assign_aliases([*input_names, names[target_position]])
    every = [
        Column(name, alias)
        for name, alias in zip([*input_names, names[target_position]], aliases, strict=True)
    ]
    return Dataset(
        inputs=matrix,
        target=target,
        columns=tuple(every[:-1]),
        target_column=every[-1],
        weights=weights,
        warnings=tuple(warnings),
        source=table.source,
        notes={**table.notes, "target": f"{visible(names[target_position])} ({how})"},
    )


def _usable_columns(
    columns: dict[int, TableColumn], named: set[int | None], table: Table
) -> tuple[dict[int, TableColumn], list[str]]:
    """Leave out text, empty and unnamed columns; give a name to unnamed ones with data."""
    usable: dict[int, TableColumn] = {}
    warnings = []
    text = [column for position, column in columns.items() if column.kind == "text" and position not in named]
    if text:
        warnings.append(
            f"left out because they hold text: {listed([c.name or f'column {c.position}' for c in text])}"
        )
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
    if len(table.names) < 2:
        raise DataError(
            f"{table.source}: there is only one column, '{visible(table.names[0])}'. A law needs at "
            "least one input and a target; if columns are separated by an unusual character, name it "
            "with --delimiter."
        )
    if roles.target is not None:
        return roles.target, "as asked"
    taken = {*(roles.inputs or ()), roles.weights}
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


def _complete_rows(
    chosen: dict[int, TableColumn], weights: int | None, table: Table
) -> tuple[npt.NDArray[np.bool_] | None, list[str]]:
    """Return which rows to keep (None for all) and what to say about the others."""
    warnings = []
    keep: npt.NDArray[np.bool_] | None = None
    gaps = {position: np.isnan(column.values) for position, column in chosen.items()}
    gaps = {position: gap for position, gap in gaps.items() if gap.any()}
    if gaps:
        keep = np.ones(table.rows, bool)
        for gap in gaps.values():
            keep &= ~gap
        dropped = table.rows - int(np.count_nonzero(keep))
        worst = max(gaps, key=lambda position: int(np.count_nonzero(gaps[position])))
        worst_name = visible(chosen[worst].name)
        if dropped > MOST_MISSING * table.rows:
            raise DataError(
                f"{table.source}: {dropped} of {counted(table.rows, 'row')} have a missing value, most of "
                f"them in column '{worst_name}'. Fill the gaps, or leave the column out with --inputs."
            )
        warnings.append(
            f"{counted(dropped, 'row')} of {table.rows:,} left out because of missing values "
            f"(most in column '{worst_name}')"
        )
    if weights is not None:
        values = chosen[weights].values
        check_weights(values if keep is None else values[keep], chosen[weights].name, table.source)
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
    return keep, warnings


def _take(values: FloatArray, keep: npt.NDArray[np.bool_] | None) -> FloatArray:
    return values if keep is None else values[keep]


def _value_warnings(columns: dict[str, FloatArray]) -> list[str]:
    found = []
    for name, values in columns.items():
        for check in (checks.limit_warning, checks.sentinel_warning):
            warning = check(name, values)
            if warning is not None:
                found.append(warning)
                break
    return found


def _assemble(holder: dict[int, FloatArray], positions: Sequence[int]) -> FloatArray:
    """Put the columns into one array, releasing each as soon as it is copied."""
    rows = holder[positions[0]].shape[0]
    matrix = np.empty((len(positions), rows))
    for index, position in enumerate(positions):
        matrix[index] = holder.pop(position)
    return matrix.T
