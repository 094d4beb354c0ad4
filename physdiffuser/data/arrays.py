"""Tables and arrays that a Python program passes: to a Dataset."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from physdiffuser.data.aliases import assign_aliases
from physdiffuser.data.checks import check_weights
from physdiffuser.data.dataset import Column, Dataset
from physdiffuser.data.loading import load_dataset, load_datasets
from physdiffuser.data.selection import Request
from physdiffuser.data.statements.input_errors import InputErrors, parse_input_errors
from physdiffuser.errors import DataError, UsageError
from physdiffuser.io.display import listed, visible

if TYPE_CHECKING:
    import pandas

    Source: TypeAlias = str | os.PathLike[str] | pandas.DataFrame | Mapping[str, Any] | npt.ArrayLike
    ColumnOrValues: TypeAlias = str | npt.ArrayLike | None
    GroupsOrValues: TypeAlias = str | Sequence[str] | npt.ArrayLike | None


@dataclass(frozen=True)
class ColumnRequest:
    """What the columns are called and what they are for; the parameters of `physdiffuser.solve`."""

    names: Sequence[str] | None = None
    target: str | None = None
    inputs: Sequence[str] | None = None
    weights: ColumnOrValues = None
    errors: ColumnOrValues = None
    input_errors: InputErrors | None = None
    groups: GroupsOrValues = None


def load_dataset_from(source: Source, y: object, columns: ColumnRequest, **reading: Any) -> Dataset:
    """Read a table, or join inputs and target to one and read that by the same rules.

    Parameters
    ----------
    source, y
        As in `physdiffuser.solve`.
    columns
        Names and roles of the columns.
    **reading
        How a file is written, as in `load_dataset`.

    Raises
    ------
    DataError
        When shapes do not match.
    UsageError
        When an argument does not belong to what `source` is.
    """
    per_row: dict[str, Any] = {"weights": columns.weights, "errors": columns.errors}
    groups = _group_columns(columns.groups, source)
    if groups is None:
        per_row["groups"] = columns.groups
    target = columns.target
    if y is not None:
        source, target, per_row = _joined(source, y, columns, per_row)
    else:
        if columns.names is not None:
            raise UsageError("names= is for solve(X, y); the columns of a table have names already")
        for option, value in per_row.items():
            if not isinstance(value, str | None):
                raise UsageError(f"{option}= must be the name of a column unless y is given")
    given = per_row.pop("groups", None)
    if given is not None:
        groups = [given]
    table: Any = source
    return load_dataset(
        table,
        target=target,
        inputs=columns.inputs,
        input_errors=columns.input_errors,
        groups=groups or (),
        **per_row,
        **reading,
    )


def load_datasets_from(
    source: Source,
    y: object,
    targets: Sequence[str] | None,
    columns: ColumnRequest,
    **reading: Any,
) -> dict[str, Dataset]:
    """The same for several targets, none of which is an input of another; by the name of the target.

    Parameters
    ----------
    source, columns, **reading
        As in `load_dataset_from`.
    y
        The targets, shape (rows, targets), or a table of them.
    targets
        Names of columns of the table; with `y` the names to call its columns.

    Raises
    ------
    DataError, UsageError
        As `load_dataset_from` does.
    """
    per_row: dict[str, Any] = {"weights": columns.weights, "errors": columns.errors}
    if y is not None:
        table = _inputs(source, columns.names)
        values = _targets(y, targets, len(table), list(table.columns))
        for option, given in per_row.items():
            if not isinstance(given, str | None):
                per_row[option] = free_name((option,), [*table.columns, *values])
                table[per_row[option]] = _values(option, given, len(table))
        source, targets = table.assign(**values), list(values)
    elif columns.names is not None:
        raise UsageError("names= is for inputs given as an array; the columns of a table have names already")
    if not targets:
        raise UsageError("no target is named: give the names of the columns to explain")
    for option, value in per_row.items():
        if not isinstance(value, str | None):
            raise UsageError(f"{option}= must be the name of a column unless y is given")
    request = Request(
        None,
        None if columns.inputs is None else tuple(columns.inputs),
        per_row["weights"],
        per_row["errors"],
        parse_input_errors(columns.input_errors),
        tuple(_group_columns(columns.groups, source) or ()),
    )
    table_source: Any = source
    return load_datasets(table_source, list(targets), request, **reading)


def _targets(y: object, targets: Sequence[str] | None, rows: int, taken: list[str]) -> dict[str, Any]:
    """The columns of the targets, by name."""
    from physdiffuser.data.readers.frame import as_frame

    table = as_frame(y)
    array = _array("y", y) if table is None else table.to_numpy()
    if array.ndim != 2 or array.shape[1] < 1:
        raise DataError(f"y has shape {array.shape}; give one column for each target, (rows, targets)")
    if len(array) != rows:
        raise DataError(f"y has {len(array)} rows and X has {rows}")
    names = [str(name) for name in (targets or (table.columns if table is not None else ()))]
    if not names:
        for number in range(array.shape[1]):
            names.append(free_name((f"y{number + 1}", f"target{number + 1}"), [*taken, *names]))
    if len(names) != array.shape[1]:
        raise UsageError(f"{len(names)} names of targets for {array.shape[1]} columns of y")
    clash = [name for number, name in enumerate(names) if name in taken or name in names[:number]]
    if clash:
        raise UsageError(f"the target {clash[0]!a} has the name of another column; give it another name")
    return {name: array[:, number] for number, name in enumerate(names)}


def _group_columns(groups: Any, source: Any) -> list[str] | None:
    """The names of the columns that define groups; None if `groups` holds the group of each row."""
    if groups is None:
        return []
    if isinstance(groups, str):
        return [groups]
    names = list(groups) if isinstance(groups, list | tuple) else None
    if names is None or not all(isinstance(name, str) for name in names):
        return None
    if isinstance(source, str | os.PathLike):
        return names
    columns = getattr(source, "columns", source if isinstance(source, Mapping) else ())
    return names if set(names) <= set(columns) else None


def _joined(
    source: Any, y: object, columns: ColumnRequest, per_row: Mapping[str, Any]
) -> tuple[pandas.DataFrame, str, dict[str, Any]]:
    """One DataFrame with inputs, target and values per row; the target's name; the names of the others."""
    if isinstance(source, str | os.PathLike):
        raise UsageError("y is for inputs given as arrays; name the target column of a file with target=")
    table = _inputs(source, columns.names)
    names: list[str] = list(table.columns)
    target = columns.target
    if target is None:
        target = free_name((getattr(y, "name", None), "y", "target"), names)
    elif target in names:
        raise UsageError(f"target={target!r} is also the name of an input; give it another name")
    table[target] = _values("y", y, len(table))
    found: dict[str, Any] = {}
    for option, given in per_row.items():
        found[option] = given
        if not isinstance(given, str | None):
            found[option] = free_name((option,), [*names, target])
            table[found[option]] = _values(option, given, len(table))
    return table, target, found


