"""Whether the residuals of a law still depend on the inputs: a Bayes factor of smooth functions.

The residuals are compared under two models: independent noise, and noise plus a Gaussian process of the
inputs. The process sees each column alone (a cosine series) and all columns together (random Fourier
features [1]_). Residuals are replaced by normal scores, so that heavy tails count as little as they should.

References
----------
.. [1] A. Rahimi, B. Recht, "Random features for large-scale kernel machines", NeurIPS 2007.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from physdiffuser.arrays import FloatArray


@dataclass(frozen=True)
class ResidualStructurePolicy:
    """Smooth functions that residuals are compared with.

    Set on development laws (docs/calibration.md).
    """

    shares: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3, 0.7)
    """Shares of the variance of the residuals that the process may have."""
    lengths: tuple[float, ...] = (0.2, 0.5, 1.0)
    """Length scales of the process over all columns; every column is spread evenly over 0 to 1."""
    cosines: int = 12
    fourier: int = 100
    """Cosines of one column, and Fourier features of all columns."""
    pattern: float = 4.0
    """Nats by which residuals must be better described by a smooth function of the inputs to show a
    pattern."""
    max_rows: int = 5000
    """More rows are sampled down to this many."""


POLICY = ResidualStructurePolicy()


def residual_structure(residuals: FloatArray, inputs: FloatArray, prediction: FloatArray) -> float:
    """How much better the residuals are described by a smooth function of the inputs plus noise.

    Parameters
    ----------
    residuals
        In units of the standard deviation of the noise at their row, shape (rows,).
    inputs
        Shape (rows, columns).
    prediction
        Of the law, shape (rows,): taken as one more column.

    Returns
    -------
    Logarithm of the largest Bayes factor over the processes, in nats, less the logarithm of their number;
    -inf if there are fewer than eight finite rows.
    """
    rng = np.random.default_rng(0)
    columns = np.column_stack([inputs, prediction])
    rows = np.flatnonzero(np.isfinite(residuals) & np.isfinite(columns).all(axis=1))
    if len(rows) < 8:
        return -math.inf
    if len(rows) > POLICY.max_rows:
        rows = rng.choice(rows, POLICY.max_rows, replace=False)
    scores = _normal_scores(residuals[rows])
    even = np.column_stack([_ranks(column) for column in columns[rows].T])
    processes = [_cosines(column) for column in even.T]
    processes += [
        _fourier(even[:, :-1], length * math.sqrt(inputs.shape[1]), rng) for length in POLICY.lengths
    ]
    best = max(_log_bayes_factor(process, scores) for process in processes)
    return best - math.log(len(processes))


def _ranks(values: FloatArray) -> FloatArray:
    """Ranks spread over 0 to 1; equal values have equal ranks."""
    _, position, counts = np.unique(values, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - 0.5 * counts
    return np.asarray(middle[position] / len(values))


def _normal_scores(values: FloatArray) -> FloatArray:
    """Standard normal deviates in the order of the values."""
    # Not scipy's function, whose import takes longer than all that is computed here.
    normal = NormalDist()
    scores = np.array([normal.inv_cdf(rank) for rank in _ranks(values).tolist()])
    return scores / max(float(np.sqrt(np.mean(np.square(scores)))), 1e-12)


def _cosines(column: FloatArray) -> FloatArray:
    """A cosine series whose coefficients fall off with the frequency, shape (rows, POLICY.cosines)."""
    orders = np.arange(1, POLICY.cosines + 1)
    return np.asarray(np.cos(math.pi * column[:, None] * orders) / orders)


def _fourier(columns: FloatArray, length: float, rng: np.random.Generator) -> FloatArray:
    """Random Fourier features of a Gaussian kernel, shape (rows, POLICY.fourier)."""
    frequencies = rng.standard_normal((columns.shape[1], POLICY.fourier)) / length
    return np.asarray(np.cos(columns @ frequencies + rng.uniform(0.0, 2.0 * math.pi, POLICY.fourier)))


def _log_bayes_factor(features: FloatArray, scores: FloatArray) -> float:
    """Of noise plus a process with these features against noise alone, at the best of `POLICY.shares`."""
    rows = len(scores)
    features = features - features.mean(axis=0)
    total = float(np.sum(np.square(features)))
    if total <= 0.0:
        return 0.0
    left, sizes, _ = np.linalg.svd(features * math.sqrt(rows / total), full_matrices=False)
    along = np.square(left.T @ scores)
    outside = max(float(scores @ scores - along.sum()), 0.0)
    best = -math.inf
    for share in POLICY.shares:
        variances = share * np.square(sizes) + (1.0 - share)
        change = np.log(variances).sum() + (rows - len(sizes)) * math.log(1.0 - share)
        change += float(np.sum(along / variances)) + outside / (1.0 - share) - float(scores @ scores)
        best = max(best, -0.5 * float(change))
    return best
