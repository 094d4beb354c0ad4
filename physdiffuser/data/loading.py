"""The two ways to load a file: for the search, and for predictions."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.data.building import dataset_from_table
from physdiffuser.data.dataset import Dataset
from physdiffuser.data.readers.formats import read_table
from physdiffuser.data.selection import (
    Request,
    Roles,
    find_column,
    missing_columns,
    refuse_text,
    resolve,
    wanted_columns,
)
from physdiffuser.data.statements.input_errors import InputErrors, parse_input_errors, with_error_roles
from physdiffuser.data.table import Table
from physdiffuser.errors import UsageError
from physdiffuser.io.display import visible

if TYPE_CHECKING:
    import pandas


def load_dataset(
    source: str | os.PathLike[str] | pandas.DataFrame,
    *,
    target: str | None = None,
    inputs: Sequence[str] | None = None,
    weights: str | None = None,
    errors: str | None = None,
    input_errors: InputErrors | None = None,
    groups: Sequence[str] = (),
    encoding: str | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    thousands: str | None = None,
    units_row: bool = False,
    seconds: float | None = None,
) -> Dataset:
    """Read a table and prepare it for the search.

    More than eight parameters: one keyword for each option with which `solve` reads a table.

    Parameters
    ----------
    source
        A path (text, gzip, Parquet, Excel), ``"-"`` for standard input, or a pandas DataFrame.
    target
        Name of the column to explain; by default the last one that holds numbers.
    inputs
        Names of the columns that may explain it; by default all others that hold numbers.
    weights
        Name of a column with a weight for every row: positive, or zero to leave the row out.
    errors
        Instead of it, name of a column with the standard deviation of the target in every row.
    input_errors
        Standard deviations of inputs: `x=0.01,y=dy,z=1%` or a mapping; a number, a percentage or a column.
    groups
        Names of columns, of text or numbers, whose values divide the rows into groups.
    encoding, delimiter, header, thousands, units_row
        How the table is written; see `read_table`.
    seconds
        Most seconds that reading may take; None for no limit.

    Returns
    -------
    Dataset
        Inputs of shape (rows, columns), stored column by column. `warnings` says what was left out,
        `notes` what was assumed.

    Raises
    ------
    FileError
        When the file cannot be read.
    DataError
        When the content cannot be used; names line, column, cause and fix.
    UsageError
        When a column that was asked for does not exist.
    """
    if isinstance(inputs, str):
        # A text is a sequence too, of its letters.
        raise UsageError(f"inputs={inputs!r}: must be a list of names, such as [{inputs!r}]")
    return dataset_from_table(
        *read_for_request(
            source,
            Request(
                target,
                None if inputs is None else tuple(inputs),
                weights,
                errors,
                parse_input_errors(input_errors),
                tuple(groups),
            ),
            encoding=encoding,
            delimiter=delimiter,
            header=header,
            thousands=thousands,
            units_row=units_row,
            seconds=seconds,
        )
    )


def load_datasets(
    source: str | os.PathLike[str] | pandas.DataFrame,
    targets: Sequence[str],
    request: Request,
    **options: Any,
) -> dict[str, Dataset]:
    """Read a table once, and prepare it for the search of several targets.

    Parameters
    ----------
    source, **options
        As in `load_dataset`.
    targets
        Names of the columns to explain, by which the result is ordered. None of them is an input of another.

    Raises
    ------
    FileError, DataError, UsageError
        As `load_dataset` does.
    """
    roles: dict[str, Roles] = {}
    name = source if isinstance(source, str) else "the table"
    name = "<stdin>" if name == "-" else visible(name, 200)

    def choose(names: Sequence[str]) -> Mapping[int, bool]:
        for target in targets:
            one = with_error_roles(
                resolve(replace(request, target=target), names, name), request.input_errors, names, name
            )
            assert one.target is not None  # it was named
            if names[one.target] in roles:
                raise UsageError(f"--target: '{visible(target)}' is named twice.")
            roles[names[one.target]] = one
        places = {one.target for one in roles.values()}
        for one in roles.values():
            both = places & {*(one.inputs or ()), *one.groups, one.weights}
            if both - {None}:
                place = next(iter(both - {None}))
                raise UsageError(
                    f"'{visible(names[place or 0])}' is a target and cannot play another part as well."
                )
        return dict(chain.from_iterable(wanted_columns(one, names).items() for one in roles.values()))

    table = read_table(source, choose=choose, **options)
    places = {one.target for one in roles.values()}
    found = {}
    for target, one in roles.items():
        others = places - {one.target}
        kept = [column for column in table.columns if column.position - 1 not in others]
        found[target] = dataset_from_table(replace(table, columns=kept), one)
    return found


def read_for_request(
    source: str | os.PathLike[str] | pandas.DataFrame, request: Request, **options: Any
) -> tuple[Table, Roles]:
    """Read only what a request needs; unknown names are reported before the rows are read.

    Parameters
    ----------
    source
        As in `load_dataset`.
    **options
        As in `read_table`.
    """
    found: list[Roles] = []
    name = source if isinstance(source, str) else "the table"
    name = "<stdin>" if name == "-" else visible(name, 200)

    def choose(names: Sequence[str]) -> Mapping[int, bool]:
        roles = with_error_roles(resolve(request, names, name), request.input_errors, names, name)
        found.append(roles)
        return wanted_columns(roles, names)

    table = read_table(source, choose=choose, **options)
    return table, found[0]


def read_labels(
    source: str | os.PathLike[str] | pandas.DataFrame, columns: Sequence[str], **options: Any
) -> list[str]:
    """The group of each row of a table, as `Dataset.groups` labels it; empty where a value is missing.

    Parameters
    ----------
    source
        As in `load_dataset`.
    columns
        Names of the columns that define groups.
    **options
        As in `read_table`.

    Raises
    ------
    DataError
        When a column is missing.
    """
    where: list[int] = []

    def choose(names: Sequence[str]) -> Mapping[int, bool]:
        found = [find_column(names, column) for column in columns]
        absent = [column for column, position in zip(columns, found, strict=True) if position is None]
        if absent:
            raise missing_columns("the table", names, absent)
        where.extend(position for position in found if position is not None)
        return dict.fromkeys(where, True)

    table = read_table(source, choose=choose, **options)
    by_position = {column.position - 1: column.texts() for column in table.columns}
    rows = zip(*(by_position[position] for position in where), strict=True)
    return ["" if "" in parts else ", ".join(parts) for parts in rows]


def read_columns(
    source: str | os.PathLike[str] | pandas.DataFrame, columns: Sequence[str], **options: Any
) -> FloatArray:
    """Read some columns of numbers, every row of them.

    Parameters
    ----------
    source
        As in `load_dataset`; other columns of the table are not looked at.
    columns
        Original column names, in the order wanted.
    **options
        As in `read_table`.

    Returns
    -------
    Shape (rows, columns), nan where a value is missing.

    Raises
    ------
    DataError
        When a column is missing or holds text.
    """
    where: list[int] = []
    name = (
        "the table" if not isinstance(source, str) else ("<stdin>" if source == "-" else visible(source, 200))
    )

    def choose(names: Sequence[str]) -> Mapping[int, bool]:
        found = [find_column(names, column) for column in columns]
        absent = [column for column, position in zip(columns, found, strict=True) if position is None]
        if absent:
            raise missing_columns(name, names, absent)
        where.extend(position for position in found if position is not None)
        return dict.fromkeys(where, False)

    table = read_table(source, choose=choose, **options)
    refuse_text(table.columns, table.source)
    by_position = {column.position - 1: column.values for column in table.columns}
    matrix = np.empty((len(where), table.rows)).T
    for index, position in enumerate(where):
        matrix[:, index] = by_position[position]
    return matrix
