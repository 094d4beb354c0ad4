"""Points that tell laws apart, one after another.

For two laws with predictions that differ by `d` at the points of a design, the expected logarithm of the odds
after measuring is `d @ inv(S) @ d / 2` with `S = noise**2 + C1 + C2`, the covariance of the noise and of the
predictions by the constants of either law (Box and Hill, *Technometrics* 9, 1967; Buzzi-Ferraris and
Forzatti, *Chem. Eng. Sci.* 38, 1983). What a law could make up for by other constants is therefore no
difference, and a point beside one that is already in the design adds little.

The law may be none of those compared. What is not known of it then is taken for a smooth function of all
columns (a Gaussian process; Rasmussen and Williams, *Gaussian Processes for Machine Learning*, 2006, ch. 2),
whose variance is 1 far from all measurements and small beside one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from physdiffuser.arrays import FloatArray, spread_places

# Distance, in shares of the ranges, over which an unknown law changes; variance of a measurement of it.
LENGTH, MIN_VARIANCE = 0.4, 0.01
# Rows that are looked at for what has been measured, at most.
MAX_MEASURED = 300
# Odds of more nats are certain: two laws so far apart need no further points.
CERTAIN = 30.0


@dataclass(frozen=True, eq=False)
class Prediction:
    """What a law predicts at the candidate points.

    Attributes
    ----------
    mean
        Shape (points,).
    spread
        Shape (constants, points): the covariance of two points is the product of their columns.
    """

    mean: FloatArray
    spread: FloatArray

    @property
    def variance(self) -> FloatArray:
        """Shape (points,)."""
        return np.asarray(np.square(self.spread).sum(axis=0), float)


@dataclass(frozen=True, eq=False)
class Exploration:
    """What has been measured, and how probable it is that the law is none of those compared.

    Attributes
    ----------
    places, measured
        Shape (points, columns) and (rows, columns): candidate points and rows, as shares of the ranges.
    share
        The probability.
    """

    places: FloatArray
    measured: FloatArray
    share: float

    def unknown(self, design: Sequence[int]) -> FloatArray:
        """Variance of an unknown law after measuring the points of a design, from 0 to 1, shape (points,)."""
        known = np.vstack(
            [self.measured[spread_places(len(self.measured), MAX_MEASURED)], self.places[list(design)]]
        )
        own = _correlation(known, known) + MIN_VARIANCE * np.eye(len(known))
        across = _correlation(known, self.places)
        explained = (across * np.linalg.solve(own, across)).sum(axis=0)
        return np.asarray(np.clip(1.0 - explained, 0.0, 1.0), float)


@dataclass(eq=False)
class _Pair:
    """Two laws, and how well the points chosen so far tell them apart."""

    difference: FloatArray
    spread: FloatArray
    weight: float
    nats: float = 0.0
    chosen: list[int] = field(default_factory=list)

    def gains(self, noise: FloatArray) -> FloatArray:
        """Nats that each further point adds, shape (points,); 0 where a law has no value."""
        variance = noise**2 + np.square(self.spread).sum(axis=0)
        difference = self.difference
        if self.chosen:
            known = self.spread[:, self.chosen]
            matrix = known.T @ known + np.diag(noise[self.chosen] ** 2)
            across = np.linalg.solve(matrix, known.T @ self.spread)
            difference = difference - difference[self.chosen] @ across
            variance = variance - ((known.T @ self.spread) * across).sum(axis=0)
        gain = 0.5 * difference**2 / np.maximum(variance, noise**2)
        return np.where(np.isfinite(gain), gain, 0.0)


@np.errstate(all="ignore")
def discriminating_points(
    laws: Sequence[Prediction],
    weights: Sequence[float],
    noise: FloatArray,
    count: int,
    exploration: Exploration | None = None,
) -> list[int]:
    """Positions of the points to be measured, the most informative first.

    Each point is the one after which the largest share of the pairs of laws that are still close is expected
    to be distinguished; a pair counts by the product of the weights of its laws.

    Parameters
    ----------
    laws
        At least two, unless there is something to explore.
    weights
        Of each law, such as its probability.
    noise
        Shape (points,), positive: standard deviation of a measurement.
    exploration
        If given, the worth of a point is that share of the pairs, times the probability that one of the laws
        is right, and else the variance of an unknown law there.
    """
    scale = float(np.median(noise))  # squares of 1e200 are no numbers
    noise = noise / scale
    pairs = [
        _Pair(
            (laws[one].mean - laws[other].mean) / scale,
            np.concatenate([laws[one].spread, laws[other].spread]) / scale,
            weights[one] * weights[other],
        )
        for one, other in combinations(range(len(laws)), 2)
    ]
    design: list[int] = []
    for _ in range(count):
        gains = [pair.gains(noise) for pair in pairs]
        close = [pair.weight * np.exp(-min(pair.nats, CERTAIN)) for pair in pairs]
        worth = np.zeros(noise.size)
        for part, gain in zip(close, gains, strict=True):
            worth += part / sum(close) * -np.expm1(-gain)
        if exploration is not None:
            share = exploration.share
            worth = (1.0 - share) * worth + share * exploration.unknown(design)
        best = int(np.argmax(worth))
        for pair, gain in zip(pairs, gains, strict=True):
            if np.isfinite(pair.difference[best]):
                pair.nats += float(gain[best])
                pair.chosen.append(best)
        design.append(best)
    return design


def _correlation(some: FloatArray, others: FloatArray) -> FloatArray:
    square = np.square(some[:, None, :] - others[None, :, :]).sum(axis=2)
    return np.asarray(np.exp(-0.5 * square / LENGTH**2), float)


@np.errstate(all="ignore")
def separation(laws: Sequence[Prediction], noise: FloatArray, point: int) -> tuple[float, int, int]:
    """The two laws that differ most at a point, and by how many standard errors of their difference."""
    found = (0.0, 0, min(1, len(laws) - 1))
    for one, other in combinations(range(len(laws)), 2):
        apart = abs(laws[one].mean[point] - laws[other].mean[point])
        error = np.sqrt(noise[point] ** 2 + laws[one].variance[point] + laws[other].variance[point])
        found = max(found, (float(np.nan_to_num(apart / error)), one, other))
    return found
