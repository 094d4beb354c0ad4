"""Malformed input of every kind that the reader takes, each with a naive second reading."""

from __future__ import annotations

import io
import json
import random
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from mutations import ODD, _change_bytes, _value, make_sample, reference

from physdiffuser.data import Dataset

KINDS = ("text", "text", "text", "text", "xlsx", "parquet", "units", "weights")
_ODD_UNITS = (
    "m",
    "m/s",
    "kg*m**2/s**2",
    "",
    "1",
    "m**1e9",
    "[m",
    "m//s",
    "é",
    "10",
    "null",
    "~",
    "&a",
    "*a",
    "!!x",
)


@dataclass(frozen=True)
class TableCase:
    """A table in a file, how it is read, and how to check what was read.

    Attributes
    ----------
    kind
        One of `KINDS`.
    path
        The table.
    options
        Of `load_dataset`.
    expected
        Given the dataset that was read, the same numbers read naively, or None when that is not possible.
    units
        A file with units, for `load_units`.
    """

    kind: str
    path: Path
    options: dict[str, Any] = field(default_factory=dict)
    expected: Callable[[Dataset], np.ndarray | None] = lambda data: None
    units: Path | None = None


def make_case(seed: int, folder: Path) -> TableCase:
    """Write the files of one case; the same seed gives the same files."""
    rng = random.Random(seed)
    kind = rng.choice(KINDS)
    maker = {"text": _text, "xlsx": _xlsx, "parquet": _parquet, "units": _units, "weights": _weights}[kind]
    return maker(rng, folder / f"{seed}")


def values_of(data: Dataset) -> np.ndarray:
    """Inputs, target and weights as one array."""
    columns = [data.inputs, data.target[:, None]]
    return np.hstack(columns if data.weights is None else [*columns, data.weights[:, None]])


def _text(rng: random.Random, stem: Path) -> TableCase:
    sample = make_sample(rng)
    suffix = ".tsv" if sample.suffix == ".csv" and sample.delimiter == "\t" else sample.suffix
    path = stem.with_suffix(suffix)
    path.write_bytes(sample.content)
    return TableCase("text", path, expected=lambda data: reference(sample, data))


def _grid(rng: random.Random) -> list[list[Any]]:
    columns = rng.randint(2, 5)
    rows: list[list[Any]] = [rng.sample(["a", "b", "v (m/s)", "θ", "E", "lambda", "=x"], columns)]
    for _ in range(rng.randint(2, 25)):
        rows.append([rng.choice((rng.gauss(0, 1), rng.randint(-9, 9), rng.uniform(0, 1e6))) for _ in rows[0]])
    return rows


def _xlsx(rng: random.Random, stem: Path) -> TableCase:
    import openpyxl

    book = openpyxl.Workbook()
    sheet = book.active
    for row in _grid(rng):
        sheet.append(row)
    for _ in range(rng.choice((0, 1, 1, 2))):
        cell = sheet.cell(rng.randint(1, sheet.max_row + 1), rng.randint(1, sheet.max_column))
        cell.value = rng.choice((None, True, 5, 1e300, "x", "1.5", "NA", "=1+1", " 7 "))
    if rng.random() < 0.2:
        sheet[rng.choice(("XFD1048576", "Z99", "A1048576"))].number_format = "0.00"
    path = stem.with_suffix(".xlsx")
    book.save(path)
    if rng.random() < 0.4:
        path.write_bytes(_damaged_archive(path.read_bytes(), rng))
    return TableCase("xlsx", path, expected=lambda data: _again(path, data))


def _damaged_archive(content: bytes, rng: random.Random) -> bytes:
    """Change a byte of the archive, or of the sheet inside, which no check sum then shows."""
    if rng.random() < 0.5:
        return _change_bytes(content, rng)
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as archive, zipfile.ZipFile(out, "w") as changed:
        damaged = rng.choice(archive.namelist())
        for name in archive.namelist():
            data = archive.read(name)
            changed.writestr(name, _change_bytes(data, rng) if name == damaged else data)
    return out.getvalue()


