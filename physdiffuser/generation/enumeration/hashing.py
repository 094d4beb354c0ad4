"""Clean data: is there an entry B with `u = a + c*B` for some a and c?

Ratios of differences such as `(u1 - u2)/(u1 - u3)` do not change under an affine map, so equal
ratios on a few rows mean that the two are affine images of each other there. With the ratios of the
whole library sorted, one binary search answers for all entries at once.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# Matches are kept that miss by a thousandth of the target's span at most, which this covers. Numbers of one
# digit (0 and 1, say) would let nearly every entry through, for the other probe rows to refuse.
COARSEST = 4e-3


class AffineIndex:
    """Entries of a library sorted by an affine invariant.

    Parameters
    ----------
    values
        Shape (entries, probes) with at least five probes.
    tolerance
        Relative accuracy of the numbers; 1e-10 for doubles that were not rounded.
    """

    def __init__(self, values: FloatArray, tolerance: float = 1e-10) -> None:
        self.tolerance = min(tolerance, COARSEST)
        self.probes = min(values.shape[1], 6)
        ratios, _ = self._ratios(values)
        order = np.argsort(ratios[0], kind="stable")
        usable = np.isfinite(ratios[:, order]).all(axis=0)
        self._order = order[usable]
        self._ratios_sorted = ratios[:, self._order]

    def _ratios(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        columns = values[:, : self.probes].T
        with np.errstate(all="ignore"):
            base = columns[0] - columns[2]
            ratios = (columns[0] - columns[[1, *range(3, self.probes)]]) / base
            # Rounding of the values, magnified by the cancellation in the differences.
            blur = np.abs(columns).max(axis=0) / np.abs(base)
        # A constant has only rounding noise for differences, and would match anything.
        ratios[:, ~(blur < 1e6)] = np.nan
        return ratios, blur

    def match(self, targets: FloatArray) -> tuple[IntArray, IntArray]:
        """Pairs (row of `targets`, entry) that are affine images of each other on the probes.

        Parameters
        ----------
        targets
            Shape (queries, probes), same probes as the library's.
        """
        ratios, blur = self._ratios(targets)
        usable = np.flatnonzero(np.isfinite(ratios).all(axis=0))
        # Sorted queries walk the index in order, which keeps the binary searches in cache.
        usable = usable[np.argsort(ratios[0, usable])]
        first = ratios[0, usable]
        slack = self.tolerance * (1 + np.abs(ratios[:, usable]) + blur[usable])
        low = np.searchsorted(self._ratios_sorted[0], first - slack[0])
        high = np.searchsorted(self._ratios_sorted[0], first + slack[0])
        count = np.minimum(high - low, 2000)
        query = np.repeat(np.arange(usable.size), count)
        within = np.arange(query.size) - np.repeat(np.cumsum(count) - count, count)
        entry = low[query] + within
        difference = np.abs(self._ratios_sorted[1:, entry] - ratios[1:, usable[query]])
        same = (difference <= 4 * slack[1:, query]).all(axis=0)
        return usable[query[same]], self._order[entry[same]]
