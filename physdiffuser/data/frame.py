"""Reading a pandas DataFrame that a Python program hands over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from physdiffuser.data.cells import NumberFormat
from physdiffuser.data.columns import ColumnBuilder
from physdiffuser.data.table import Choose, Table, check_names, finish_columns
from physdiffuser.errors import DataError

if TYPE_CHECKING:
    import pandas

SOURCE = "<DataFrame>"


def is_frame(source: object) -> bool:
    """Whether `source` is a pandas DataFrame, without importing pandas."""
    return any(
        cls.__module__.partition(".")[0] == "pandas" and cls.__name__ == "DataFrame"
        for cls in type(source).__mro__
    )


def read_frame(frame: pandas.DataFrame, choose: Choose) -> Table:
    """Read the columns of a DataFrame; its index is ignored.

    Raises
    ------
    DataError
        When a column holds dates, complex numbers or other things that are no real numbers.
    """
    if frame.columns.nlevels > 1:
        raise DataError(
            f"{SOURCE}: the columns have {frame.columns.nlevels} levels. Flatten them: "
            "frame.columns = ['_'.join(map(str, name)) for name in frame.columns]"
        )
    names = check_names([str(name) for name in frame.columns], SOURCE)
    builders = {}
    for position in sorted(choose(names)):
        builder = ColumnBuilder(
            names[position], position + 1, numbers=NumberFormat("."), source=SOURCE, first_line=1, unit="row"
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
