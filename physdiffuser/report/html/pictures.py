"""The charts of the page: the Pareto front, fit and residuals of a row, the law along each column."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from physdiffuser.arrays import BoolArray, FloatArray, IndexArray, spread_places
from physdiffuser.core.solution import Equation, FitPoints, Solution
from physdiffuser.expressions import Expression, evaluate
from physdiffuser.io.display import visible
from physdiffuser.report.html.charts import (
    Axis,
    Chart,
    Layer,
    Spot,
    axes,
    axis_for,
    band_path,
    chart_on,
    line_path,
    points_path,
)
from physdiffuser.report.text.digits import aligned, r_squared, short

# Points of a chart: more cannot be distinguished and make the page slow.
_MOST_POINTS = 500
_FRONT_WIDTH, _FRONT_HEIGHT = 480, 290
_LINE = 121


def front_chart(solution: Solution, texts: Sequence[str]) -> Chart:
    """Error against complexity, one point a row.

    Parameters
    ----------
    texts
        The formulas as shown, in the order of the rows.
    """
    complexity = np.array([row.complexity for row in solution.pareto], dtype=float)
    errors = np.array([row.rmse for row in solution.pareto])
    finite = errors[np.isfinite(errors) & (errors > 0)]
    # A row without any error has no logarithm: it stands below all others.
    floor = float(finite.min()) / 10 if finite.size else 1.0
    heights = np.where(errors > 0, errors, floor)
    left, top, right, bottom = 66.0, 14.0, _FRONT_WIDTH - 18.0, _FRONT_HEIGHT - 48.0
    x = axis_for(complexity, left, right)
    y = axis_for(heights, bottom, top, log=True, decades=0.5)
    across, down = x.place(complexity), y.place(heights)
    steps = "".join(
        f"M{a:g} {b:g}" if number == 0 else f"H{a:g}V{b:g}"
        for number, (a, b) in enumerate(zip(across, down, strict=True))
    )
    spots = [
        Spot(
            float(a),
            float(b),
            number,
            row.expression == (solution.best.expression if solution.best else None),
            f"Row {number}: {text}, complexity {row.complexity}, rms error {short(row.rmse)}",
        )
        for number, (row, text, a, b) in enumerate(
            zip(solution.pareto, texts, across, down, strict=True), start=1
        )
    ]
    whole = [(place, label) for place, label in x.ticks if "." not in label]
    return Chart(
        title="Pareto front",
        description=(
            f"Rms error against complexity of {len(spots)} formulas; error falls from "
            f"{aligned(float(errors[0]))} to {aligned(float(errors[-1]))} as they grow from complexity "
            f"{solution.pareto[0].complexity} to {solution.pareto[-1].complexity}."
        ),
        x_label="complexity",
        y_label="rms error",
        x_ticks=whole,
        y_ticks=y.ticks,
        layers=[Layer("front", steps)],
        spots=spots,
        width=_FRONT_WIDTH,
        height=_FRONT_HEIGHT,
        frame=(left, top, right, bottom),
    )


def shown_points(points: FitPoints) -> IndexArray:
    """Which points are drawn: all, or an even spread with the worst tenth among them."""
    count = points.truth.size
    if count <= _MOST_POINTS:
        return np.arange(count)
    with np.errstate(all="ignore"):
        residual = np.nan_to_num(np.abs(points.truth - points.prediction), nan=np.inf)
    worst = np.argpartition(residual, count - _MOST_POINTS // 10)[count - _MOST_POINTS // 10 :]
    return np.unique(np.concatenate([spread_places(count, _MOST_POINTS), worst]))


def fit_charts(solution: Solution, equation: Equation, number: int) -> list[Chart]:
    """Prediction against measurement, and the residuals, of one row; none without the rows."""
    points = solution.fit_points
    if points is None or points.inputs is None or not points.truth.size:
        return []
    some = shown_points(points)
    truth, test = points.truth[some], points.test[some]
    inputs = solution.inputs_for(equation)
    assert inputs is not None  # the points have inputs
    prediction = evaluate(equation.expression, inputs[some])
    with np.errstate(all="ignore"):
        residual = truth - prediction
    target = visible(solution.target, 40)
    over_decades = bool(truth.min() > 0 and truth.max() / truth.min() > 100)
    relative = over_decades and bool((truth > 0).all())
    if relative:
        with np.errstate(all="ignore"):
            residual = 100 * residual / truth
    unit = "residual / %" if relative else "measured − predicted"
    both = np.concatenate([truth, prediction[np.isfinite(prediction)]])
    logs = over_decades and bool((both > 0).all())
    x, y = axes(truth, both, log=(over_decades, logs))
    shown = "" if some.size == points.rows else f" {some.size:,} of {points.rows:,} rows are drawn."
    ends = np.array([truth.min(), truth.max()])
    fit = chart_on(
        (x, y),
        (f"{target}, measured", f"{target}, predicted"),
        title=f"Prediction of row {number}",
        description=f"Predicted against measured {target}; on the line they agree. "
        f"Rms error {short(equation.rmse)}, R² {r_squared(equation.r2)}.{shown}",
        layers=[Layer("guide", line_path(x, y, ends, ends)), *_rows(x, y, truth, prediction, test)],
    )
    across, down = axes(truth, residual, log=(over_decades, False), zero=True)
    zero = np.zeros(2)
    left = chart_on(
        (across, down),
        (f"{target}, measured", unit),
        title=f"Residuals of row {number}",
        description=f"Residuals of row {number}, against measured {target}; largest "
        f"{short(float(np.nanmax(np.abs(residual))) if np.isfinite(residual).any() else None)}"
        f"{' %' if relative else ''}.{shown}",
        layers=[
            Layer("guide", line_path(across, down, ends, zero)),
            *_rows(across, down, truth, residual, test),
        ],
    )
    return [fit, left]


def _rows(x: Axis, y: Axis, xs: FloatArray, ys: FloatArray, test: BoolArray) -> list[Layer]:
    layers = [Layer("seen", points_path(x, y, xs[~test], ys[~test]), "search and fit")]
    if test.any():
        layers.append(Layer("test", points_path(x, y, xs[test], ys[test]), "test set"))
    return layers


def column_chart(solution: Solution, expression: Expression, column: int) -> Chart | None:
    """The law along one column, the others at their medians, with the rows brought to that line.

    A row is drawn at the law's value there plus its own residual (partial residuals), so that what
    scatters about the line is what the law does not explain.
    """
    points = solution.fit_points
    if points is None or points.inputs is None:
        return None
    some = shown_points(points)
    inputs = points.inputs[some]
    values = inputs[:, column]
    low, high = float(values.min()), float(values.max())
    span = high - low
    if not (0 < span < math.inf):
        return None
    middle = np.median(points.inputs, axis=0)
    first = max(low - span / 4, 0.0) if low >= 0 else low - span / 4
    grid = np.linspace(first, high + span / 4, _LINE)
    law = evaluate(expression, _at(middle, column, grid))
    with np.errstate(all="ignore"):
        residual = points.truth[some] - evaluate(expression, inputs)
        heights = evaluate(expression, _at(middle, column, values)) + residual
    inside = law[(grid >= low) & (grid <= high)]
    x, y = axes(grid, np.concatenate([inside, heights]))
    name = visible(solution.columns[column], 40)
    others = "" if len(solution.columns) == 1 else ", the other columns at their medians"
    edges = x.place(np.array([low, high]))
    return chart_on(
        (x, y),
        (name, visible(solution.target, 40)),
        title=f"{visible(solution.target, 40)} along {name}",
        description=(
            f"The law along {name}{others}. Shaded: outside of the table's {short(low)} to {short(high)}."
        ),
        layers=[
            Layer("outside", band_path(x.start, float(edges[0]))),
            Layer("outside", band_path(float(edges[1]), x.end), "outside of the table"),
            Layer("seen", points_path(x, y, values, heights), "rows"),
            Layer("law", line_path(x, y, grid, law), "the law"),
        ],
    )


def _at(middle: FloatArray, column: int, values: FloatArray) -> FloatArray:
    table = np.tile(middle, (values.size, 1))
    table[:, column] = values
    return table
