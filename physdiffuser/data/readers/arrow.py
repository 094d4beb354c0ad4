"""Reading Parquet files with pyarrow, an optional package."""

from __future__ import annotations

import io
from typing import Any, BinaryIO

import numpy as np

from physdiffuser.data.columns import ColumnBuilder
from physdiffuser.data.limits import MAX_RATIO, ReadLimits, check_cells
from physdiffuser.data.readers.cells import NumberFormat
from physdiffuser.data.table import Choose, Table, check_names, finish_columns
from physdiffuser.errors import DataError, UsageError
from physdiffuser.io.display import visible

FREE_CELLS = 1 << 22
"""Tables with at most this many cells are read however small their file is."""


def read_parquet(stream: BinaryIO, source: str, choose: Choose, limits: ReadLimits) -> Table:
    """Read the wanted columns of a Parquet file, batch by batch.

    Raises
    ------
    DataError
        When the file is damaged, a column holds something else than numbers or text, or a limit is exceeded.
    UsageError
        When pyarrow is not installed.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise UsageError(
            f"{source}: reading Parquet needs pyarrow. Install it with: pip install 'physdiffuser[parquet]'"
        ) from error
    try:
        file = pyarrow.parquet.ParquetFile(stream)
        # pandas stores an unnamed index under such a name.
        raw = ["" if name.startswith("__index_level_") else name for name in file.schema_arrow.names]
        names = check_names(raw, source)
        wanted = dict(sorted(choose(names).items()))
        _check_size(file.metadata.num_rows, len(wanted), stream, source)
        builders = {
            position: ColumnBuilder(
                names[position],
                position + 1,
                numbers=NumberFormat("."),
                source=source,
                first_line=1,
                unit="row",
                as_labels=labels,
            )
            for position, labels in wanted.items()
        }
        selected = [file.schema_arrow.names[position] for position in wanted]
        line = 1
        for batch in file.iter_batches(batch_size=1 << 17, columns=selected):
            for position, name in zip(wanted, selected, strict=True):
                _extend(builders[position], batch.column(name), line, pyarrow)
            line += batch.num_rows
            limits.check(source)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"{source}: the Parquet file is damaged or unusual ({visible(str(error), 200)}). Write it again."
        ) from error
    return Table(
        names=names,
        columns=finish_columns(builders, names),
        rows=line - 1,
        source=source,
        notes={"format": "Parquet"},
    )


def _check_size(rows: int, columns: int, stream: BinaryIO, source: str) -> None:
    """Refuse a table that memory cannot hold, or that a few bytes claim to be."""
    check_cells(rows, columns, source)
    position = stream.tell()
    size = stream.seek(0, io.SEEK_END)
    stream.seek(position)
    if rows * columns > FREE_CELLS and rows * columns * 8 > MAX_RATIO * size:
        raise DataError(
            f"{source}: {rows:,} rows in a file of {size:,} bytes: nearly all values are repeated, as no "
            "measurements are. Choose other columns with --inputs, or give fewer rows."
        )


def _extend(builder: ColumnBuilder, array: Any, line: int, pyarrow: Any) -> None:
    types = pyarrow.types
    if types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    if types.is_boolean(kind):
        values = array.cast(pyarrow.int8()).cast(pyarrow.float64()).to_numpy(zero_copy_only=False)
        builder.extend_booleans(values, line)
    elif types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        values = array.cast(pyarrow.float64(), safe=False).to_numpy(zero_copy_only=False)
        builder.extend_floats(np.asarray(values, np.float64), line, whole=types.is_integer(kind))
    elif types.is_string(kind) or types.is_large_string(kind):
        cells = ["" if cell is None else cell for cell in array.to_pylist()]
        builder.extend_cells(cells, lambda index: line + index)
    elif types.is_null(kind):
        builder.extend_cells([""] * len(array), lambda index: line + index)
    elif types.is_temporal(kind):
        raise builder.fail(
            line,
            str(array[0]),
            "is a date or time",
            "Write times as plain numbers (seconds, days, years) or choose other columns with --inputs.",
        )
    else:
        raise builder.fail(line, str(kind), "is no type for numbers", "Choose other columns with --inputs.")
