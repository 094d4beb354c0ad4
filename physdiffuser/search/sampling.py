"""Which rows the search sees, which rows constants are fitted on, and which rows nobody sees."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from physdiffuser.data.dataset import Dataset

IntArray = npt.NDArray[np.intp]

# With fewer rows than this, holding some out costs more than it tells.
LEAST_ROWS_TO_HOLD_OUT = 30
HELD_OUT_SHARE = 0.2
MOST_HELD_OUT = 50_000
SEARCH_ROWS = 1_000
FIT_ROWS = 20_000


@dataclass(frozen=True)
class Split:
    """Row numbers, each sorted.

    Attributes
    ----------
    search
        At most `SEARCH_ROWS`, a part of `fit`.
    fit
        At most `FIT_ROWS`: constants are fitted and formulas chosen on them.
    held_out
        Not in `fit`; empty for small tables.
    """

    search: IntArray
    fit: IntArray
    held_out: IntArray


def split_rows(dataset: Dataset, seed: int) -> Split:
    """Split the rows of a table, by chance but equally for equal seeds.

    The search rows contain the least and the largest value of every column and of the target, so that
    a formula is not chosen for its behaviour in the middle of the table alone.
    """
    rows = dataset.rows
    order = np.random.default_rng([seed, 7]).permutation(rows)
    held = min(int(HELD_OUT_SHARE * rows), MOST_HELD_OUT) if rows >= LEAST_ROWS_TO_HOLD_OUT else 0
    held_out, rest = order[:held], order[held:]
    fit = rest[:FIT_ROWS]
    if fit.size <= SEARCH_ROWS:
        search = fit
    else:
        values = np.column_stack([dataset.inputs[fit], dataset.target[fit]])
        extremes = np.unique(np.concatenate([values.argmin(axis=0), values.argmax(axis=0)]))
        others = np.setdiff1d(np.arange(SEARCH_ROWS), extremes, assume_unique=True)
        search = fit[np.concatenate([extremes, others])[:SEARCH_ROWS]]
    return Split(np.sort(search), np.sort(fit), np.sort(held_out))
