"""Exact lookup without noise: the entries B with `u = a + c*B` for some a and c.

Ratios of differences such as `(u1 - u2)/(u1 - u3)` do not change under an affine map, so equal
ratios on a few rows mean that the two are affine images of each other there. With the ratios of the
whole library sorted, one binary search answers for all entries at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from physdiffuser.arrays import CHECK_ARRAYS, FloatArray, IntArray, checked

if TYPE_CHECKING or CHECK_ARRAYS:
    from jaxtyping import Float64, Int64


# Matches are kept that miss by a thousandth of the target's span at most, which this covers. Numbers of one
# digit (0 and 1, say) would let nearly every entry through, for the other probe rows to refuse.
COARSEST = 4e-3
# Ratios that are less certain than this tell nothing.
MAX_SLACK = 0.05
# The first ratio is divided into so many cells; a query looks into so many of them at most.
CELLS = 256
MAX_CELLS = 24
# Entries in one cell that are compared with a query.
MAX_ENTRIES = 2000


class AffineIndex:
    """Entries of a library sorted by an affine invariant.

    Parameters
    ----------
    values
        Shape (entries, probes) with at least five probes.
    tolerance
        Relative accuracy of the numbers; 1e-10 for doubles that were not rounded.
    """

    @checked
    def __init__(self, values: Float64[np.ndarray, "entries probes"], tolerance: float = 1e-10) -> None:
        self.tolerance = min(tolerance, COARSEST)
        self.probes = min(values.shape[1], 6)
        ratios, _ = self._ratios(values)
        usable = np.flatnonzero(np.isfinite(ratios).all(axis=0))
        # Sorted by the cell of the first ratio, and within a cell by the second: numbers of few digits leave
        # many entries near in one ratio, few in both.
        keys = _cell(ratios[0, usable]) + _squeezed(ratios[1, usable])
        order = np.argsort(keys, kind="stable")
        self._keys = keys[order]
        self._order = usable[order]
        self._ratios_sorted = np.ascontiguousarray(ratios[:, self._order])

    def _ratios(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        columns = values[:, : self.probes].T
        with np.errstate(all="ignore"):
            base = columns[0] - columns[2]
            ratios = (columns[0] - columns[[1, *range(3, self.probes)]]) / base
            # Rounding of the values, magnified by the cancellation in the differences.
            blur = np.abs(columns).max(axis=0) / np.abs(base)
        # A constant has only rounding noise for differences, and would match anything.
        ratios[:, ~(blur < min(1e6, MAX_SLACK / self.tolerance))] = np.nan
        return ratios, blur

    @checked
    def match(
        self, targets: Float64[np.ndarray, "queries probes"]
    ) -> tuple[Int64[np.ndarray, " pairs"], Int64[np.ndarray, " pairs"]]:
        """Pairs (row of `targets`, entry) that are affine images of each other on the probes.

        Parameters
        ----------
        targets
            Shape (queries, probes), same probes as the library's.
        """
        ratios, blur = self._ratios(targets)
        usable = np.flatnonzero(np.isfinite(ratios).all(axis=0))
        slack = self.tolerance * (1 + np.abs(ratios[:, usable]) + blur[usable])
        first, second = ratios[0, usable], ratios[1, usable]
        lowest, highest = _cell(first - slack[0]), _cell(first + slack[0])
        # Sorted queries walk the index in order, which keeps the binary searches in cache.
        order = np.argsort(lowest + _squeezed(second))
        found: list[tuple[IntArray, IntArray]] = []
        # A little more than the slack: large ratios are squeezed to the last digits of a key.
        low_second = _squeezed(second - 4 * slack[1]) - 1e-12
        high_second = _squeezed(second + 4 * slack[1]) + 1e-12
        widest = int((highest - lowest).max(initial=-1))
        for offset in range(min(widest + 1, MAX_CELLS)):
            some = order[lowest[order] + offset <= highest[order]]
            low = np.searchsorted(self._keys, lowest[some] + offset + low_second[some])
            high = np.searchsorted(self._keys, lowest[some] + offset + high_second[some], side="right")
            count = np.minimum(high - low, MAX_ENTRIES)
            query = np.repeat(np.arange(some.size), count)
            within = np.arange(query.size) - np.repeat(np.cumsum(count) - count, count)
            entry = low[query] + within
            query = some[query]
            near = np.abs(self._ratios_sorted[0, entry] - first[query]) <= slack[0, query]
            query, entry = query[near], entry[near]
            difference = np.abs(self._ratios_sorted[1:, entry] - ratios[1:, usable[query]])
            same = (difference <= 4 * slack[1:, query]).all(axis=0)
            found.append((usable[query[same]], self._order[entry[same]]))
        if not found:
            empty = np.empty(0, np.int64)
            return empty, empty
        return np.concatenate([rows for rows, _ in found]), np.concatenate([some for _, some in found])


def _squeezed(ratios: FloatArray) -> FloatArray:
    """Any number, in order, into 0 to 1 without the ends."""
    squeezed: FloatArray = 0.5 + 0.499999 * ratios / (1.0 + np.abs(ratios))
    return squeezed


def _cell(ratios: FloatArray) -> FloatArray:
    """Number of the cell that a ratio falls into."""
    cells: FloatArray = np.floor(CELLS * _squeezed(ratios))
    return cells