def _inputs(source: Any, given: Sequence[str] | None) -> pandas.DataFrame:
    """The inputs as a DataFrame of its own, with names."""
    import pandas

    from physdiffuser.data.readers.frame import as_frame, check_levels

    table = as_frame(source)
    if table is not None:
        check_levels(table)
        table = table.reset_index(drop=True)  # a new frame: the user's stays as it is
        names = list(table.columns)
    else:
        array = _array("X", source)
        if array.ndim == 1:
            array = array[:, None]
        if array.ndim != 2 or 0 in array.shape:
            raise DataError(f"X has the shape {array.shape}; expected (rows, columns) or (rows,).")
        table = pandas.DataFrame(array)
        names = [str(getattr(source, "name", None) or "x1")] if array.shape[1] == 1 else []
    if given is not None:
        if isinstance(given, str) or not all(isinstance(name, str) for name in given):
            raise UsageError(f"names={given!r}: must be a list of names, one for each column of X")
        names = list(given)
        if len(names) != table.shape[1]:
            raise UsageError(f"{len(names)} names for {table.shape[1]} columns of X")
    elif not names or not all(isinstance(name, str) and name for name in names):
        names = numbered_names(table.shape[1])
    if len(set(names)) < len(names):
        raise DataError(f"column names must differ, got {listed(names)}.")
    table.columns = pandas.Index(names, dtype=object)
    return table


