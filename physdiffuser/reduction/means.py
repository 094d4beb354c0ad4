"""Means over neighbouring values of a feature: all that noisy rows say of a function of one feature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.problem import Problem
from physdiffuser.core.reduction import Reduction


@dataclass(frozen=True)
class Means:
    """Of the rows in each of some intervals.

    Attributes
    ----------
    features
        Mean of the feature, shape (intervals, 1).
    target
        Mean of the target divided by the reduction's factor, shape (intervals,).
    weights
        Inverse variance of that mean, up to a factor, shape (intervals,).
    """

    features: FloatArray
    target: FloatArray
    weights: FloatArray


def averaged(problem: Problem, reduction: Reduction, intervals: int) -> Means | None:
    """Means over intervals of a reduction's feature that hold equally many rows.

    None where the reduction has more features or a value that is not finite, and where rows are too few.
    Inside an interval the function must be nearly straight, as it is where noise is larger than its bend.
    """
    if len(reduction.features) != 1 or problem.rows < 2 * intervals:
        return None
    with np.errstate(all="ignore"):
        product = reduction.product(problem.inputs)
        feature = reduction.values(problem.inputs)[:, 0]
        target = problem.target / product
        weights = np.square(product / np.abs(product).max())
    if problem.weights is not None:
        weights = weights * problem.weights
    if not (np.isfinite(feature).all() and np.isfinite(target).all() and (weights > 0).all()):
        return None
    order = np.argsort(feature, kind="stable")
    starts = np.linspace(0, problem.rows, intervals, endpoint=False).astype(np.intp)
    sums = np.stack([weights, weights * feature, weights * target])[:, order]
    total, features, targets = np.add.reduceat(sums, starts, axis=1)
    return Means((features / total)[:, None], targets / total, total)
