"""Pictures of a fit. matplotlib is imported only when one is drawn."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from physdiffuser.arrays import BoolArray, FloatArray, spread_places
from physdiffuser.core.solution import Equation, FitPoints, Solution
from physdiffuser.errors import UsageError
from physdiffuser.expressions import Expression, evaluate, to_text
from physdiffuser.expressions.tree import variables
from physdiffuser.io.display import visible
from physdiffuser.report.text.digits import shown_digits

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PlotKind = Literal["fit", "residuals", "pareto", "partial"]

SEEN, TEST = "#1f4e79", "#d1793b"
_TITLE_LENGTH = 90
# Partial dependence: points of a curve, and rows that the other columns are averaged over.
_CURVE_POINTS, _AVERAGED_ROWS = 101, 200


def fit_png(solution: Solution) -> bytes:
    """Prediction against truth and the residuals, as the bytes of a PNG file.

    Parameters
    ----------
    solution
        With `best` and `fit_points`.

    Raises
    ------
    ValueError
        If there is no formula or nothing to plot.
    """
    if solution.best is None or solution.fit_points is None:
        raise ValueError("a solution without a formula or without points has no plot")
    # Numbers near the ends of double precision overflow inside the axes, which costs ticks and no more.
    with np.errstate(all="ignore"):
        return _drawn(solution, solution.best, solution.fit_points)


def _drawn(solution: Solution, best: Equation, points: FitPoints) -> bytes:
    from matplotlib.figure import Figure

    # No pyplot: no global state, no window system, safe beside a program that plots.
    figure = Figure(figsize=(10, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    target = _plain(solution.target, 40)
    _prediction(left, points, target)
    _residuals(right, points, target)
    formula = to_text(best.expression, solution.names, shown_digits(best))
    figure.suptitle(_plain(f"{solution.target} = {formula}", _TITLE_LENGTH), fontsize=11)
    stream = io.BytesIO()
    # Without the metadata the same fit gives the same bytes.
    figure.savefig(stream, format="png", dpi=130, metadata={"Software": None})
    return stream.getvalue()


def plot(solution: Solution, equation: Equation, kind: str = "fit", axes: Any = None) -> Any:
    """Draw one picture of a formula into matplotlib axes.

    Parameters
    ----------
    solution
        With the rows of the table (`fit_points` with inputs).
    equation
        The formula: a row of `solution.pareto`.
    kind
        "fit": prediction against measurement; "residuals"; "pareto": rms error against complexity;
        "partial": the formula along each of its columns, averaged over the values of the others (partial
        dependence, Friedman 2001).
    axes
        Where to draw: an `Axes`; for "partial" one for each column of the formula. New ones when None.

    Returns
    -------
    The `Axes`; for "partial" an array of them, shape (columns,).

    Raises
    ------
    UsageError
        If there is no such picture, the solution has no rows, or the number of axes does not fit.
    """
    if kind not in get_args(PlotKind):
        raise UsageError(f"there is no plot {kind!r}: use one of {', '.join(get_args(PlotKind))}")
    target = _plain(solution.target, 40)
    with np.errstate(all="ignore"):
        if kind == "pareto":
            return _front(_new_axes(1)[0] if axes is None else axes, solution, equation)
        points = solution.fit_points
        inputs = solution.inputs_for(equation)
        if points is None or inputs is None:
            raise UsageError(
                "this solution was read from a file and has no rows to plot; solve the table again"
            )
        if kind == "partial":
            return _partial(solution, equation, inputs, axes)
        drawn = _new_axes(1)[0] if axes is None else axes
        shown = replace(points, prediction=evaluate(equation.expression, inputs))
        (_prediction if kind == "fit" else _residuals)(drawn, shown, target)
        return drawn


def _new_axes(count: int) -> Any:
    # pyplot, so that a notebook shows the figure.
    import matplotlib.pyplot as plt

    _, made = plt.subplots(1, count, figsize=(5 * count, 4.2), layout="constrained", squeeze=False)
    return made[0]


def _front(axes: Axes, solution: Solution, equation: Equation) -> Axes:
    complexity = [row.complexity for row in solution.pareto]
    errors = np.array([row.rmse for row in solution.pareto])
    axes.step(complexity, errors, where="post", color="0.6", linewidth=1)
    axes.scatter(complexity, errors, color=SEEN)
    axes.scatter([equation.complexity], [equation.rmse], color=TEST, zorder=3, label="shown formula")
    if (errors > 0).all():
        axes.set_yscale("log")
    axes.set_xlabel("complexity")
    axes.set_ylabel("rms error")
    axes.set_title("Pareto front", fontsize=10)
    axes.legend(frameon=False, fontsize=9)
    return axes


def _partial(solution: Solution, equation: Equation, inputs: FloatArray, axes: Any) -> Any:
    used = sorted(variables(equation.expression))
    if not used:
        raise UsageError("the formula holds no column, so there is no partial dependence to plot")
    drawn = _new_axes(len(used)) if axes is None else np.atleast_1d(np.asarray(axes, dtype=object)).ravel()
    if len(drawn) != len(used):
        raise UsageError(f"the formula holds {len(used)} columns, so it needs as many axes, not {len(drawn)}")
    for one, column in zip(drawn, used, strict=True):
        values, averages = partial_dependence(equation.expression, inputs, column)
        one.plot(values, averages, color=SEEN)
        one.set_xlabel(_plain(solution.columns[column], 40))
        one.set_ylabel(f"{_plain(solution.target, 40)}, average over the rows")
        one.grid(True, alpha=0.25, linewidth=0.6)
        one.spines[["top", "right"]].set_visible(False)
    return drawn


def partial_dependence(
    expression: Expression, inputs: FloatArray, column: int
) -> tuple[FloatArray, FloatArray]:
    """The formula along one column, averaged over the rows' values of the others.

    Parameters
    ----------
    inputs
        Shape (rows, columns); at most 200 rows spread over them are averaged.

    Returns
    -------
    Values of the column over its range, and averages; shape (points,) each. Rows without a finite value at a
    point are left out there.

    References
    ----------
    J. H. Friedman, "Greedy function approximation: a gradient boosting machine", Ann. Statist. 29 (2001).
    """
    rows = inputs[spread_places(len(inputs), _AVERAGED_ROWS)]
    values = np.linspace(inputs[:, column].min(), inputs[:, column].max(), _CURVE_POINTS)
    table = np.repeat(rows, len(values), axis=0)
    table[:, column] = np.tile(values, len(rows))
    predicted = evaluate(expression, table).reshape(len(rows), len(values))
    counts = np.isfinite(predicted).sum(axis=0)
    with np.errstate(all="ignore"):
        return values, np.where(np.isfinite(predicted), predicted, 0.0).sum(axis=0) / counts


def _plain(text: str, limit: int) -> str:
    """Text that matplotlib draws as it stands: a `$` would start mathematics."""
    return visible(text, limit).replace("$", r"\$")


def _finite(points: FitPoints) -> BoolArray:
    return np.isfinite(points.truth) & np.isfinite(points.prediction)


def _parts(points: FitPoints) -> list[tuple[str, str, BoolArray]]:
    finite = _finite(points)
    parts = [
        ("search and fit", SEEN, finite & ~points.test),
        ("test set", TEST, finite & points.test),
    ]
    return [part for part in parts if part[2].any()]


def _scatter(axes: Axes, points: FitPoints, vertical: FloatArray) -> None:
    size = 26 if points.truth.size <= 200 else 9 if points.truth.size <= 2_000 else 4
    for label, colour, chosen in _parts(points):
        axes.scatter(
            points.truth[chosen],
            vertical[chosen],
            s=size,
            color=colour,
            alpha=0.75,
            linewidths=0,
            label=label,
        )
    axes.grid(True, alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def _over_decades(points: FitPoints) -> bool:
    """Whether linear axes would show the largest rows only."""
    finite = _finite(points)
    truth, prediction = points.truth[finite], points.prediction[finite]
    if not truth.size or truth.min() <= 0 or prediction.min() <= 0:
        return False
    return bool(truth.max() / truth.min() > 100)


def _prediction(axes: Axes, points: FitPoints, target: str) -> None:
    truth = points.truth[_finite(points)]
    if _over_decades(points):
        axes.set_xscale("log")
        axes.set_yscale("log")
    if truth.size:
        ends = [float(truth.min()), float(truth.max())]
        axes.plot(ends, ends, color="0.6", linewidth=1, zorder=0)
    _scatter(axes, points, points.prediction)
    if len(_parts(points)) > 1:
        axes.legend(frameon=False, fontsize=9)
    axes.set_xlabel(f"{target}, measured")
    axes.set_ylabel(f"{target}, predicted")
    shown = "" if points.truth.size == points.rows else f" ({points.truth.size:,} of {points.rows:,} rows)"
    axes.set_title(f"Prediction{shown}", fontsize=10)


def _residuals(axes: Axes, points: FitPoints, target: str) -> None:
    residual = points.truth - points.prediction
    label = "measured - predicted"
    if _over_decades(points):
        axes.set_xscale("log")
        residual = residual / points.truth
        label = "(measured - predicted) / measured"
    axes.axhline(0.0, color="0.6", linewidth=1, zorder=0)
    _scatter(axes, points, residual)
    axes.set_xlabel(f"{target}, measured")
    axes.set_ylabel(label)
    axes.set_title("Residuals", fontsize=10)
