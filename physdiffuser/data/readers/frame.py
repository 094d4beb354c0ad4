"""Reading a pandas DataFrame that a Python program hands over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from physdiffuser.data.columns import ColumnBuilder
from physdiffuser.data.readers.cells import NumberFormat
from physdiffuser.data.table import Choose, Table, check_names, finish_columns
from physdiffuser.errors import DataError, UsageError
from physdiffuser.io.display import visible

if TYPE_CHECKING:
    import pandas

SOURCE = "<DataFrame>"


def is_frame(source: object) -> bool:
    """Whether `source` is a pandas DataFrame, without importing pandas."""
    return any(
        cls.__module__.partition(".")[0] == "pandas" and cls.__name__ == "DataFrame"
        for cls in type(source).__mro__
    )


def as_frame(source: object) -> pandas.DataFrame | None:
    """A table of any library as a pandas DataFrame; None if `source` is not a table with column names.

    Parameters
    ----------
    source
        A pandas DataFrame, a mapping of column names to values, a numpy array with named fields, or a table
        with a method `to_pandas` (polars, pyarrow).

    Raises
    ------
    DataError
        When the columns of a mapping have different lengths.
    UsageError
        When the library of the table cannot convert it.
    """
    if is_frame(source):
        return source  # type: ignore[return-value]
    if isinstance(source, Mapping):
        return _from_columns(dict(source))
    if isinstance(source, np.ndarray) and source.dtype.names is not None and source.ndim == 1:
        return _from_columns({name: source[name] for name in source.dtype.names})
    convert = getattr(source, "to_pandas", None)
    if convert is None or isinstance(source, type):
        return None
    try:
        found = convert()
    except ImportError as error:
        raise UsageError(f"a {type(source).__name__} cannot be converted to a DataFrame: {error}") from error
    return found if is_frame(found) else None


def _from_columns(columns: Mapping[Any, Any]) -> pandas.DataFrame:
    import pandas

    shapes = {str(name): np.shape(values) for name, values in columns.items()}
    if any(len(shape) != 1 for shape in shapes.values()) or len(set(shapes.values())) > 1:
        shown = ", ".join(f"{visible(name)} {shape}" for name, shape in shapes.items())
        raise DataError(f"the columns must be lists of the same length; their shapes are {shown}.")
    # As arrays: Series would be aligned by their index.
    return pandas.DataFrame({name: np.asarray(values) for name, values in columns.items()})


def check_levels(frame: pandas.DataFrame) -> None:
    """Refuse a frame whose column names have several levels."""
    if frame.columns.nlevels > 1:
        raise DataError(
            f"{SOURCE}: the columns have {frame.columns.nlevels} levels. Flatten them: "
            "frame.columns = ['_'.join(map(str, name)) for name in frame.columns]"
        )


def read_frame(frame: pandas.DataFrame, choose: Choose) -> Table:
    """Read the columns of a DataFrame; its index is ignored.

    Raises
    ------
    DataError
        When a column holds dates, complex numbers or other things that are no real numbers.
    """
    check_levels(frame)
    names = check_names([str(name) for name in frame.columns], SOURCE)
    builders = {}
    for position, labels in sorted(choose(names).items()):
        builder = ColumnBuilder(
            names[position],
            position + 1,
            numbers=NumberFormat("."),
            source=SOURCE,
            first_line=1,
            unit="row",
            as_labels=labels,
        )
        _extend(builder, frame.iloc[:, position])
        builders[position] = builder
    return Table(names, finish_columns(builders, names), len(frame), SOURCE)


def _extend(builder: ColumnBuilder, series: Any) -> None:
    if not len(series):
        return
    dtype = series.dtype
    kind = getattr(dtype, "kind", "O")
    if kind == "b":
        builder.extend_booleans(series.to_numpy(dtype=np.float64, na_value=np.nan), 1)
    elif kind in "iuf":
        values = series.to_numpy(dtype=np.float64, na_value=np.nan)
        builder.extend_floats(values, 1, whole=kind in "iu")
    elif kind == "c":
        raise builder.fail(
            1, str(series.iloc[0]), "is a complex number", "Give real and imaginary part as two columns."
        )
    elif kind in "mM":
        raise builder.fail(
            1,
            str(series.iloc[0]),
            "is a date or time",
            "Write times as plain numbers (seconds, days, years) or choose other columns with --inputs.",
        )
    else:
        missing = series.isna().to_numpy()
        cells = ["" if gap else _text(cell) for cell, gap in zip(series, missing, strict=True)]
        builder.extend_cells(cells, lambda index: index + 1)


def _text(cell: object) -> str:
    return repr(float(cell)) if isinstance(cell, float) else str(cell)
