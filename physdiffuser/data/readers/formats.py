"""From whatever the user named to a `Table`: the one place that knows all formats."""

from __future__ import annotations

import io
import os
import re
from typing import TYPE_CHECKING, BinaryIO

from physdiffuser.data.limits import MAX_PIPED, ReadLimits
from physdiffuser.data.readers.compression import GuardedGzip
from physdiffuser.data.readers.delimited import read_delimited
from physdiffuser.data.readers.header import TextOptions
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
        if kept.tell() > MAX_PIPED:
            raise DataError(
                f"{name}: more than {MAX_PIPED:,} bytes came through the pipe. Name a file instead."
            )
    kept.seek(0)
    return kept


HEAD_BYTES = 512
"""How many bytes `identify` wants to see."""

ZIP = b"PK\x03\x04"
GZIP = b"\x1f\x8b"
PARQUET = b"PAR1"

_CSV = "Export the table as CSV."
# (first bytes, what it is, what to do)
_REFUSED = (
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Excel workbook (.xls)", "Save it as .xlsx or CSV."),
    (b"BZh", "compressed with bzip2", "Decompress it first, or use gzip."),
    (b"\xfd7zXZ\x00", "compressed with xz", "Decompress it first, or use gzip."),
    (b"\x28\xb5\x2f\xfd", "compressed with zstandard", "Decompress it first, or use gzip."),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", "Unpack it first."),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file", _CSV),
    (b"\x93NUMPY", "a numpy array file", "Load it in Python and save it with numpy.savetxt."),
    (b"ARROW1", "an Arrow/Feather file", "Save it as Parquet or CSV."),
    (b"Obj\x01", "an Avro file", _CSV),
    (b"ORC", "an ORC file", _CSV),
    (b"SQLite format 3\x00", "an SQLite database", _CSV),
    (b"SIMPLE  =", "a FITS file", _CSV),
    (b"CDF\x01", "a NetCDF file", _CSV),
    (b"CDF\x02", "a NetCDF file", _CSV),
    (b"MATLAB 5.0", "a MATLAB file", _CSV),
    (b"%PDF", "a PDF document", "Copy the table into a CSV file."),
    (b"{\\rtf", "a rich-text document", "Save it as plain text."),
    (b"\x89PNG", "an image", _CSV),
    (b"\xff\xd8\xff", "an image", _CSV),
    (b"GIF8", "an image", _CSV),
    (b"\x7fELF", "a program", _CSV),
    (b"MZ\x90", "a program", _CSV),
)
_PICKLE = re.compile(rb"\x80[\x02-\x05][\x95\x28-\x7d\x80-\x8f]")
_MARKUP = re.compile(rb"\s*<(?:!doctype|html|\?xml|!--|head|body|table|svg|div|script)", re.IGNORECASE)
_JSON = re.compile(rb"\s*(?:\{\s*[\"}]|\[\s*[\[{])")


def identify(head: bytes, name: str) -> str:
    """Return ``"gzip"``, ``"excel"``, ``"parquet"`` or ``"text"``.

    Parameters
    ----------
    head
        The first `HEAD_BYTES` bytes.
    name
        The file's name. A container is read only under its own name: a workbook called ``.csv`` is
        more often a mistake than a wish.

    Raises
    ------
    DataError
        When the bytes are those of something else. Pickles are never loaded.
    """
    lower = name.lower()
    if head.startswith(GZIP):
        return "gzip"
    if head.startswith(ZIP):
        if lower.endswith((".xlsx", ".xlsm")):
            return "excel"
        raise DataError(
            f"{name}: this is an Excel workbook or a zip archive, not a text table. "
            "Rename a workbook to .xlsx; unpack an archive."
        )
    if head.startswith(PARQUET):
        if lower.endswith((".parquet", ".pq")):
            return "parquet"
        raise DataError(f"{name}: this is a Parquet file, not a text table. Rename it to .parquet.")
    if _PICKLE.match(head):
        raise DataError(
            f"{name}: this is a Python pickle, which is never loaded because it can run code. "
            "Export the table as CSV."
        )
    for signature, kind, fix in _REFUSED:
        if head.startswith(signature):
            raise DataError(f"{name}: this is {kind}, not a table that can be read. {fix}")
    if _MARKUP.match(head.removeprefix(b"\xef\xbb\xbf")):
        raise DataError(
            f"{name}: this is a web page or XML document, not a table. "
            "A download may have returned an error or login page; fetch the data file itself."
        )
    if _JSON.match(head.removeprefix(b"\xef\xbb\xbf")):
        raise DataError(f"{name}: this is JSON, not a table. {_CSV}")
    if lower.endswith((".xlsx", ".xlsm")) and head:
        raise DataError(f"{name}: the file is damaged or no Excel workbook. Save it again.")
    if lower.endswith((".parquet", ".pq")) and head:
        raise DataError(f"{name}: the file is damaged or no Parquet file. Write it again.")
    return "text"
