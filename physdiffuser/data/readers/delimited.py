"""Reading text tables: comma, tab, semicolon, vertical bar or whitespace between the columns.

One careful reader defines what every byte means and finds the line and column of whatever is wrong.
Blocks that are nothing but numbers take the shortcut in `bulk`, which gives the same values.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from physdiffuser.data.readers.body import BodyReader, quote_error, split_row
from physdiffuser.data.readers.cells import NumberFormat
from physdiffuser.data.readers.dialect import (
    SAMPLE_LINES,
    WHITESPACE,
    Dialect,
    find_dialect,
    is_comment,
    split_line,
)
from physdiffuser.data.readers.encoding import Block, find_encoding, line_blocks
from physdiffuser.data.readers.header import Header, Line, TextOptions, settle_header
from physdiffuser.data.table import Choose, Table, finish_columns
from physdiffuser.errors import DataError

BULK_BYTES = 1 << 24
"""Where the shortcut begins: importing pandas takes as long as reading this much without it."""

ENOUGH_LINES = 50
MAX_SAMPLED = 1 << 23
"""Lines and bytes to learn the dialect from; fewer only when there are no more."""

MAX_COMMENTS = 1 << 26
"""Bytes of comments and blank lines that may stand above the table."""


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
    head
        The first of them, already looked at.
    choose
        Which columns to keep, and which hold labels; the cells of others are not looked at.
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
    first = _first_rows(blocks, source)
    if first is None:
        raise DataError(f"{source}: the file is empty. A table needs a header and at least two rows.")
    found = _read_head(first, source, options)
    reader = BodyReader(
        found.dialect,
        found.header,
        source,
        numbers=NumberFormat(found.dialect.decimal, options.thousands),
        wanted=choose(found.header.names),
    )
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


def _first_rows(blocks: Iterator[Block], source: str) -> Block | None:
    """Join blocks until there are enough rows to learn from: lines may be long, or comments many."""
    parts: list[Block] = []
    rows = size = 0
    for block in blocks:
        if rows < 3 and block.bytes_read > MAX_COMMENTS:
            raise DataError(
                f"{source}: no table in the first {MAX_COMMENTS >> 20} MB, only blank lines and comments. "
                "Remove them."
            )
        if not parts and (block.data.isspace() or not block.data):
            continue
        parts.append(block)
        size += len(block.data)
        for line in io.BytesIO(block.data):
            rows += not is_comment(line[:80].decode("utf-8", "replace"))
            if rows >= ENOUGH_LINES:
                break
        if rows >= ENOUGH_LINES or (rows >= 3 and size > MAX_SAMPLED):
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