def _values(label: str, given: object, rows: int) -> npt.NDArray[Any]:
    """One value per row, of shape (rows,)."""
    array = _array(label, given)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.shape != (rows,):
        raise DataError(f"{label} has the shape {array.shape}; expected ({rows},), one value per row of X.")
    return array


def _array(label: str, given: object) -> npt.NDArray[Any]:
    try:
        if isinstance(given, np.ma.MaskedArray):
            given = np.ma.filled(given.astype(np.float64), np.nan)
        return np.asarray(given)
    except ValueError as error:  # rows of different lengths
        raise DataError(f"{label} is no array of numbers: {visible(str(error))}") from error


def numbered_names(count: int) -> list[str]:
    """x1, x2, ..."""
    return [f"x{index + 1}" for index in range(count)]


def free_name(wanted: Sequence[object], names: Sequence[str]) -> str:
    """The first of `wanted` that is a name and not taken, or the last of them with a number."""
    for name in wanted:
        if isinstance(name, str) and name and name not in names:
            return name
    number = 2
    while f"{wanted[-1]}{number}" in names:
        number += 1
    return f"{wanted[-1]}{number}"


def dataset_from_arrays(
    inputs: npt.ArrayLike,
    target: npt.ArrayLike,
    *,
    names: Sequence[str] | None = None,
    target_name: str = "y",
    weights: npt.ArrayLike | None = None,
) -> Dataset:
    """Wrap arrays as they are: no row or column is left out, gaps are an error.

    Parameters
    ----------
    inputs
        Shape (rows, columns).
    target
        Shape (rows,).
    names
        One per column; by default x1, x2, ...
    weights
        Shape (rows,), not negative. Rows of weight zero are left out.

    Raises
    ------
    DataError
        When shapes do not fit or a value is not finite.
    """
    matrix = np.asarray(inputs, dtype=np.float64)
    values = np.asarray(target, dtype=np.float64)
    if matrix.ndim != 2 or values.ndim != 1 or matrix.shape[0] != values.shape[0]:
        raise DataError(
            f"inputs of shape {matrix.shape} and a target of shape {values.shape} do not fit: "
            "expected (rows, columns) and (rows,)."
        )
    if matrix.shape[0] == 0 or matrix.shape[1] == 0:
        raise DataError(f"inputs of shape {matrix.shape} are empty.")
    for label, array in (("inputs", matrix), ("target", values)):
        if not np.all(np.isfinite(array)):
            raise DataError(f"{label} contain NaN or infinity. Remove or fill those rows first.")
    if names is None:
        names = numbered_names(matrix.shape[1])
    if len(names) != matrix.shape[1]:
        raise DataError(f"{len(names)} names for {matrix.shape[1]} columns.")
    every = [*names, target_name]
    if len(set(every)) < len(every):
        raise DataError(f"column names must differ, got {listed(every)}.")
    array_weights = row_numbers = None
    if weights is not None:
        array_weights = np.asarray(weights, dtype=np.float64)
        if array_weights.shape != values.shape:
            raise DataError(f"weights of shape {array_weights.shape} for {values.shape[0]} rows.")
        check_weights(array_weights, "weights", "<arrays>")
        positive = array_weights > 0
        if not positive.all():
            matrix, values, array_weights = matrix[positive], values[positive], array_weights[positive]
            row_numbers = np.flatnonzero(positive)
    columns = [Column(name, alias) for name, alias in zip(every, assign_aliases(every), strict=True)]
    return Dataset(
        matrix,
        values,
        tuple(columns[:-1]),
        columns[-1],
        array_weights,
        source="<arrays>",
        row_numbers=row_numbers,
    )
