"""Reading Excel workbooks (.xlsx) with openpyxl, an optional package."""

from __future__ import annotations

import datetime
import zipfile
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from physdiffuser.data.cells import NumberFormat
from physdiffuser.data.columns import ColumnBuilder
from physdiffuser.data.display import counted, visible
from physdiffuser.data.header import Line, TextOptions, settle_header
from physdiffuser.data.table import Choose, Table, finish_columns
from physdiffuser.errors import DataError, UsageError

SAMPLE_ROWS = 200
LARGEST_SHEET = 4 << 30
LARGEST_RATIO = 200


def read_excel(stream: BinaryIO, source: str, options: TextOptions, choose: Choose) -> Table:
    """Read the first sheet of a workbook.

    Formulas count with the value that was saved with them.

    Raises
    ------
    DataError
        When the workbook is damaged, empty or no table.
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
    try:
        workbook = openpyxl.load_workbook(stream, read_only=True, data_only=True)
        sheets = workbook.worksheets
        if not sheets:
            raise DataError(f"{source}: the workbook has no sheet with cells.")
        rows = list(_filled_rows(sheets[0].iter_rows(values_only=True)))
    except DataError:
        raise
    except Exception as error:  # a damaged workbook surfaces as almost any exception
        raise DataError(
            f"{source}: the workbook is damaged or unusual ({type(error).__name__}: {visible(str(error))}). "
            "Save it again, or export the sheet as CSV."
        ) from error
    notes = {"sheet": sheets[0].title} if len(sheets) > 1 else {}
    if not rows:
        raise DataError(f"{source}: the first sheet is empty. A table needs a header and at least two rows.")
    rows = _trimmed(rows)
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
        )
        for position in sorted(choose(header.names))
    }
    lines = [row.number for row in body]
    for position, builder in builders.items():
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
    if unpacked > LARGEST_SHEET or (unpacked > 64 << 20 and unpacked > LARGEST_RATIO * packed):
        raise DataError(f"{source}: the workbook expands to {unpacked:,} bytes. Export the sheet as CSV.")
    stream.seek(0)


def _filled_rows(rows: Iterator[tuple[object, ...]]) -> Iterator[Line]:
    for number, row in enumerate(rows, 1):
        cells = tuple(_text(cell) for cell in row)
        if any(cells):
            yield Line(number, cells)


def _text(cell: object) -> str:
    """Write a cell as the text that means the same; floats keep every digit."""
    if cell is None:
        return ""
    if isinstance(cell, float):
        return repr(cell)
    if isinstance(cell, datetime.datetime | datetime.date):
        return cell.isoformat()
    return str(cell).strip(" ")


def _trimmed(rows: Sequence[Line]) -> list[Line]:
    """Cut off empty columns on both sides, which formatting leaves behind."""
    used = [index for row in rows for index, cell in enumerate(row.fields) if cell]
    first, last = min(used), max(used) + 1
    return [Line(row.number, (row.fields + ("",) * (last - len(row.fields)))[first:last]) for row in rows]
