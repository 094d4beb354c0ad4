"""A polynomial fitted to the table, for its slopes."""

from __future__ import annotations

from itertools import combinations_with_replacement
from math import comb
from typing import Literal, overload

import numpy as np

from physdiffuser.arrays import FloatArray, IntArray

# A polynomial of this degree tells slopes well enough. Rows that each coefficient needs at the very least.
ENOUGH_DEGREE, MIN_ROWS = 3, 1.5


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


def careful_slopes(inputs: FloatArray, target: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """Slopes as from `fit_slopes`, and how wrong each may be for a reason that their spread does not show.

    Where rows are few, the degree is the one that predicts each row best from the others: without noise far
    fewer rows than five for each coefficient are enough. The slopes of a plane do not vary at all, so that it
    is doubted by what it leaves of the target.

    Returns
    -------
    Shapes (rows, columns) and (columns,), or None when there are fewer rows than a linear fit needs.
    """
    rows, columns = inputs.shape
    least = degree_for(rows, columns)
    degrees = [least]
    if least < ENOUGH_DEGREE:
        degrees += [d for d in range(least + 1, 5) if comb(columns + d, d) * MIN_ROWS <= rows]
    fits = [(degree, *_fit(inputs, target, degree, left_out=len(degrees) > 1)) for degree in degrees]
    degree, slopes, error = min(fits, key=lambda fit: fit[2])
    if slopes is None:
        return None
    height = float(target.std()) / np.maximum(inputs.std(axis=0), 1e-300)
    return slopes, error * height if degree == 1 else np.zeros(columns)


def _fit(
    inputs: FloatArray, target: FloatArray, degree: int | None = None, left_out: bool = False
) -> tuple[FloatArray | None, float]:
    """Slopes and the relative rms residual, of rows left out one by one if that is asked for."""
    rows, columns = inputs.shape
    if degree is None:
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
    left = features @ weights - wanted
    if left_out:
        leverage = np.einsum("ij,ji->i", features, np.linalg.solve(gram, features.T))
        left = left / np.maximum(1.0 - leverage, 1e-3)
    error = float(np.sqrt(np.square(left).mean()))
    return slopes * height / scale, error


def _products(table: FloatArray, powers: IntArray) -> FloatArray:
    columns = table.shape[2]
    product = np.ones((table.shape[1], len(powers)))
    for column in range(columns):
        product *= table[powers[:, column], :, column].T
    return product
