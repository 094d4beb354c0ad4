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
from physdiffuser.expressions import Expression, evaluate, to_text
from physdiffuser.expressions.tree import variables
from physdiffuser.finalize.next_measurements import law_prediction, noise_at
from physdiffuser.io.display import visible
from physdiffuser.report.html.charts import Chart, Layer, axes, chart_on, line_path, points_path
from physdiffuser.report.html.pictures import fit_charts, shown_points
from physdiffuser.report.text.digits import short, table_digits

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
class Compared:
    """One of two laws.

    Attributes
    ----------
    label
        `row 2` or `pin 1`.
    law
        The formula.
    solution
        With the rows that it is drawn on.
    """

    label: str
    law: Equation
    solution: Solution

    @property
    def text(self) -> str:
        """The formula as tables show it."""
        return visible(to_text(self.law.expression, self.solution.names, table_digits(self.law)), 20_000)


@dataclass(frozen=True)
class Comparison:
    """What the page shows of two laws.

    Attributes
    ----------
    residuals
        One chart for each law.
    along
        Both laws, and their difference, along each column that one of them uses, the others at their medians;
        in a table with groups the difference at each row.
    measurement
        None where no measurement within the ranges of the table tells them apart.
    reason
        Why there is no measurement.
    """

    residuals: tuple[Chart, ...]
    along: tuple[Chart, ...]
    measurement: Measurement | None
    reason: str = "Within the ranges of the table no single measurement is known to tell these two apart."


def compare(both: tuple[Compared, Compared], dataset: Dataset) -> Comparison:
    """Compare two laws."""
    laws = tuple(one.law for one in both)
    residuals = tuple(
        replace(chart, title=f"Residuals of {one.label}", y_label=f"{one.label}: {chart.y_label}")
        for one in both
        for chart in fit_charts(one.solution, one.law, 0)[1:]
    )
    used = sorted(variables(laws[0].expression) | variables(laws[1].expression))
    used = [column for column in used if column < len(dataset.columns)][:_MOST_COLUMNS]
    if dataset.groups is not None:
        reason = "In a table with groups no measurement is worked out that tells two laws apart."
        return Comparison(residuals, tuple(_at_rows(both, column) for column in used), None, reason)
    along = tuple(chart for column in used for chart in _along(both, column))
    return Comparison(residuals, along, _next(laws, dataset))


@np.errstate(all="ignore")
def _at_rows(both: tuple[Compared, Compared], column: int) -> Chart:
    """The difference of two laws at the rows of the table, against a column."""
    first, second = both
    points = first.solution.fit_points
    assert points is not None and points.inputs is not None  # the charts of residuals have been drawn
    some = shown_points(points)
    values = points.inputs[some, column]
    predicted = [
        _values(one.law.expression, inputs[some])
        for one in both
        if (inputs := one.solution.inputs_for(one.law)) is not None
    ]
    apart = predicted[1] - predicted[0]
    x, y = axes(values, apart, log=(_is_wide(values), False), zero=True)
    name = visible(first.solution.columns[column], 40)
    ends = np.array([values.min(), values.max()])
    return chart_on(
        (x, y),
        (name, f"{second.label} − {first.label}"),
        title=f"Where they differ along {name}",
        description=f"{second.label} less {first.label} at the rows of the table, along {name}.",
        layers=[
            Layer("guide", line_path(x, y, ends, np.zeros(2))),
            Layer("seen", points_path(x, y, values, apart)),
        ],
    )


def _is_wide(values: FloatArray) -> bool:
    low, high = float(values.min()), float(values.max())
    return low > 0 and high >= _DECADES * low


@np.errstate(all="ignore")
def _along(both: tuple[Compared, Compared], column: int) -> tuple[Chart, Chart]:
    """Both laws along a column, and their difference."""
    solution, (one, other) = both[0].solution, (law.label for law in both)
    points = solution.fit_points
    assert points is not None and points.inputs is not None  # the charts of residuals have been drawn
    values = points.inputs[:, column]
    low, high = float(values.min()), float(values.max())
    log = _is_wide(values)
    grid = np.geomspace(low, high, _LINE) if log else np.linspace(low, high, _LINE)
    table = np.tile(np.median(points.inputs, axis=0), (_LINE, 1))
    table[:, column] = grid
    lines = [_values(law.law.expression, table) for law in both]
    some = shown_points(points)
    single = points.inputs.shape[1] == 1
    every = [line[np.isfinite(line)] for line in lines] + ([points.truth[some]] if single else [])
    heights = np.concatenate(every)
    x, y = axes(grid, heights, log=(log, bool(heights.size and heights.min() > 0) and log))
    layers = [
        Layer(kind, line_path(x, y, grid, line), label)
        for kind, line, label in zip(("law", "rival-2"), lines, (one, other), strict=True)
    ]
    if single:
        layers.append(Layer("seen", points_path(x, y, values[some], points.truth[some]), "rows"))
    name = visible(solution.columns[column], 40)
    others = "" if single else ", the other columns at their medians"
    where = f"along {name} from {short(low)} to {short(high)}{others}"
    together = chart_on(
        (x, y),
        (name, visible(solution.target, 40)),
        title=f"Both laws along {name}",
        description=f"{one} and {other} {where}.",
        layers=layers,
    )
    apart = lines[1] - lines[0]
    x, y = axes(grid, apart, log=(log, False), zero=True)
    difference = chart_on(
        (x, y),
        (name, f"{other} − {one}"),
        title=f"Where they differ along {name}",
        description=f"{other} less {one} {where}.",
        layers=[
            Layer("guide", line_path(x, y, np.array([low, high]), np.zeros(2))),
            Layer("law", line_path(x, y, grid, apart)),
        ],
    )
    return together, difference


@np.errstate(all="ignore")
def _next(laws: tuple[Equation, ...], dataset: Dataset) -> Measurement | None:
    """The measurement after which the odds of the two laws are expected to be farthest apart."""
    table = dataset.sample(_MOST_ROWS)
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
