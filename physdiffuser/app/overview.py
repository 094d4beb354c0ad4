"""How a table was read, for the page: its columns, a few rows, and each column against the target."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from physdiffuser.app.settings import Settings
from physdiffuser.app.tables import dataset_of, whole_table
from physdiffuser.arrays import FloatArray, spread_places
from physdiffuser.data.table import Table, TableColumn
from physdiffuser.errors import PhysdiffuserError
from physdiffuser.io.display import visible
from physdiffuser.report.html.charts import Chart, Layer, axes, chart_on, points_path
from physdiffuser.report.text.digits import short

_MOST_CHARTS, _MOST_POINTS, _PREVIEW = 12, 400, 5
_DECADES = 100.0


@dataclass(frozen=True)
class ColumnView:
    """A column as the page lists it."""

    name: str
    shown: str
    kind: str
    role: str
    unit: str
    low: str
    high: str
    missing: int
    example: str


def overview(path: Path, settings: Settings) -> dict[str, Any]:
    """What the page shows of a table, for the template `setup.html`.

    Raises
    ------
    PhysdiffuserError
        If the table cannot be read at all. What is wrong with the roles of its columns is in `error`.
    """
    table = whole_table(path, settings.reading)
    warnings, notes, error = table.warnings, dict(table.notes), ""
    target = settings.target
    try:
        dataset = dataset_of(path, settings)
    except PhysdiffuserError as reason:
        error = str(reason)
    else:
        warnings, notes, target = dataset.warnings, dict(dataset.notes), dataset.target_column.name
    return {
        "rows": table.rows,
        "columns": [_view(column, table, settings, target) for column in table.columns],
        "preview": _preview(table),
        "warnings": warnings,
        "notes": notes,
        "error": error,
        "target": target or "",
        "charts": _charts(table, settings, target),
    }


def _view(column: TableColumn, table: Table, settings: Settings, target: str | None) -> ColumnView:
    values = column.values[np.isfinite(column.values)]
    numbers = column.kind != "text" and values.size
    return ColumnView(
        name=column.name,
        shown=visible(column.name, 60),
        kind={"number": "numbers", "boolean": "yes/no", "text": "text", "empty": "empty"}[column.kind],
        role=_role(column, settings, target),
        unit=settings.units.get(column.name, table.unit_strings.get(column.name, "")),
        low=short(float(values.min()), 4) if numbers else "",
        high=short(float(values.max()), 4) if numbers else "",
        missing=int(np.isnan(column.values).sum()) if column.kind in ("number", "boolean") else 0,
        example=visible(column.example, 30),
    )


def _role(column: TableColumn, settings: Settings, target: str | None) -> str:
    name = column.name
    if name == target:
        return "target"
    if name in settings.groups:
        return "group"
    if name == settings.weights:
        return "weights"
    if name == settings.errors:
        return "errors"
    if column.kind in ("text", "empty"):
        return "unused"
    return "input" if settings.inputs is None or name in settings.inputs else "unused"


def _preview(table: Table) -> list[list[str]]:
    texts = [column.texts()[:_PREVIEW] if column.codes is not None else None for column in table.columns]
    return [
        [
            visible(own[row], 30) if own is not None else short(float(column.values[row]), 6)
            for column, own in zip(table.columns, texts, strict=True)
        ]
        for row in range(min(_PREVIEW, table.rows))
    ]


def _charts(table: Table, settings: Settings, target: str | None) -> list[Chart]:
    """Each column that may be an input against the target."""
    y = next((column.values for column in table.columns if column.name == target), None)
    if y is None:
        return []
    shown = [column for column in table.columns if _role(column, settings, target) == "input"]
    return [_chart(column, y, target or "") for column in shown[:_MOST_CHARTS] if column.kind != "text"]


def _chart(column: TableColumn, target: FloatArray, name: str) -> Chart:
    both = np.flatnonzero(np.isfinite(column.values) & np.isfinite(target))
    some = both[spread_places(both.size, _MOST_POINTS)]
    across, down = column.values[some], target[some]
    # A power law is a line where both axes are logarithmic.
    log = _over_decades(down) and bool(across.size and across.min() > 0)
    x, y = axes(across, down, log=(log or _over_decades(across), _over_decades(down)))
    own, other = visible(column.name, 40), visible(name, 40)
    drawn = "" if some.size == both.size else f" {some.size:,} of {both.size:,} rows are drawn."
    return chart_on(
        (x, y),
        (own, other),
        title=f"{other} against {own}",
        description=f"{other} against {own}, one point a row.{drawn}",
        layers=[Layer("seen", points_path(x, y, across, down))],
    )


def _over_decades(values: FloatArray) -> bool:
    return bool(values.size and values.min() > 0 and values.max() >= _DECADES * values.min())
