"""The fast path for large tables: blocks of plain numbers, parsed by pandas' C reader.

A block is handed over only when its bytes prove that no rule of the careful reader could apply:
digits, signs, points, exponents, delimiters and line ends, with every line cut into the same number of
non-empty cells. pandas' own ideas about missing values, short lines, quotes and index columns are
then out of play. Anything else returns None, and the careful reader takes the block.
"""

from __future__ import annotations

import io
from typing import Literal

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.data.columns import BIGGEST_INTEGER

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
    width
        Expected number of columns.
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
