"""Which formulas of the front are worth a row of the table."""

from __future__ import annotations

from collections.abc import Sequence

from physdiffuser.report.solution import Equation

# A more complex formula must lower the error by this share: less is the same law in other words.
LEAST_GAIN = 0.005


def rows_to_show(rows: Sequence[Equation], chosen: int, rounding: float = 0.0) -> list[int]:
    """Positions of the formulas that the table shows.

    The front was made on the rows of the fit and is shown with the errors over all rows, where a longer
    formula may turn out worse, or the same law may be written twice.

    Parameters
    ----------
    rows
        From simple to complex.
    chosen
        Position of the one that is shown in any case.
    rounding
        Errors below this are alike.
    """
    kept: list[int] = []
    best = float("inf")
    for position, row in enumerate(rows):
        error = max(row.rmse, rounding)
        if position == chosen or not kept or error < best * (1 - LEAST_GAIN):
            kept.append(position)
            best = min(best, error)
    return kept
