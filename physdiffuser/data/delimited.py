"""Reading text tables: comma, tab, semicolon, vertical bar or whitespace between the columns.

One careful reader defines what every byte means and finds the line and column of whatever is wrong.
Blocks that are nothing but numbers take the shortcut in `bulk`, which gives the same values.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from physdiffuser.data.bulk import parse_plain_block
from physdiffuser.data.cells import NumberFormat
from physdiffuser.data.columns import ColumnBuilder
from physdiffuser.data.dialect import (
    SAMPLE_LINES,
    WHITESPACE,
    Dialect,
    find_dialect,
    is_comment,
    rows_of,
    split_line,
)
from physdiffuser.data.display import counted, visible
from physdiffuser.data.encoding import Block, find_encoding, line_blocks
from physdiffuser.data.header import Header, Line, TextOptions, settle_header
from physdiffuser.data.table import Choose, Table, finish_columns
from physdiffuser.errors import DataError

BULK_BYTES = 1 << 24
"""Where the shortcut begins: importing pandas takes as long as reading this much without it."""

ENOUGH_LINES = 50
MOST_SAMPLED = 1 << 23
"""Lines and bytes to learn the dialect from; fewer only when there are no more."""

LONGEST_QUOTE = 200
"""Lines that one quoted cell may span."""


@dataclass(frozen=True)
class _Head:
    """Everything learnt from the first block."""

    dialect: Dialect
    header: Header


def read_delimited(
    stream: io.BufferedIOBase,
    head: bytes,
    source: str,
    options: TextOptions,
    choose: Choose,
    total_bytes: int | None = None,
    bulk_bytes: int = BULK_BYTES,
) -> Table:
    """Read a text table.

    Parameters
    ----------
    stream
        Bytes, from the beginning.
    head
        The first of them, already looked at.
    source
        Name for messages.
    options
        What the user said.
    choose
        Which columns to keep; the cells of others are not looked at.
    total_bytes
        Size of the stream when known; saves growing arrays.
    bulk_bytes
        Input before this offset never takes the shortcut.

    Raises
    ------
    DataError
        With line, column, cause and fix.
    """
    encoding = find_encoding(head, options.encoding)
    blocks = line_blocks(stream, encoding, source)
    first = _first_rows(blocks)
    if first is None:
        raise DataError(f"{source}: the file is empty. A table needs a header and at least two rows.")
    found = _read_head(first, source, options)
    reader = _BodyReader(found, source, options, choose)
    total = total_bytes if encoding.startswith("utf-8") else None
    large = total is not None and total > BULK_BYTES
    body = _skip_lines(first, found.header.body_line)
    for block in _chain(body, blocks):
        reader.add(block, shortcut=large or block.bytes_read > bulk_bytes, total_bytes=total)
    reader.finish()
    notes = {"dialect": found.dialect.describe()}
    if encoding != "utf-8":
        notes["encoding"] = encoding
    return Table(
        names=found.header.names,
        columns=finish_columns(reader.builders, found.header.names),
        rows=reader.rows,
        source=source,
        unit_strings=found.header.unit_strings,
        warnings=found.header.warnings,
        notes=notes,
    )


def _first_rows(blocks: Iterator[Block]) -> Block | None:
    """Join blocks until there are enough rows to learn from: lines may be long, or comments many."""
    parts: list[Block] = []
    rows = size = 0
    for block in blocks:
        if not parts and (block.data.isspace() or not block.data):
            continue
        parts.append(block)
        size += len(block.data)
        for line in io.BytesIO(block.data):
            rows += not is_comment(line[:80].decode("utf-8", "replace"))
            if rows >= ENOUGH_LINES:
                break
        if rows >= ENOUGH_LINES or (rows >= 3 and size > MOST_SAMPLED):
            break
    if not parts:
        return None
    return Block(b"".join(part.data for part in parts), parts[0].first_line, parts[-1].bytes_read)


def _chain(first: Block, rest: Iterator[Block]) -> Iterator[Block]:
    yield first
    yield from rest


def _skip_lines(block: Block, line: int) -> Block:
    """Return the block from the given physical line on."""
    at = 0
    for _ in range(line - block.first_line):
        at = block.data.find(b"\n", at) + 1
        if at == 0:
            return Block(b"", line, block.bytes_read)
    return Block(block.data[at:], line, block.bytes_read)


def _read_head(block: Block, source: str, options: TextOptions) -> _Head:
    lines = block.text().split("\n")
    numbered = [(number, line) for number, line in enumerate(lines, block.first_line) if not is_comment(line)]
    if not numbered:
        raise DataError(
            f"{source}: the file is empty apart from comments. A table needs a header and at least two rows."
        )
    sample = numbered[:SAMPLE_LINES]
    dialect = find_dialect([line for _, line in sample], options.delimiter, options.thousands)
    rows = _sample_rows(sample, dialect, source)
    numbers = NumberFormat(dialect.decimal, options.thousands)
    above = rows[0].number - block.first_line - 1
    comment = _comment_fields(lines[above], dialect) if above >= 0 else []
    return _Head(dialect, settle_header(rows, numbers, source, options, comment))


def _sample_rows(sample: Sequence[tuple[int, str]], dialect: Dialect, source: str) -> list[Line]:
    """Split the sample into rows; a row of several lines at its end is left to the body."""
    texts = [text for _, text in sample]
    rows: list[Line] = []
    at = 0
    while at < len(texts):
        try:
            fields, after = split_row(texts, at, dialect.delimiter)
        except csv.Error as error:
            # At the end of the sample the rest of the row may be missing.
            if len(rows) > 1:
                break
            raise quote_error(source, sample[at][0], error) from error
        rows.append(Line(sample[at][0], tuple(fields)))
        at = after
    return rows


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


def _comment_fields(line: str, dialect: Dialect) -> list[tuple[str, ...]]:
    """Return the ways to cut a comment right above the first row into names."""
    text = line.strip()
    if not text.startswith("#"):
        return []
    found = []
    for delimiter in dict.fromkeys((dialect.delimiter, ",", WHITESPACE)):
        try:
            found.append(tuple(split_line(text.lstrip("#").strip(), delimiter)))
        except csv.Error:
            continue
    return found


class _BodyReader:
    """Feeds blocks of rows into column builders."""

    def __init__(self, head: _Head, source: str, options: TextOptions, choose: Choose) -> None:
        self._dialect = head.dialect
        self._names = head.header.names
        self._source = source
        self._pending: Block | None = None
        self._numbers = NumberFormat(head.dialect.decimal, options.thousands)
        wanted = choose(head.header.names)
        self.rows = 0
        self.builders = {
            position: ColumnBuilder(
                head.header.names[position],
                position + 1,
                numbers=self._numbers,
                source=source,
                first_line=head.header.body_line,
            )
            for position in sorted(wanted)
        }

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
            extra = visible(fields[width].strip() or fields[-1].strip())
            return DataError(
                f"{have}; column {width + 1} ('{extra}') has no name. Values would be shifted against their "
                "names: add the missing name, or quote a cell that contains the delimiter."
            )
        return DataError(f"{have}. Complete the line, or remove it.")


class OpenQuote(csv.Error):
    """A quote is still open where the lines at hand end."""

    line = 0
