"""Reading Excel workbooks (.xlsx) with openpyxl, an optional package."""

from __future__ import annotations

import datetime
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

from physdiffuser.data.columns import ColumnBuilder
from physdiffuser.data.limits import MAX_RATIO, ReadLimits, check_cells
from physdiffuser.data.readers.cells import NumberFormat
from physdiffuser.data.readers.header import Line, TextOptions, settle_header
from physdiffuser.data.table import Choose, Table, finish_columns
from physdiffuser.errors import DataError, PhysdiffuserError, UsageError
from physdiffuser.io.display import counted, visible

SAMPLE_ROWS = 200
MAX_SHEET = 4 << 30
FREE_BYTES = 8 << 20
"""Workbooks that unpack to at most this much are not judged by their ratio."""

LAST_ROW = 1 << 20
"""Rows of a sheet, by the format."""

FREE_CELLS = 1 << 20
MIN_FILLED = 0.01
"""In a larger table than `FREE_CELLS`, at least this share of the cells must hold something."""


def read_excel(
    stream: BinaryIO, source: str, options: TextOptions, choose: Choose, limits: ReadLimits
) -> Table:
    """Read the first sheet of a workbook.

    Formulas count with the value that was saved with them.

    Raises
    ------
    DataError
        When the workbook is damaged, empty or no table, or a limit is exceeded.
    UsageError
        When openpyxl is not installed.
    """
    try:
        import openpyxl  # type: ignore[import-untyped]
    except ImportError as error:
        raise UsageError(
            f"{source}: reading Excel files needs openpyxl. Install it with pip install 'physdiffuser[excel]'"
        ) from error
    _check_size(stream, source)
    rows, notes = _rows_of_workbook(openpyxl, stream, source, limits)
    rows = _trimmed(rows, source)
    limits.check(source)
    numbers = NumberFormat(".", options.thousands)
    header = settle_header(rows[:SAMPLE_ROWS], numbers, source, options)
    body = [row for row in rows if row.number >= header.body_line]
    width = len(header.names)
    for row in body:
        if len(row.fields) != width:
            raise DataError(
                f"{source}: row {row.number} has {counted(len(row.fields), 'cell')}, the header has {width}. "
                "Give every column a name, or clear the cells beside the table."
            )
    builders = {
        position: ColumnBuilder(
            header.names[position],
            position + 1,
            numbers=numbers,
            source=source,
            first_line=header.body_line,
            as_labels=labels,
        )
        for position, labels in sorted(choose(header.names).items())
    }
    lines = [row.number for row in body]
    for position, builder in builders.items():
        limits.check(source)
        builder.extend_cells([row.fields[position] for row in body], lines.__getitem__)
    return Table(
        names=header.names,
        columns=finish_columns(builders, header.names),
        rows=len(body),
        source=source,
        unit_strings=header.unit_strings,
        warnings=header.warnings,
        notes={"format": "Excel", **notes},
    )


def _rows_of_workbook(
    openpyxl: Any, stream: BinaryIO, source: str, limits: ReadLimits
) -> tuple[list[Line], dict[str, str]]:
    """The filled rows of the first sheet, and its name where there are several."""
    try:
        workbook = openpyxl.load_workbook(stream, read_only=True, data_only=True)
        sheets = workbook.worksheets
        if not sheets:
            raise DataError(f"{source}: the workbook has no sheet with cells.")
        # The sheet states its size itself; a single formatted cell far away makes it 17e9 cells.
        sheets[0].reset_dimensions()
        rows = list(_filled_rows(sheets[0].iter_rows(values_only=True), source, limits))
    except PhysdiffuserError:
        raise
    except Exception as error:  # a damaged workbook surfaces as almost any exception
        raise DataError(
            f"{source}: the workbook is damaged or unusual ({type(error).__name__}: {visible(str(error))}). "
            "Save it again, or export the sheet as CSV."
        ) from error
    notes = {"sheet": sheets[0].title} if len(sheets) > 1 else {}
    if not rows:
        raise DataError(f"{source}: the first sheet is empty. A table needs a header and at least two rows.")
    return rows, notes


def _check_size(stream: BinaryIO, source: str) -> None:
    """Refuse archives that would expand beyond reason."""
    try:
        with zipfile.ZipFile(stream) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise DataError(
            f"{source}: the workbook is damaged ({visible(str(error))}). Save it again."
        ) from error
    packed = sum(member.compress_size for member in members)
    unpacked = sum(member.file_size for member in members)
    if unpacked > MAX_SHEET or (unpacked > FREE_BYTES and unpacked > MAX_RATIO * packed):
        raise DataError(f"{source}: the workbook expands to {unpacked:,} bytes. Export the sheet as CSV.")
    stream.seek(0)


def _filled_rows(rows: Iterator[tuple[object, ...]], source: str, limits: ReadLimits) -> Iterator[Line]:
    """Rows that hold something, each up to its last filled cell."""
    for number, row in enumerate(rows, 1):
        limits.check(source)
        if number > LAST_ROW:
            raise DataError(f"{source}: the sheet has more than {LAST_ROW:,} rows. Save the workbook again.")
        cells = [_text(cell) for cell in row[: _filled_width(row)]]
        if cells:
            yield Line(number, tuple(cells))


def _filled_width(row: tuple[object, ...]) -> int:
    """How many cells there are up to the last one that holds something."""
    width = len(row)
    while width and (row[width - 1] is None or not _text(row[width - 1])):
        width -= 1
    return width


def _text(cell: object) -> str:
    """Write a cell as the text that means the same; floats keep every digit."""
    if cell is None:
        return ""
    if isinstance(cell, float):
        return repr(cell)
    if isinstance(cell, datetime.datetime | datetime.date):
        return cell.isoformat()
    return str(cell).strip(" ")


def _trimmed(rows: Sequence[Line], source: str) -> list[Line]:
    """Give all rows the same cells, without the empty columns on the left."""
    first = min(next(index for index, cell in enumerate(row.fields) if cell) for row in rows)
    widest = max(rows, key=lambda row: len(row.fields))
    last = len(widest.fields)
    size = len(rows) * (last - first)
    check_cells(len(rows), last - first, source)
    filled = sum(len(row.fields) - row.fields.count("") for row in rows)
    if size > FREE_CELLS and filled < MIN_FILLED * size:
        raise DataError(
            f"{source}: only {filled:,} of {size:,} cells of the table are filled; row {widest.number} has a "
            f"cell in column {last}. Clear the cells beside the table, or export it as CSV."
        )
    return [Line(row.number, (row.fields + ("",) * (last - len(row.fields)))[first:]) for row in rows]
