"""From whatever the user named to a `Table`: the one place that knows all formats."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, BinaryIO

from physdiffuser.data.compression import GuardedGzip
from physdiffuser.data.delimited import read_delimited
from physdiffuser.data.header import TextOptions
from physdiffuser.data.signatures import HEAD_BYTES, identify
from physdiffuser.data.sources import byte_size, file_error, open_binary, source_name
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
        from physdiffuser.data.frame import is_frame, read_frame

        if is_frame(source):
            return read_frame(source, choose)
        raise UsageError(
            f"a table is a path, '-' or a pandas DataFrame, not {type(source).__name__}; "
            "for arrays use dataset_from_arrays"
        )
    name = source_name(source)
    with open_binary(source) as stream:
        try:
            head = stream.peek(HEAD_BYTES)[:HEAD_BYTES]
        except OSError as error:
            raise file_error(source, error) from error
        return _dispatch(stream, head, name, options, choose, byte_size(stream))


def _dispatch(
    stream: io.BufferedReader,
    head: bytes,
    name: str,
    options: TextOptions,
    choose: Choose,
    size: int | None,
) -> Table:
    kind = identify(head, name)
    if kind == "gzip":
        unpacked = io.BufferedReader(GuardedGzip(stream, name), 1 << 16)
        inner = unpacked.peek(HEAD_BYTES)[:HEAD_BYTES]
        if identify(inner, name.lower().removesuffix(".gz")) != "text":
            raise DataError(f"{name}: there is no text table inside the gzip file. Decompress it first.")
        return read_delimited(unpacked, inner, name, options, choose)
    if kind == "text":
        return read_delimited(stream, head, name, options, choose, total_bytes=size)
    # Both containers keep their directory at the end, which a pipe cannot jump to.
    seekable: BinaryIO = stream if stream.seekable() else io.BytesIO(stream.read())
    if kind == "excel":
        from physdiffuser.data.excel import read_excel

        return read_excel(seekable, name, options, choose)
    from physdiffuser.data.arrow import read_parquet

    return read_parquet(seekable, name, choose)
