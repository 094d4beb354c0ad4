"""From whatever the user named to a `Table`: the one place that knows all formats."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, BinaryIO

from physdiffuser.data.limits import MOST_PIPED, ReadLimits
from physdiffuser.data.readers.compression import GuardedGzip
from physdiffuser.data.readers.delimited import read_delimited
from physdiffuser.data.readers.header import TextOptions
from physdiffuser.data.readers.signatures import HEAD_BYTES, identify
from physdiffuser.data.readers.sources import byte_size, file_error, open_binary, source_name
from physdiffuser.data.table import Choose, Table, every_column
from physdiffuser.errors import DataError, UsageError

if TYPE_CHECKING:
    import pandas


def read_table(
    source: str | os.PathLike[str] | pandas.DataFrame,
    *,
    encoding: str | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    thousands: str | None = None,
    units_row: bool = False,
    choose: Choose = every_column,
    seconds: float | None = None,
) -> Table:
    """Read a table without choosing a target or leaving anything out.

    Parameters
    ----------
    source
        A path (text, gzip, Parquet, Excel), ``"-"`` for standard input, or a pandas DataFrame.
    encoding, delimiter, header, thousands
        How a text table is written; found out when None.
    units_row
        Whether the row below the header holds units; they are in `Table.unit_strings`.
    choose
        Which columns to read; the cells of the others are not looked at.
    seconds
        Most seconds that reading may take; None for no limit.

    Raises
    ------
    FileError
        When the file cannot be opened or read.
    DataError
        When its content is no table of numbers; names line, column, cause and fix.
    UsageError
        When an option makes no sense.
    """
    options = TextOptions(encoding, delimiter, header, thousands, units_row)
    if not isinstance(source, str | os.PathLike):
        from physdiffuser.data.readers.frame import as_frame, read_frame

        frame = as_frame(source)
        if frame is not None:
            return read_frame(frame, choose)
        raise UsageError(
            f"a table is a path, '-', a DataFrame or a mapping of column names to values, not "
            f"{type(source).__name__}. For arrays of inputs X and of the target y: solve(X, y)"
        )
    name = source_name(source)
    limits = ReadLimits(seconds)
    with open_binary(source, limits) as stream:
        try:
            head = stream.peek(HEAD_BYTES)[:HEAD_BYTES]
        except OSError as error:
            raise file_error(source, error) from error
        return _dispatch(stream, head, name, options, choose, limits)


def _dispatch(
    stream: io.BufferedReader,
    head: bytes,
    name: str,
    options: TextOptions,
    choose: Choose,
    limits: ReadLimits,
) -> Table:
    kind = identify(head, name)
    if kind == "gzip":
        unpacked = io.BufferedReader(GuardedGzip(stream, name, limits), 1 << 16)
        inner = unpacked.peek(HEAD_BYTES)[:HEAD_BYTES]
        if identify(inner, name.lower().removesuffix(".gz")) != "text":
            raise DataError(f"{name}: there is no text table inside the gzip file. Decompress it first.")
        return read_delimited(unpacked, inner, name, options, choose)
    if kind == "text":
        return read_delimited(stream, head, name, options, choose, total_bytes=byte_size(stream))
    # Both containers keep their directory at the end, which a pipe cannot jump to.
    seekable: BinaryIO = stream if stream.seekable() else _kept(stream, name)
    if kind == "excel":
        from physdiffuser.data.readers.excel import read_excel

        return read_excel(seekable, name, options, choose, limits)
    from physdiffuser.data.readers.arrow import read_parquet

    return read_parquet(seekable, name, choose, limits)


def _kept(stream: io.BufferedReader, name: str) -> io.BytesIO:
    """What comes through a pipe, in memory."""
    kept = io.BytesIO()
    while data := stream.read(1 << 20):
        kept.write(data)
        if kept.tell() > MOST_PIPED:
            raise DataError(
                f"{name}: more than {MOST_PIPED:,} bytes came through the pipe. Name a file instead."
            )
    kept.seek(0)
    return kept
