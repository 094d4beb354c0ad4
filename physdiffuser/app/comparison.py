"""Two laws side by side: residuals, where they differ, and the measurement that would tell them apart."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.problem import Problem
from physdiffuser.core.solution import Equation, Solution
from physdiffuser.data.dataset import Dataset
from physdiffuser.design.discrimination import discriminating_points
from physdiffuser.design.points import candidate_points, column_ranges
from physdiffuser.expressions import Expression, evaluate
from physdiffuser.expressions.tree import variables
from physdiffuser.finalize.next_measurements import law_prediction, noise_at
from physdiffuser.io.display import visible
from physdiffuser.report.html.charts import Chart, Layer, axes, line_path, points_path
from physdiffuser.report.html.pictures import fit_charts, shown_points
from physdiffuser.report.text.digits import short

_LINE = 161
_MOST_COLUMNS = 3
_DECADES = 100.0
# Rows from which the noise and the spread of the constants are estimated, at most.
_MOST_ROWS = 2_000


@dataclass(frozen=True)
class Measurement:
    """Where to measure next: column and value, the values of both laws, and the noise there, as text."""

    places: tuple[tuple[str, str], ...]
    values: tuple[str, str]
    noise: str
    apart: str


@dataclass(frozen=True)
class Comparison:
    """What the page shows of two laws.

    Attributes
    ----------
    residuals
        One chart for each law.
    along
        Both laws, and their difference, along each column that one of them uses, the others at their medians.
    measurement
        None where no measurement within the ranges of the table tells them apart.
    """

    residuals: tuple[Chart, ...]
    along: tuple[Chart, ...]
    measurement: Measurement | None


def compare(solution: Solution, dataset: Dataset, rows: tuple[int, int]) -> Comparison:
    """Compare two rows of the Pareto table, counted from 1."""
    laws = tuple(solution.pareto[row - 1] for row in rows)
    residuals = tuple(
        replace(chart, y_label=f"row {row}: {chart.y_label}")
        for law, row in zip(laws, rows, strict=True)
        for chart in fit_charts(solution, law, row)[1:]
    )
    used = sorted(variables(laws[0].expression) | variables(laws[1].expression))
    used = [column for column in used if column < len(dataset.columns)]
    if dataset.groups is not None:
        # The laws have constants of their own in each group: there is no one line to draw.
        return Comparison(residuals, (), None)
    along = tuple(chart for column in used[:_MOST_COLUMNS] for chart in _along(solution, laws, rows, column))
    return Comparison(residuals, along, _next(laws, dataset))


@np.errstate(all="ignore")
def _along(
    solution: Solution, laws: tuple[Equation, ...], rows: tuple[int, int], column: int
) -> tuple[Chart, Chart]:
    """Both laws along a column, and their difference."""
    points = solution.fit_points
    assert points is not None and points.inputs is not None  # the charts of residuals have been drawn
    values = points.inputs[:, column]
    low, high = float(values.min()), float(values.max())
    log = low > 0 and high >= _DECADES * low
    grid = np.geomspace(low, high, _LINE) if log else np.linspace(low, high, _LINE)
    table = np.tile(np.median(points.inputs, axis=0), (_LINE, 1))
    table[:, column] = grid
    lines = [_values(law.expression, table) for law in laws]
    some = shown_points(points)
    single = points.inputs.shape[1] == 1
    every = [line[np.isfinite(line)] for line in lines] + ([points.truth[some]] if single else [])
    heights = np.concatenate(every)
    x, y = axes(grid, heights, log=(log, bool(heights.size and heights.min() > 0) and log))
    layers = [
        Layer("law" if number == 0 else "rival-2", line_path(x, y, grid, line), f"row {row}")
        for number, (line, row) in enumerate(zip(lines, rows, strict=True))
    ]
    if single:
        layers.append(Layer("seen", points_path(x, y, values[some], points.truth[some]), "rows"))
    name = visible(solution.columns[column], 40)
    others = "" if single else ", the other columns at their medians"
    where = f"along {name} from {short(low)} to {short(high)}{others}"
    both = Chart(
        title=f"Both laws along {name}",
        description=f"Rows {rows[0]} and {rows[1]} {where}.",
        x_label=name,
        y_label=visible(solution.target, 40),
        x_ticks=x.ticks,
        y_ticks=y.ticks,
        layers=layers,
    )
    apart = lines[1] - lines[0]
    x, y = axes(grid, apart, log=(log, False), zero=True)
    difference = Chart(
        title=f"Where they differ along {name}",
        description=f"Row {rows[1]} less row {rows[0]} {where}.",
        x_label=name,
        y_label=f"row {rows[1]} − row {rows[0]}",
        x_ticks=x.ticks,
        y_ticks=y.ticks,
        layers=[
            Layer("guide", line_path(x, y, np.array([low, high]), np.zeros(2))),
            Layer("law", line_path(x, y, grid, apart)),
        ],
    )
    return both, difference


@np.errstate(all="ignore")
def _next(laws: tuple[Equation, ...], dataset: Dataset) -> Measurement | None:
    """The measurement after which the odds of the two laws are expected to be farthest apart."""
    some = np.unique(np.linspace(0, dataset.rows - 1, min(dataset.rows, _MOST_ROWS)).astype(np.intp))
    table = dataset.take(some)
    problem = Problem(table.inputs, table.target, table.names, weights=table.weights)
    ranges = column_ranges(table.inputs, {})
    points = candidate_points(table.inputs, ranges, range(table.inputs.shape[1]))
    means = [_values(law.expression, points) for law in laws]
    points = points[np.isfinite(means[0]) & np.isfinite(means[1])]
    if not len(points):
        return None
    predictions = [law_prediction(law.expression, points, problem) for law in laws]
    if predictions[0] is None or predictions[1] is None:
        return None
    one, other = predictions[0], predictions[1]
    better = 0 if laws[0].rmse <= laws[1].rmse else 1
    noise = noise_at(laws[better].expression, (one, other)[better].mean, problem, table)
    design = discriminating_points([one, other], [0.5, 0.5], noise, 1)
    if not design:
        return None
    place = design[0]
    spread = np.sqrt(noise[place] ** 2 + one.variance[place] + other.variance[place])
    return Measurement(
        tuple(
            (column.shown, short(float(value), 4))
            for column, value in zip(table.columns, points[place], strict=True)
        ),
        (short(float(one.mean[place]), 4), short(float(other.mean[place]), 4)),
        short(float(noise[place]), 2),
        short(float(abs(one.mean[place] - other.mean[place]) / spread), 2),
    )


def _values(expression: Expression, table: FloatArray) -> FloatArray:
    return np.asarray(evaluate(expression, table) + np.zeros(len(table)), float)
