"""The rows and weights of the fit, for the reader of an answer."""

from __future__ import annotations

import numpy as np

from physdiffuser.core.solution_parts.fit_rows import FitRows
from physdiffuser.search.table_search import Found

# Of larger tables the lists would be longer than the rest of the answer.
MAX_ROWS = 2_000
_DIGITS = 10


def fit_rows(found: Found) -> FitRows | None:
    """How the rows took part in the fit; None for tables of more than 2,000 rows.

    With errors of the inputs each law has weights of its own; these are those of the search.
    """
    dataset, whole = found.dataset, found.reweighted.full_dataset
    table = dataset if whole is None else whole
    if table.rows > MAX_ROWS:
        return None
    numbers = np.arange(table.rows) if table.row_numbers is None else table.row_numbers
    left_out = np.array(found.reweighted.numbers if whole is not None else (), np.intp)
    kept = np.delete(numbers, left_out)
    weights = dataset.weights
    if weights is not None:
        weights = (weights / weights.mean())[np.argsort(kept, kind="stable")]
    return FitRows(
        loss=found.problem.loss,
        test=_counted(kept[found.split.test]),
        left_out=_counted(numbers[left_out]),
        weights=None if weights is None else tuple(float(f"{one:.{_DIGITS}g}") for one in weights),
    )


def _counted(rows: np.ndarray) -> tuple[int, ...]:
    return tuple(sorted(int(row) + 1 for row in rows))