def _again(path: Path, data: Dataset) -> np.ndarray | None:
    """The sheet read once more, with the other reader of openpyxl, which loads the whole document."""
    import openpyxl

    sheet = openpyxl.load_workbook(path, data_only=True).worksheets[0]
    # Rows and cells far away would be made by looking at them: only those that are there.
    cells = {place: cell.value for place, cell in sheet._cells.items() if cell.value not in (None, "")}
    rows = sorted({row for row, _ in cells})
    columns = range(min(column for _, column in cells), max(column for _, column in cells) + 1)
    names = [str(cells.get((rows[0], column), "")).strip() for column in columns]
    wanted = [*(column.name for column in data.columns), data.target_column.name]
    if not all(name in names for name in wanted):
        return None  # without a header, or with columns that have no name
    positions = [columns[names.index(name)] for name in wanted]
    table = [[_number(cells.get((row, column))) for column in positions] for row in rows[1:]]
    return np.array([row for row in table if not np.isnan(row).any()])


def _number(value: Any) -> float:
    if value is None:
        return float("nan")
    return _value(str(value), ".") if isinstance(value, str) else float(value)


def _parquet(rng: random.Random, stem: Path) -> TableCase:
    import pyarrow
    import pyarrow.parquet

    names, *rows = _grid(rng)
    arrays = []
    for index in range(len(names)):
        values: list[Any] = [float(row[index]) for row in rows]
        if rng.random() < 0.2:
            values[rng.randrange(len(values))] = rng.choice((None, float("nan"), float("inf")))
        kind = rng.choice((None, None, "text", "int"))
        if kind == "text":
            values = [None if value is None else repr(value) for value in values]
        elif kind == "int":
            values = [
                None if value is None or value != value or abs(value) > 1e9 else int(value)
                for value in values
            ]
        arrays.append(pyarrow.array(values))
    path = stem.with_suffix(".parquet")
    pyarrow.parquet.write_table(pyarrow.table(arrays, names=names), path)
    if rng.random() < 0.3:
        path.write_bytes(_change_bytes(path.read_bytes(), rng))

    def expected(data: Dataset) -> np.ndarray:
        frame = pyarrow.parquet.read_table(path).to_pandas()
        columns = [*(column.name for column in data.columns), data.target_column.name]
        values = frame[columns].astype(float).to_numpy()
        return values[~np.isnan(values).any(axis=1)]

    return TableCase("parquet", path, expected=expected)


def _plain(rng: random.Random, path: Path, odd: float) -> list[list[str]]:
    rows = [["a", "b", "w", "y"]]
    for _ in range(rng.randint(4, 20)):
        rows.append([repr(rng.uniform(1, 9)) for _ in rows[0]])
    for _ in range(rng.choice((0, 1, 2)) if rng.random() < odd else 0):
        rows[rng.randrange(1, len(rows))][2] = rng.choice((*ODD[:20], "0", "-1", "1e-320", "1e308", "0.0"))
    path.write_text("\n".join(",".join(row) for row in rows) + "\n", encoding="utf-8")
    return rows


def _weights(rng: random.Random, stem: Path) -> TableCase:
    path = stem.with_suffix(".csv")
    rows = _plain(rng, path, 0.9)

    def expected(data: Dataset) -> np.ndarray:
        order = [*(rows[0].index(column.name) for column in data.columns), 3, 2]
        values = np.array([[_value(row[index], ".") for index in order] for row in rows[1:]])
        return values[~np.isnan(values).any(axis=1) & (values[:, -1] != 0)]

    return TableCase("weights", path, {"weights": "w"}, expected)


def _units(rng: random.Random, stem: Path) -> TableCase:
    path = stem.with_suffix(".csv")
    rows = _plain(rng, path, 0.0)
    given = {name: rng.choice((*_ODD_UNITS, "m", "s", "m/s")) for name in rows[0]}
    if rng.random() < 0.3:
        given.pop(rng.choice(rows[0]))
    if rng.random() < 0.2:
        given[rng.choice(("c", "A", "a ", "", "é"))] = "m"
    text = (
        json.dumps(given)
        if rng.random() < 0.5
        else "".join(f"{key}: {unit}\n" for key, unit in given.items())
    )
    units = stem.with_suffix(".yaml")
    content = text.encode()
    units.write_bytes(_change_bytes(content, rng) if rng.random() < 0.5 else content)
    wanted = np.array([[float(cell) for cell in row] for row in rows[1:]])
    return TableCase("units", path, expected=lambda data: wanted, units=units)
