"""Tables of measurements with their sources and the laws that their fields use, from the package's data."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from io import StringIO

import numpy as np

from physdiffuser.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class MeasuredTable:
    """One table.

    Attributes
    ----------
    group
        Field: `physics`, `chemistry`, ...; `mathematics` for tables that were computed.
    names, target_name
        Columns.
    inputs
        Shape (rows, columns).
    target
        Shape (rows,).
    law
        The law of the field, in the names of the columns and of `constants`.
    constants
        Names of the constants of the law, with values from which their fit starts.
    kind
        `measured`, or `generated` for the nine reference problems of NIST that are computed.
    errors
        What is published about the errors of the target; empty when nothing is.
    source, licence
        Where the numbers were published, and why they may be passed on.
    """

    id: str
    group: str
    title: str
    names: tuple[str, ...]
    target_name: str
    inputs: FloatArray
    target: FloatArray
    law: str
    constants: tuple[tuple[str, float], ...]
    kind: str
    errors: str
    source: str
    licence: str
    note: str = ""

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.target)


@cache
def measured_tables() -> tuple[MeasuredTable, ...]:
    """All tables, in the order of `data/measured.csv`: the measured ones, then the generated ones."""
    folder = files("benchmarks_feynman") / "data"
    index = csv.DictReader(StringIO((folder / "measured.csv").read_text(encoding="utf-8")))
    return tuple(_table(row, (folder / "measured" / f"{row['id']}.csv").read_text("utf-8")) for row in index)


@cache
def measured_table(identifier: str) -> MeasuredTable:
    """One table by its id.

    Raises
    ------
    KeyError
        If there is no such table.
    """
    return {table.id: table for table in measured_tables()}[identifier]


def _table(entry: dict[str, str], text: str) -> MeasuredTable:
    header, *lines = csv.reader(StringIO(text))
    numbers = np.array(lines, dtype=np.float64)
    if header[-1] != entry["target"]:
        raise ValueError(f"{entry['id']}: the last column is {header[-1]}, not {entry['target']}")
    pairs = (part.split("=") for part in entry["constants"].split())
    return MeasuredTable(
        id=entry["id"],
        group=entry["group"],
        title=entry["title"],
        names=tuple(header[:-1]),
        target_name=header[-1],
        inputs=numbers[:, :-1],
        target=numbers[:, -1],
        law=entry["expression"],
        constants=tuple((name, float(value)) for name, value in pairs),
        kind=entry["kind"],
        errors=entry["errors"],
        source=entry["source"],
        licence=entry["licence"],
        note=entry["note"],
    )
