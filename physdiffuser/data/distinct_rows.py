"""The different rows of a table, with the weights of equal ones added up."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from physdiffuser.arrays import FloatArray, IndexArray


class DistinctRows(NamedTuple):
    """The different rows of a table.

    Attributes
    ----------
    inputs
        Shape (distinct, columns).
    target
        Shape (distinct,).
    weights
        Shape (distinct,), or None when all are equal.
    first
        Shape (distinct,): where each row occurs first in the table, counted from 0.
    """

    inputs: FloatArray
    target: FloatArray
    weights: FloatArray | None
    first: IndexArray


def distinct_rows(inputs: FloatArray, target: FloatArray, weights: FloatArray | None = None) -> DistinctRows:
    """One row for each that occurs, with the weights of its copies added up, in lexicographic order.

    Parameters
    ----------
    inputs
        Shape (rows, columns).
    target
        Shape (rows,).
    weights
        Shape (rows,), not negative; all 1 when None. Rows of weight zero are left out.

    Raises
    ------
    ValueError
        If fewer than two distinct rows are left.
    """
    kept = np.ones(target.shape[0]) if weights is None else weights
    numbers = np.flatnonzero(kept > 0)
    table = np.column_stack([inputs, target])[numbers] + 0.0  # -0.0 + 0.0 is 0.0: one zero, not two
    kept = kept[numbers]
    # The last key of lexsort counts most: columns from the right, so that the first input comes first.
    # Weights are the least of the keys: in a sum over equal rows, their order must not show.
    order = np.lexsort((kept, *table.T[::-1]))
    table, kept, numbers = table[order], kept[order], numbers[order]
    starts = np.flatnonzero(np.r_[True, (table[1:] != table[:-1]).any(axis=1)]) if len(table) else order
    if len(starts) < 2:
        raise ValueError(
            f"{len(starts)} distinct sample(s) of weight above zero while a minimum of 2 is required"
        )
    sums = np.add.reduceat(kept, starts)
    rows = table[starts]
    first = np.minimum.reduceat(numbers, starts)
    return DistinctRows(rows[:, :-1], rows[:, -1], None if np.ptp(sums) == 0.0 else sums, first)


def grouped_rows(inputs: FloatArray, target: FloatArray, weights: FloatArray | None = None) -> DistinctRows:
    """All rows as they are: equal rows of different groups are different."""
    return DistinctRows(inputs, target, weights, np.arange(target.shape[0]))
