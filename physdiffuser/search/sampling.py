"""Which rows the search sees, which rows constants are fitted on, and which rows nobody sees."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from physdiffuser.arrays import IndexArray
from physdiffuser.data.dataset import Dataset

# With fewer rows than this, setting some aside costs more accuracy than the test is worth.
MINIMUM_ROWS_TO_SPLIT = 30
TEST_SHARE = 0.2
MAXIMUM_TEST_ROWS = 50_000
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
    test
        Not in `fit`; empty for small tables.
    """

    search: IndexArray
    fit: IndexArray
    test: IndexArray


def split_rows(dataset: Dataset, seed: int) -> Split:
    """Split the rows of a table, by chance but equally for equal seeds.

    The search rows contain the least and the largest value of every column and of the target, so that
    a formula is not chosen for its behaviour in the middle of the table alone.
    """
    rows = dataset.rows
    order = np.random.default_rng([seed, 7]).permutation(rows)
    held = min(int(TEST_SHARE * rows), MAXIMUM_TEST_ROWS) if rows >= MINIMUM_ROWS_TO_SPLIT else 0
    test, rest = order[:held], order[held:]
    fit = rest[:FIT_ROWS]
    if fit.size <= SEARCH_ROWS:
        search = fit
    else:
        values = np.column_stack([dataset.inputs[fit], dataset.target[fit]])
        extremes = np.unique(np.concatenate([values.argmin(axis=0), values.argmax(axis=0)]))
        others = np.setdiff1d(np.arange(SEARCH_ROWS), extremes, assume_unique=True)
        search = fit[np.concatenate([extremes, others])[:SEARCH_ROWS]]
    return Split(np.sort(search), np.sort(fit), np.sort(test))
