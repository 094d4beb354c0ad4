"""Exact matches, found by hashing: the part that the exact stages share."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from physdiffuser.arrays import BoolArray, FloatArray, IntArray
from physdiffuser.core.reduction import Reduction
from physdiffuser.core.work import Work
from physdiffuser.generation.enumeration.context import Context
from physdiffuser.generation.enumeration.registry import Size, Stage
from physdiffuser.library.expression_library import Library
from physdiffuser.library.hashing import AffineIndex
from physdiffuser.library.matches import Match

# Queries answered in one go.
QUERIES = 60_000
# Matches that are fitted and offered, cheapest first: of a whole stage, and of one go. Numbers of three
# digits match hundreds of thousands of pairs by chance, and a `Match` for each costs seconds and gigabytes.
MAX_MATCHES = 40
# Matches on the rows of the index that are checked on all probe rows, the cheapest first.
MAX_VERIFIED = 6_000
VERIFIED_AT_ONCE = 1_000

# The matches of a piece of work, possibly none, and its nominal seconds.
Piece = tuple[list[Match], float]
# What a query was made of: for some of its rows, the factor that gives back what is to be explained, and
# that.
Restore = Callable[[IntArray], tuple[FloatArray, FloatArray]]


class ExactStage(Stage):
    """A stage that looks up exact matches in a library and offers the cheapest."""

    exact = True

    @abstractmethod
    def pieces(self, context: Context, size: Size, table: ExactTable) -> Iterator[Piece]:
        """The matches, piece by piece."""

    def run(self, context: Context, size: Size, reduction: Reduction) -> Work:
        """Collect the matches, then fit and offer them; see `Stage`."""
        inputs = context.problem.inputs[context.exact_rows]
        library = yield from context.library("exact", reduction, reduction.values(inputs), size.entries)
        target = context.problem.target[context.exact_rows] / reduction.product(inputs)
        if not np.isfinite(target).all() or not library.size:
            return
        found: list[Match] = []
        for matches, seconds in self.pieces(
            context, size, ExactTable(library, reduction, target, context.tolerance)
        ):
            found.extend(matches)
            yield seconds
        found.sort(key=lambda match: match.cost)
        yield from context.offer(found[:MAX_MATCHES], 1e3 * context.tolerance)


@dataclass(frozen=True)
class ExactTable:
    """A library, and the target that combinations of its entries may be equal to.

    Attributes
    ----------
    target
        Shape (probes,): on the library's probe rows, the factors of the reduction divided out.
    tolerance
        Relative accuracy of the numbers.
    """

    library: Library
    reduction: Reduction
    target: FloatArray
    tolerance: float

    @cached_property
    def index(self) -> AffineIndex:
        """The entries by an affine invariant."""
        return AffineIndex(self.library.values, self.tolerance)

    def seconds(self, queries: int) -> float:
        """Nominal seconds of so many lookups: ratios, sorting, and a binary search each."""
        return 1e-4 + 5e-7 * float(queries) * max(1.0, math.log10(max(self.library.size, 1)) - 3)

    def lookup(
        self,
        queries: FloatArray,
        price: Callable[[IntArray], IntArray],
        restored: Restore,
    ) -> list[tuple[int, int]]:
        """The cheapest matches (query, entry) that hold on all probe rows, not just on those of the index.

        A match must explain what the query was made of. `y - exp(x)` is an affine image of `exp(x)` to all
        digits where `exp(x)` reaches 1e17, and says nothing about y.

        Parameters
        ----------
        queries
            Shape (queries, probes).
        price
            The cost of some queries, by which, with that of the entry, matches are ordered; of equals those
            found first come first.
        """
        rows, entries = self.index.match(queries)
        values = self.library.values
        order = np.argsort(price(rows) + self.library.costs[entries], kind="stable")[:MAX_VERIFIED]
        found: list[tuple[int, int]] = []
        for start in range(0, order.size, VERIFIED_AT_ONCE):
            some = order[start : start + VERIFIED_AT_ONCE]
            held = some[
                _hold(queries[rows[some]], values[entries[some]], self.tolerance, *restored(rows[some]))
            ]
            found.extend((int(rows[place]), int(entries[place])) for place in held)
            if len(found) >= MAX_MATCHES:
                break
        return found[:MAX_MATCHES]


def _hold(
    target: FloatArray, entry: FloatArray, tolerance: float, factor: FloatArray, value: FloatArray
) -> BoolArray:
    """Which matches hold within rounding and explain something, shape (matches,)."""
    with np.errstate(all="ignore"):
        centred = entry - entry.mean(axis=1, keepdims=True)
        wanted = target - target.mean(axis=1, keepdims=True)
        slope = (centred * wanted).sum(axis=1, keepdims=True) / np.square(centred).sum(axis=1, keepdims=True)
        error = np.abs(wanted - slope * centred)
        part = np.abs(slope * entry)
        blur = np.abs(target).max(axis=1) + part.max(axis=1)
        span = np.ptp(target, axis=1)
        # Within rounding, and rounding small against what is explained.
        good = (error.max(axis=1) <= 100 * tolerance * blur) & (error.max(axis=1) <= 1e-3 * span) & (span > 0)
        size = np.abs(factor)
        explained = _spread(value)
        # The offset and the slope are as accurate as the largest number they were read off.
        rounding = size.max(axis=-1) * blur
        good &= (size * error).max(axis=1) <= 1e-3 * np.ptp(value, axis=-1)
        good &= tolerance * rounding <= max(1e-3, 20 * tolerance) * explained
    return np.asarray(good, bool)


def _spread(value: FloatArray) -> FloatArray:
    """How far a quarter of the probes lie from the median: a few huge numbers explain only themselves."""
    away = np.abs(value - np.median(value, axis=-1, keepdims=True))
    count = max(2, value.shape[-1] // 4)
    spread: FloatArray = np.partition(away, -count, axis=-1)[..., -count]
    return spread
