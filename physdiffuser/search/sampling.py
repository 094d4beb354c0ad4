"""Which rows the search sees, which rows constants are fitted on, and which rows nobody sees."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from physdiffuser.arrays import IndexArray
from physdiffuser.data.dataset import Dataset


@dataclass(frozen=True)
class SamplingPolicy:
    """Sizes of the parts of a table.

    Set by hand (docs/methods/search.md).
    """

    min_rows_to_split: int = 30
    """With fewer rows, setting some aside costs more accuracy than the test is worth."""
    test_share: float = 0.2
    max_test_rows: int = 50_000
    """Share of the rows that are the test set, and most of them."""
    search_rows: int = 1_000
    fit_rows: int = 20_000
    """Most rows for the generators, and for fits and comparisons."""


POLICY = SamplingPolicy()


@dataclass(frozen=True)
class Split:
    """Row numbers, each sorted.

    Attributes
    ----------
    search
        At most `POLICY.search_rows`, a part of `fit`.
    fit
        At most `POLICY.fit_rows`: constants are fitted and formulas chosen on them.
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
    held = min(int(POLICY.test_share * rows), POLICY.max_test_rows) if rows >= POLICY.min_rows_to_split else 0
    test, rest = order[:held], order[held:]
    fit = rest[: POLICY.fit_rows]
    if fit.size <= POLICY.search_rows:
        search = fit
    else:
        values = np.column_stack([dataset.inputs[fit], dataset.target[fit]])
        extremes = np.unique(np.concatenate([values.argmin(axis=0), values.argmax(axis=0)]))
        others = np.setdiff1d(np.arange(POLICY.search_rows), extremes, assume_unique=True)
        search = fit[np.concatenate([extremes, others])[: POLICY.search_rows]]
    return Split(np.sort(search), np.sort(fit), np.sort(test))
