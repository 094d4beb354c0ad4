"""Where the remaining laws differ, and what to measure next: the table and the charts of the page."""

from __future__ import annotations

import numpy as np

from physdiffuser.core.solution import Solution
from physdiffuser.core.solution_parts.next_measurements import NextMeasurements
from physdiffuser.expressions import evaluate
from physdiffuser.io.display import visible
from physdiffuser.report.html.charts import Chart, Layer, axes, chart_on, line_path, points_path
from physdiffuser.report.text.digits import short
from physdiffuser.report.text.suggested import shown_laws, varied_columns

_LINE = 161
_MOST_CHARTS = 3
# Quotient of the ends from which a column is drawn in its logarithm.
_DECADES = 100.0


def suggestion_charts(solution: Solution, found: NextMeasurements) -> list[Chart]:
    """The laws along each column, the other columns as in the first suggested measurement."""
    if not found.points:
        return []
    return [_along(solution, found, column) for column in varied_columns(found)[:_MOST_CHARTS]]


@np.errstate(all="ignore")
def _along(solution: Solution, found: NextMeasurements, column: int) -> Chart:
    low, high = found.ranges[column]
    log = low > 0 and high >= _DECADES * low
    grid = np.geomspace(low, high, _LINE) if log else np.linspace(low, high, _LINE)
    table = np.tile(np.array(found.points[0].inputs), (_LINE, 1))
    table[:, column] = grid
    shown = shown_laws(found)
    values = [np.asarray(evaluate(found.laws[place], table) + np.zeros(_LINE), float) for place in shown]
    chosen = values[0][np.isfinite(values[0])]
    reach = 2 * max(float(np.ptp(chosen)), float(np.abs(chosen).max()) or 1.0)
    # A law that runs away would press all others flat.
    inside = [part[np.abs(part - np.median(chosen)) <= reach] for part in values]
    places = np.array([point.inputs[column] for point in found.points])
    measured = np.array([point.values[0] for point in found.points])
    x, y = axes(grid, np.concatenate([*inside, measured]), log=(log, False))
    name = visible(solution.columns[column], 40)
    single = len(varied_columns(found)) == 1
    others = "" if single else ", the other columns as in the first suggested measurement"
    layers = [
        Layer("law" if number == 1 else f"rival-{number}", line_path(x, y, grid, part), f"law {number}")
        for number, part in enumerate(values, 1)
    ]
    points = solution.fit_points
    if single and points is not None and points.inputs is not None:
        seen = points_path(x, y, points.inputs[:, column], points.truth)
        layers.append(Layer("seen", seen, "rows"))
    some = places if single else places[:1]
    marks = points_path(x, y, some, measured[: some.size])
    layers.append(Layer("test", marks, "suggested"))
    return chart_on(
        (x, y),
        (name, visible(solution.target, 40)),
        title=f"Where the laws differ along {name}",
        description=(
            f"{len(shown)} laws that the table does not exclude, along {name} from {short(low)} to "
            f"{short(high)}{others}. The suggested measurements stand on the chosen law."
        ),
        layers=layers,
    )
