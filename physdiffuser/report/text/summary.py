"""The columns of a dataset in a few numbers each."""

from __future__ import annotations

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.solution import ColumnSummary
from physdiffuser.data.dataset import Column, Dataset

# Rows among which distinct values are counted: sorting a long column would take longer than all else.
_LOOKED_AT = 5_000


def summaries(dataset: Dataset) -> tuple[ColumnSummary, ...]:
    """A summary of each input column, in order, and of the target, last."""
    pairs = zip(dataset.columns, dataset.inputs.T, strict=True)
    described = [_summary(column, values, dataset) for column, values in pairs]
    return (*described, _summary(dataset.target_column, dataset.target, dataset))


def _summary(column: Column, values: FloatArray, dataset: Dataset) -> ColumnSummary:
    some = values[np.linspace(0, values.size - 1, min(values.size, _LOOKED_AT)).astype(np.intp)]
    written = dataset.unit_strings.get(column.name, "")
    return ColumnSummary(
        name=column.name,
        alias=column.alias,
        unit=str(column.unit) if column.unit is not None else written,
        low=float(values.min()),
        median=2 * float(np.median(values / 2)),  # the sum of two values may exceed the largest double
        high=float(values.max()),
        distinct=int(np.unique(some).size),
        looked_at=int(some.size),
    )
