"""A table as it was read: columns of numbers with gaps, before anything is chosen or left out."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from physdiffuser.arrays import FloatArray
from physdiffuser.data.columns import ColumnBuilder, Kind
from physdiffuser.data.labels import MAX_LABELS, number_label
from physdiffuser.errors import DataError
from physdiffuser.io.display import listed, visible

LONGEST_NAME = 500

Choose = Callable[[Sequence[str]], Mapping[int, bool]]
"""Given all column names, the positions of those that are wanted, and whether they are labels of groups."""


@dataclass(frozen=True)
class TableColumn:
    """One column of a `Table`.

    Attributes
    ----------
    name
        As in the header, without padding; empty when the header has none.
    position
        Number of the column, counted from 1.
    kind
        ``"number"``, ``"boolean"``, ``"text"`` or ``"empty"``.
    values
        float64, NaN where missing; all NaN for text.
    example
        The first cell of a text column.
    remarks
        Warnings about values of this column.
    labels, codes
        Of a column of text: its different texts, and the position in them of each row's, -1 where missing;
        None where there are too many.
    """

    name: str
    position: int
    kind: Kind
    values: FloatArray
    example: str = ""
    remarks: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    codes: npt.NDArray[np.int32] | None = None

    def texts(self) -> list[str]:
        """One text per row, to tell groups by; empty where missing.

        Raises
        ------
        DataError
            If the column holds more different texts than are kept.
        """
        if self.kind != "text":
            known = {
                value: "" if value != value else number_label(value) for value in set(self.values.tolist())
            }
            return [known.get(value, "") for value in self.values.tolist()]
        if self.codes is None:
            raise DataError(
                f"column {self.position} '{visible(self.name)}' holds more than {MAX_LABELS:,} "
                "different texts, which are no groups. Choose another column."
            )
        labels = (*self.labels, "")
        return [labels[code] for code in self.codes.tolist()]


@dataclass(frozen=True)
class Table:
    """What a reader returns.

    Attributes
    ----------
    names
        Every column name, also of columns that were not wanted.
    columns
        The columns that were. A list, so that whoever builds something from them can take them out
        and large tables need not be held twice.
    rows
        Number of rows.
    source
        Name for messages.
    unit_strings
        Column name to unit, from a second header row, when one was announced.
    warnings, notes
        As in `Dataset`.
    """

    names: tuple[str, ...]
    columns: list[TableColumn]
    rows: int
    source: str
    unit_strings: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)


def every_column(names: Sequence[str]) -> Mapping[int, bool]:
    """The `Choose` that wants all columns."""
    return dict.fromkeys(range(len(names)), False)


def same_name(name: str) -> str:
    """The form in which names are compared: without padding, canonically composed."""
    return unicodedata.normalize("NFC", name.strip())


def check_names(names: Sequence[str], source: str, line: int | None = None) -> tuple[str, ...]:
    """Return the names without padding.

    Raises
    ------
    DataError
        On a name with a line break, of more than 500 characters, or given twice.
    """
    where = source if line is None else f"{source}: line {line}"
    stripped = tuple(name.strip(" \t\u00a0\ufeff") for name in names)
    for position, name in enumerate(stripped, 1):
        if len(name.splitlines()) > 1 or "\n" in name or "\r" in name:
            raise DataError(
                f"{where}: the name of column {position}, '{visible(name)}', has a line break in it. "
                "Put the name on one line."
            )
        if len(name) > LONGEST_NAME:
            raise DataError(
                f"{where}: the name of column {position} has {len(name):,} characters "
                f"('{visible(name, 30)}'). Shorten it to at most {LONGEST_NAME}; "
                "is the first line a header at all?"
            )
    seen: dict[str, int] = {}
    for position, name in enumerate(stripped, 1):
        if not name:
            continue
        earlier = seen.setdefault(same_name(name), position)
        if earlier != position:
            raise DataError(
                f"{where}: columns {earlier} and {position} are both called {listed([name])}. "
                "Rename one of them."
            )
    return stripped


def finish_columns(builders: Mapping[int, ColumnBuilder], names: Sequence[str]) -> list[TableColumn]:
    """Turn builders into columns, in table order."""
    columns = []
    for position in sorted(builders):
        builder = builders[position]
        kind, example = builder.kind, builder.example
        remarks = []
        shown = visible(names[position])
        if builder.big_integer is not None:
            line, cell = builder.big_integer
            remarks.append(
                f"column '{shown}' has whole numbers beyond 2**63 (line {line}: {visible(cell, 30)}); "
                "they are kept to 16 digits"
            )
        if builder.clamped is not None:
            line, cell = builder.clamped
            remarks.append(
                f"column '{shown}' reaches the end of the float64 range (line {line}: {visible(cell, 30)}); "
                "such values are read as ±1.7976931348623157e308"
            )
        labels, codes = builder.labels.finish(len(builder)) if kind == "text" else ((), None)
        column = TableColumn(names[position], position + 1, kind, builder.finish(), example, tuple(remarks))
        columns.append(replace(column, labels=labels, codes=codes))
    return columns
