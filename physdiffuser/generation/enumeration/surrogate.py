"""A polynomial fitted to the table, for its slopes."""

from __future__ import annotations

from itertools import combinations_with_replacement
from math import comb
from typing import Literal, overload

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


@overload
def fit_slopes(inputs: FloatArray, target: FloatArray) -> FloatArray | None: ...
@overload
def fit_slopes(
    inputs: FloatArray, target: FloatArray, with_error: Literal[True]
) -> tuple[FloatArray | None, float]: ...
def fit_slopes(
    inputs: FloatArray, target: FloatArray, with_error: bool = False
) -> FloatArray | tuple[FloatArray | None, float] | None:
    """Partial derivatives at every row of a polynomial fitted by least squares.

    The degree is the largest (up to 4) that leaves at least five rows for each coefficient.

    Parameters
    ----------
    inputs
        Shape (rows, columns).
    target
        Shape (rows,).
    with_error
        Also return the rms residual relative to the target's standard deviation.

    Returns
    -------
    Shape (rows, columns), or None when there are fewer rows than a linear fit needs.
    """
    slopes, error = _fit(inputs, target)
    return (slopes, error) if with_error else slopes


def degree_for(rows: int, columns: int) -> int:
    """The degree of the polynomial that `fit_slopes` fits to so many rows of so many columns."""
    return next((d for d in (4, 3, 2, 1) if comb(columns + d, d) * 5 <= rows), 1)


def _fit(inputs: FloatArray, target: FloatArray) -> tuple[FloatArray | None, float]:
    rows, columns = inputs.shape
    degree = degree_for(rows, columns)
    if comb(columns + degree, degree) > rows:
        return None, float("inf")
    centre, scale = inputs.mean(axis=0), inputs.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    unit = (inputs - centre) / scale
    height = float(target.std()) or 1.0
    powers = np.array(
        [
            np.bincount(np.array(chosen, int), minlength=columns)
            for d in range(degree + 1)
            for chosen in combinations_with_replacement(range(columns), d)
        ]
    )
    table = np.stack([unit**d for d in range(degree + 1)])
    features = _products(table, powers)
    gram = features.T @ features
    # A touch of ridge: high-degree terms are nearly collinear on narrow ranges.
    gram[np.diag_indices_from(gram)] += 1e-9 * np.trace(gram) / len(gram)
    wanted = (target - target.mean()) / height
    try:
        weights = np.linalg.solve(gram, features.T @ wanted)
    except np.linalg.LinAlgError:
        return None, float("inf")
    slopes = np.empty_like(unit)
    for column in range(columns):
        lowered = powers.copy()
        lowered[:, column] = np.maximum(lowered[:, column] - 1, 0)
        slopes[:, column] = _products(table, lowered) @ (weights * powers[:, column])
    error = float(np.sqrt(np.square(features @ weights - wanted).mean()))
    return slopes * height / scale, error


def _products(table: FloatArray, powers: npt.NDArray[np.int64]) -> FloatArray:
    columns = table.shape[2]
    product = np.ones((table.shape[1], len(powers)))
    for column in range(columns):
        product *= table[powers[:, column], :, column].T
    return product
