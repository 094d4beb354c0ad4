"""The rows of a text table: splitting them, finding the line of whatever is wrong with one."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Literal

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.data.columns import BIGGEST_INTEGER, ColumnBuilder
from physdiffuser.data.limits import check_cells
from physdiffuser.data.readers.cells import NumberFormat
from physdiffuser.data.readers.dialect import WHITESPACE, Dialect, is_comment, rows_of, split_line
from physdiffuser.data.readers.encoding import Block
from physdiffuser.data.readers.header import Header
from physdiffuser.errors import DataError
from physdiffuser.io.display import counted, visible

LONGEST_QUOTE = 200
"""Lines that one quoted cell may span."""


class OpenQuote(csv.Error):
    """A quote is still open where the lines at hand end."""

    line = 0


def split_row(lines: Sequence[str], at: int, delimiter: str) -> tuple[list[str], int]:
    """Split the row that begins at index `at`; return its fields and the index after it.

    A quoted cell may hold line breaks, but not so many that a forgotten quote would swallow the table.

    Raises
    ------
    csv.Error
        When it cannot be split; `OpenQuote` when lines are missing at the end.
    """
    try:
        return split_line(lines[at], delimiter), at + 1
    except csv.Error as error:
        if delimiter == WHITESPACE or "end of data" not in str(error):
            raise
        last = at + LONGEST_QUOTE
        for after in range(at + 1, min(len(lines), last)):
            # Only a line with a quote in it can close the open one.
            if '"' not in lines[after]:
                continue
            try:
                rows = rows_of([line + "\n" for line in lines[at : after + 1]], delimiter)
            except csv.Error as another:
                if "end of data" not in str(another):
                    raise
                continue
            return rows[0], after + 1
        if len(lines) < last:
            raise OpenQuote(str(error)) from error
        raise


def quote_error(source: str, line: int, error: csv.Error) -> DataError:
    if "end of data" in str(error):
        cause = "a quote is opened and never closed"
    elif "expected after" in str(error):
        cause = "text follows a closing quote"
    else:
        cause = f"the line cannot be split into fields ({error})"
    return DataError(f"{source}: line {line}: {cause}. Close the quote or remove it.")


class BodyReader:
    """Feeds blocks of rows into column builders.

    Parameters
    ----------
    wanted
        Positions of the columns to keep, and whether they hold labels.
    """

    def __init__(
        self,
        dialect: Dialect,
        header: Header,
        source: str,
        *,
        numbers: NumberFormat,
        wanted: Mapping[int, bool],
    ) -> None:
        self._dialect = dialect
        self._names = header.names
        self._source = source
        self._numbers = numbers
        self.rows = 0
        self.builders = {
            position: ColumnBuilder(
                header.names[position],
                position + 1,
                numbers=numbers,
                source=source,
                first_line=header.body_line,
                as_labels=labels,
            )
            for position, labels in sorted(wanted.items())
        }
        self._pending: Block | None = None

    def add(self, block: Block, *, shortcut: bool, total_bytes: int | None) -> None:
        """Parse one block; an open quote at its end waits for the next one."""
        if self._pending is not None:
            block = Block(self._pending.data + block.data, self._pending.first_line, block.bytes_read)
            self._pending = None
        if not block.data:
            return
        if not (shortcut and self._numbers.thousands is None and self._add_plain(block)):
            try:
                self._add_careful(block)
            except OpenQuote:
                self._pending = block
        check_cells(self.rows, len(self.builders), self._source)
        if total_bytes and block.bytes_read < total_bytes and self.rows > 1000:
            # Two percent more than expected: pages that are never written cost no memory.
            expected = int(self.rows * (total_bytes / block.bytes_read) * 1.02)
            for builder in self.builders.values():
                builder.reserve(expected)

    def finish(self) -> None:
        """Parse what is left."""
        if self._pending is not None:
            try:
                self._add_careful(self._pending)
            except OpenQuote as error:
                raise quote_error(self._source, error.line, error) from error

    def _add_plain(self, block: Block) -> bool:
        values = parse_plain_block(
            block.data, self._dialect.delimiter, self._numbers.decimal, len(self._names)
        )
        if values is None:
            return False
        for position, builder in self.builders.items():
            builder.extend_numbers(values[:, position], block.first_line)
        self.rows += values.shape[0]
        return True

    def _add_careful(self, block: Block) -> None:
        lines = block.text().split("\n")
        if not lines[-1]:
            lines.pop()
        numbers: Sequence[int] = range(block.first_line, block.first_line + len(lines))
        columns = self._split_at_once(lines) if b"#" not in block.data else None
        if columns is None:
            rows, numbers = self._split_row_by_row(lines, block.first_line)
            columns = [list(column) for column in zip(*rows, strict=True)]
        if not numbers:
            return
        for position, builder in self.builders.items():
            builder.extend_cells(columns[position], numbers.__getitem__)
        self.rows += len(numbers)

    def _split_at_once(self, lines: Sequence[str]) -> list[list[str]] | None:
        """Return the columns when every line is one complete row, else None."""
        try:
            rows = rows_of(lines, self._dialect.delimiter)
        except csv.Error:
            return None
        width = len(self._names)
        if len(rows) != len(lines) or set(map(len, rows)) != {width}:
            return None
        cells = list(chain.from_iterable(rows))
        return [cells[position::width] for position in range(width)]

    def _split_row_by_row(self, lines: Sequence[str], first_line: int) -> tuple[list[list[str]], list[int]]:
        """Skip comments and blank lines; find the line of what is wrong."""
        rows: list[list[str]] = []
        numbers: list[int] = []
        delimiter = self._dialect.delimiter
        at = 0
        while at < len(lines):
            line = first_line + at
            if is_comment(lines[at], delimiter):
                at += 1
                continue
            try:
                fields, after = split_row(lines, at, delimiter)
            except OpenQuote as error:
                error.line = line
                raise
            except csv.Error as error:
                raise quote_error(self._source, line, error) from error
            # A stray quote can swallow the next row and still leave the right number of fields.
            if any(within.count(delimiter) + 1 >= len(self._names) for within in lines[at + 1 : after]):
                raise quote_error(self._source, line, csv.Error("unexpected end of data"))
            if len(fields) != len(self._names):
                raise self._ragged(line, fields)
            at = after
            rows.append(fields)
            numbers.append(line)
        return rows, numbers

    def _ragged(self, line: int, fields: Sequence[str]) -> DataError:
        width = len(self._names)
        have = f"{self._source}: line {line} has {counted(len(fields), 'field')}, the header has {width}"
        if len(fields) > width:
            if width == 1:
                return DataError(
                    f"{have}. If the line with the names comes further down, remove what stands above it; "
                    "if the columns are separated by an unusual character, name it with --delimiter."
                )
            extra = visible(fields[width].strip() or fields[-1].strip())
            return DataError(
                f"{have}; column {width + 1} ('{extra}') has no name. Values would be shifted against their "
                "names: add the missing name, or quote a cell that contains the delimiter."
            )
        return DataError(f"{have}. Complete the line, or remove it.")


_NUMERIC = b"0123456789+-.eE"
_NEWLINE = ord("\n")


def parse_plain_block(data: bytes, delimiter: str, decimal: str | None, width: int) -> FloatArray | None:
    """Return the block's numbers, shape (rows, width), or None when it is not plain.

    Parameters
    ----------
    data
        Whole lines with ``\\n``.
    delimiter, decimal
        As in `Dialect`; whitespace tables are never plain.
    """
    separator = delimiter.encode()
    if delimiter in ' ."' or len(separator) != 1:
        return None
    numeric = _NUMERIC
    if decimal == ",":
        # A point in such a block is no part of a plain number.
        numeric = _NUMERIC.replace(b".", b",")
    elif decimal is None:
        numeric = _NUMERIC.replace(b".", b"")
    if data.translate(None, numeric + separator + b"\n"):
        return None
    if not data.endswith(b"\n"):
        data += b"\n"
    if not _is_rectangular(data, separator[0], width):
        return None
    if decimal == ",":
        data = data.replace(b",", b".")
    values = _parse(data, delimiter)
    if values is None or values.shape[1] != width:
        return None
    # Out-of-range and very large values have messages of their own.
    largest = max(float(values.max()), -float(values.min()))
    return values if largest < BIGGEST_INTEGER else None


def _is_rectangular(data: bytes, separator: int, width: int) -> bool:
    """Whether every line has `width` cells and none of them is empty."""
    raw = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero((raw == separator) | (raw == _NEWLINE))
    if ends.size % width or ends[0] == 0 or bool(np.any(np.diff(ends) == 1)):
        return False
    is_line_end = raw[ends].reshape(-1, width) == _NEWLINE
    return bool(is_line_end[:, -1].all()) and not bool(is_line_end[:, :-1].any())


def _parse(data: bytes, delimiter: str) -> FloatArray | None:
    import pandas

    # From 3.0 on the default conversion is exact, and asking for it is deprecated.
    old = int(pandas.__version__.split(".")[0]) < 3
    precision: Literal["round_trip"] | None = "round_trip" if old else None
    try:
        frame = pandas.read_csv(
            io.BytesIO(data),
            sep=delimiter,
            header=None,
            index_col=False,
            dtype=np.float64,
            engine="c",
            na_filter=False,
            low_memory=False,
            float_precision=precision,
        )
    except ValueError:
        # Some cell is no number; the careful reader will say which.
        return None
    values: FloatArray = frame.to_numpy(dtype=np.float64, copy=False)
    return values
