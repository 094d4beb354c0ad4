"""Pictures of a fit. matplotlib is imported only when one is drawn."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from physdiffuser.core.solution import Equation, FitPoints, Solution
from physdiffuser.expressions import to_text
from physdiffuser.io.display import visible
from physdiffuser.report.digits import shown_digits

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SEEN, HELD_OUT = "#1f4e79", "#d1793b"
_TITLE_LENGTH = 90


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


def _plain(text: str, limit: int) -> str:
    """Text that matplotlib draws as it stands: a `$` would start mathematics."""
    return visible(text, limit).replace("$", r"\$")


def _finite(points: FitPoints) -> npt.NDArray[np.bool_]:
    return np.isfinite(points.truth) & np.isfinite(points.prediction)


def _parts(points: FitPoints) -> list[tuple[str, str, npt.NDArray[np.bool_]]]:
    finite = _finite(points)
    parts = [
        ("search and fit", SEEN, finite & ~points.held_out),
        ("held out", HELD_OUT, finite & points.held_out),
    ]
    return [part for part in parts if part[2].any()]


def _scatter(axes: Axes, points: FitPoints, vertical: npt.NDArray[np.float64]) -> None:
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
