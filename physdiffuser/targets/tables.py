"""The tables of the estimator: rows merged, one table for each target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from physdiffuser.arrays import FloatArray
from physdiffuser.data.arrays import dataset_from_arrays, free_name
from physdiffuser.data.dataset import Dataset
from physdiffuser.data.distinct_rows import distinct_rows, grouped_rows
from physdiffuser.data.statements.groups import with_groups
from physdiffuser.errors import NothingFoundError, UsageError
from physdiffuser.options import SolveOptions

if TYPE_CHECKING:
    from physdiffuser.core.progress import Progress
    from physdiffuser.targets.answer import TargetSolutions


def merged_dataset(
    inputs: FloatArray,
    target: FloatArray,
    weights: FloatArray | None,
    names: list[str],
    target_name: str | None,
    groups: Any,
) -> Dataset:
    """The table that `fit` solves: rows merged and sorted, unless they have groups.

    Parameters
    ----------
    inputs
        Shape (rows, columns).
    target, weights
        Shape (rows,).
    names
        Of the columns.
    target_name
        Of the target, if it has one.
    groups
        The group of each row, or None.
    """
    rows = distinct_rows(inputs, target, weights) if groups is None else grouped_rows(inputs, target, weights)
    dataset = dataset_from_arrays(
        rows.inputs,
        rows.target,
        names=names,
        target_name=free_name((target_name, "y", "target"), names),
        weights=rows.weights,
    )
    if groups is not None:
        dataset = with_groups(dataset, groups, len(target))
    return replace(dataset, row_numbers=rows.first)


def target_names(y: Any, count: int, taken: list[str]) -> list[str]:
    """Names of the targets: those of a data frame's columns, else y1, y2, ..."""
    columns = getattr(y, "columns", None)
    if columns is not None:
        return [free_name((str(name), f"target_{name}"), taken) for name in columns]
    return [free_name((f"y{number}", f"target{number}"), taken) for number in range(1, count + 1)]


def solve_tables(
    tables: Mapping[str, Dataset],
    options: SolveOptions,
    on_improvement: Callable[[Progress], bool | None] | None,
) -> TargetSolutions:
    """The laws of all targets.

    Raises
    ------
    NothingFoundError
        If a target has no formula that is finite on all rows.
    """
    from physdiffuser.targets.solving import solve_datasets

    found = solve_datasets(tables, options, on_improvement=on_improvement)
    for target, solution in found.solutions.items():
        if solution.best is None:
            raise NothingFoundError(
                f"target {target!a}: no formula is finite on all rows; allow more operators or more time"
            )
    return found


def refuse_several(estimator: Any) -> None:
    """Raise where one law is asked for and there are several.

    Raises
    ------
    UsageError
        Naming where each is.
    """
    targets = getattr(estimator, "targets_", None)
    if targets:
        first = next(iter(targets))
        raise UsageError(
            f"the estimator was fitted to {len(targets)} targets: use targets_[{first!r}], which has this"
        )
