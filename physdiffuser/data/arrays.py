"""Wrapping arrays that a Python program hands over."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from physdiffuser.data.aliases import assign_aliases
from physdiffuser.data.checks import check_weights
from physdiffuser.data.dataset import Column, Dataset
from physdiffuser.data.display import listed
from physdiffuser.errors import DataError


def dataset_from_arrays(
    inputs: npt.ArrayLike,
    target: npt.ArrayLike,
    *,
    names: Sequence[str] | None = None,
    target_name: str = "y",
    weights: npt.ArrayLike | None = None,
) -> Dataset:
    """Wrap arrays as they are: no row or column is left out, gaps are an error.

    Parameters
    ----------
    inputs
        Shape (rows, columns).
    target
        Shape (rows,).
    names
        One per column; by default x1, x2, ...
    target_name
        Name of the target.
    weights
        Shape (rows,), not negative. Rows of weight zero are left out.

    Raises
    ------
    DataError
        When shapes do not fit or a value is not finite.
    """
    matrix = np.asarray(inputs, dtype=np.float64)
    values = np.asarray(target, dtype=np.float64)
    if matrix.ndim != 2 or values.ndim != 1 or matrix.shape[0] != values.shape[0]:
        raise DataError(
            f"inputs of shape {matrix.shape} and a target of shape {values.shape} do not fit: "
            "expected (rows, columns) and (rows,)."
        )
    if matrix.shape[0] == 0 or matrix.shape[1] == 0:
        raise DataError(f"inputs of shape {matrix.shape} are empty.")
    for label, array in (("inputs", matrix), ("target", values)):
        if not np.all(np.isfinite(array)):
            raise DataError(f"{label} contain NaN or infinity. Remove or fill those rows first.")
    if names is None:
        names = [f"x{i}" for i in range(1, matrix.shape[1] + 1)]
    if len(names) != matrix.shape[1]:
        raise DataError(f"{len(names)} names for {matrix.shape[1]} columns.")
    every = [*names, target_name]
    if len(set(every)) < len(every):
        raise DataError(f"column names must differ, got {listed(every)}.")
    array_weights = None
    if weights is not None:
        array_weights = np.asarray(weights, dtype=np.float64)
        if array_weights.shape != values.shape:
            raise DataError(f"weights of shape {array_weights.shape} for {values.shape[0]} rows.")
        check_weights(array_weights, "weights", "<arrays>")
        positive = array_weights > 0
        if not positive.all():
            matrix, values, array_weights = matrix[positive], values[positive], array_weights[positive]
    columns = [Column(name, alias) for name, alias in zip(every, assign_aliases(every), strict=True)]
    return Dataset(matrix, values, tuple(columns[:-1]), columns[-1], array_weights, source="<arrays>")
