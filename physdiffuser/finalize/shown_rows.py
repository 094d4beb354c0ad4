"""Which formulas of the front are worth a row of the table."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.solution import Equation
from physdiffuser.report.text.digits import aligned

# A more complex formula must lower the error by this share: less is the same law in other words.
MIN_GAIN = 0.005


def rows_to_show(rows: Sequence[Equation], chosen: int, rounding: float = 0.0) -> list[int]:
    """Positions of the formulas that the table shows: a Pareto front in complexity and printed error.

    The front was made on the rows of the fit and is shown with the errors over all rows, where a longer
    formula may turn out worse, or the same law may be written twice. The chosen formula is always shown.
    Simpler formulas whose error is no larger than its error are left out; they take more to describe.

    Parameters
    ----------
    rows
        From simple to complex.
    chosen
        Position of the one that is shown in any case.
    rounding
        Errors below this are alike.
    """
    errors = [printed_error(row, rounding) for row in rows]
    kept: list[int] = []
    best = math.inf
    for position, error in enumerate(errors):
        gains = error < best and error <= best * (1 - MIN_GAIN) if kept else math.isfinite(error)
        dominates = position < chosen and error <= errors[chosen]
        if position == chosen or (gains and not dominates):
            kept.append(position)
            best = min(best, error)
    return kept


def left_out(rows: Sequence[Equation], chosen: int, rounding: float = 0.0) -> list[int]:
    """Positions of simpler formulas with no more fitted constants and no larger error than the chosen one."""
    most = printed_error(rows[chosen], rounding)
    constants = _fitted(rows[chosen])
    return [
        position
        for position, row in enumerate(rows)
        if row.complexity < rows[chosen].complexity
        and _fitted(row) <= constants
        and printed_error(row, rounding) <= most
    ]


def rounding_error(target: FloatArray, weights: FloatArray | None, floor: float) -> float:
    """The rmse that rounding of the target alone causes, weighted as the rmse of a formula is.

    With weights for errors that are proportional to values of many decades, an rmse without them is thousands
    of times as large.

    Parameters
    ----------
    target, weights
        Shape (rows,); weights None where all rows count the same.
    floor
        Relative loss that rounding causes.
    """
    scale = float(np.abs(target).max()) or 1.0
    unit = target / scale
    variance = np.average(np.square(unit - np.average(unit, weights=weights)), weights=weights)
    return float(np.sqrt(floor * variance)) * scale


def printed_error(row: Equation, rounding: float = 0.0) -> float:
    """The error of a row as it is printed; inf where it has none."""
    return float(aligned(max(row.rmse, rounding))) if math.isfinite(row.rmse) else math.inf


def _fitted(row: Equation) -> int:
    return sum(not constant.is_set for constant in row.constants)
