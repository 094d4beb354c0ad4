"""Each row of a table predicted from the others, with nothing but the order of the numbers looked at.

Ranks are the same for a feature and for any increasing function of it, so that what is judged is which
features matter and not how. Neighbours see detail; polynomials average over many rows, as noise asks for.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

# Degree of the polynomials for each number of features; 2 for more.
DEGREES = {1: 8, 2: 5, 3: 4, 4: 3, 5: 3}


def rank_of(values: FloatArray) -> FloatArray:
    """Ranks from 0 to 1."""
    ranks = np.empty(len(values))
    ranks[np.argsort(values, kind="stable")] = np.arange(len(values))
    return ranks / len(values)


@cache
def _degrees(features: int) -> npt.NDArray[np.intp]:
    """Degrees in each feature of the polynomial's terms, shape (terms, features)."""
    degree = DEGREES.get(features, 2)
    return np.array([some for some in np.ndindex(*[degree + 1] * features) if sum(some) <= degree], np.intp)


def smooth_predictions(values: FloatArray, targets: FloatArray) -> FloatArray:
    """Each row predicted by a polynomial of ranks fitted to the others.

    Parameters
    ----------
    values
        Shape (features, rows).
    targets
        Shape (rows, targets).

    Returns
    -------
    Shape (rows, targets); NaN where a target is not finite.
    """
    rows = values.shape[1]
    unit = np.stack([2 * rank_of(value) - 1 for value in values])
    powers = _degrees(len(values))
    if 3 * len(powers) > rows:
        return np.full(targets.shape, np.nan)
    table = np.polynomial.chebyshev.chebvander(unit, int(powers.max()))
    design = table[0][:, powers[:, 0]]
    for feature in range(1, len(values)):
        design = design * table[feature][:, powers[:, feature]]
    gram = design.T @ design
    gram[np.diag_indices_from(gram)] += 1e-8 * rows
    inverse = np.linalg.inv(gram)
    usable = np.isfinite(targets).all(axis=0)
    wanted = np.stack([rank_of(target) for target in targets.T], axis=1)
    fitted = design @ (inverse @ (design.T @ wanted))
    # What the row itself contributes is taken out again.
    own = np.minimum((design @ inverse * design).sum(axis=1), 0.99)[:, None]
    ranks = (fitted - own * wanted) / (1 - own)
    places = np.arange(rows) / rows
    predictions = np.stack(
        [np.interp(rank, places, np.sort(target)) for rank, target in zip(ranks.T, targets.T, strict=True)],
        axis=1,
    )
    predictions[:, ~usable] = np.nan
    return predictions


def local_predictions(values: FloatArray, target: FloatArray) -> FloatArray:
    """Each row predicted by a local linear fit, of ranks, to its nearest neighbours.

    Parameters
    ----------
    values
        Shape (features, rows).
    target
        Shape (rows,).
    """
    features, rows = values.shape
    ranks = np.stack([rank_of(value) for value in values], axis=1)
    wanted = rank_of(target)
    square = np.square(ranks).sum(axis=1)
    distance = square[:, None] + square[None, :] - 2 * ranks @ ranks.T
    np.fill_diagonal(distance, np.inf)
    count = min(2 * features + 4, rows - 2)
    near = np.argpartition(distance, count, axis=1)[:, :count]
    offset = ranks[near] - ranks[:, None, :]
    design = np.concatenate([np.ones((rows, count, 1)), offset], axis=2)
    gram = design.transpose(0, 2, 1) @ design
    # A ridge far below the spread of the neighbours: they may lie in a plane.
    gram[:, np.arange(1, features + 1), np.arange(1, features + 1)] += 1e-3 * np.square(offset).mean() + 1e-12
    solved = np.linalg.solve(gram, design.transpose(0, 2, 1) @ wanted[near][:, :, None])
    predictions: FloatArray = np.interp(solved[:, 0, 0], np.arange(rows) / rows, np.sort(target))
    return predictions
