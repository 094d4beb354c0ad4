"""Pictures of a fit. matplotlib is imported only when one is drawn."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from physdiffuser.data.display import visible
from physdiffuser.expressions import to_text
from physdiffuser.report.digits import shown_digits
from physdiffuser.report.solution import FitPoints, Solution

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
    from matplotlib.figure import Figure

    points = solution.fit_points
    # No pyplot: no global state, no window system, safe beside a program that plots.
    figure = Figure(figsize=(10, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    target = _plain(solution.target, 40)
    _prediction(left, points, target)
    _residuals(right, points, target)
    formula = to_text(solution.best.expression, solution.names, shown_digits(solution.best))
    figure.suptitle(_plain(f"{solution.target} = {formula}", _TITLE_LENGTH), fontsize=11)
    stream = io.BytesIO()
    # Without the metadata the same fit gives the same bytes.
    figure.savefig(stream, format="png", dpi=130, metadata={"Software": None})
    return stream.getvalue()


def _plain(text: str, limit: int) -> str:
    """Text that matplotlib draws as it stands: a `$` would start mathematics."""
    return visible(text, limit).replace("\\", "\\\\").replace("$", r"\$")


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
    parts = _parts(points)
    for label, colour, chosen in parts:
        axes.scatter(
            points.truth[chosen],
            vertical[chosen],
            s=size,
            color=colour,
            alpha=0.75,
            linewidths=0,
            label=label,
        )
    if len(parts) > 1:
        axes.legend(frameon=False, fontsize=9)
    axes.grid(True, alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def _prediction(axes: Axes, points: FitPoints, target: str) -> None:
    finite = _finite(points)
    truth = points.truth[finite]
    if truth.size:
        # Over some decades a linear axis shows the largest rows only.
        if truth.min() > 0 and points.prediction[finite].min() > 0 and truth.max() / truth.min() > 100:
            axes.set_xscale("log")
            axes.set_yscale("log")
        low, high = float(truth.min()), float(truth.max())
        axes.plot([low, high], [low, high], color="0.6", linewidth=1, zorder=0)
    _scatter(axes, points, points.prediction)
    axes.set_xlabel(f"{target}, measured")
    axes.set_ylabel(f"{target}, predicted")
    shown = "" if points.truth.size == points.rows else f" ({points.truth.size:,} of {points.rows:,} rows)"
    axes.set_title(f"Prediction{shown}", fontsize=10)


def _residuals(axes: Axes, points: FitPoints, target: str) -> None:
    finite = _finite(points)
    truth = points.truth[finite]
    if truth.size and truth.min() > 0 and truth.max() / truth.min() > 100:
        axes.set_xscale("log")
    axes.axhline(0.0, color="0.6", linewidth=1, zorder=0)
    with np.errstate(all="ignore"):
        residual = points.truth - points.prediction
    _scatter(axes, points, residual)
    axes.set_xlabel(f"{target}, measured")
    axes.set_ylabel("measured - predicted")
    axes.set_title("Residuals", fontsize=10)
