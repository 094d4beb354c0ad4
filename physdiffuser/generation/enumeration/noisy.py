"""Pair screening on data with noise: the best fits, ranked by matrix products."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from physdiffuser.generation.enumeration.frame import Frame
from physdiffuser.generation.enumeration.library import Library, value_keys
from physdiffuser.generation.enumeration.matches import Kind, Match
from physdiffuser.generation.enumeration.outer import Chain
from physdiffuser.generation.enumeration.screening import (
    Affine,
    LeadingPairs,
    Standardised,
    pair_residuals,
    variation,
)

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# Tiles of residuals must stay in the second-level cache: 128 x 2048 single floats are a megabyte.
TARGETS = 128
ENTRIES = 2048
# Rows on which noisy fits are ranked. What stands around a matrix product costs as much with fewer, so that
# work is charged as on this many.
PROBES = 320
PIECE = 8192
# Finds looked at in one tile, and single entries of one cost.
BEST_OF_TILE = 6
BEST_SINGLES = 6
BEST_BARE = 3
# Of so many pairs for each factor; where there are more, one entry of each is among those that alone explain
# most. The two parts of a difference may each explain little.
SCALED_PAIRS = 160_000


class Leaderboard:
    """The best few finds at each search cost."""

    def __init__(self, keep: int = 6) -> None:
        self.keep = keep
        self._best: dict[int, list[tuple[float, int, Callable[[], Match]]]] = {}
        self._count = 0

    def admits(self, cost: int, residual: float) -> bool:
        """Whether a find would be kept."""
        kept = self._best.get(cost, [])
        return len(kept) < self.keep or -kept[0][0] > residual

    def add(self, cost: int, residual: float, make: Callable[[], Match]) -> None:
        """Keep a find if it is among the best of its cost; `make` builds it when it is looked at."""
        if not self.admits(cost, residual):
            return
        self._count += 1
        kept = self._best.setdefault(cost, [])
        heapq.heappush(kept, (-residual, self._count, make))
        if len(kept) > self.keep:
            heapq.heappop(kept)

    def take(self, slack: float = 1.3) -> list[Match]:
        """The finds, cheap ones first, without those that a cheaper one clearly beats; empties the board."""
        found: list[Match] = []
        best = float("inf")
        for cost in sorted(self._best):
            ranked = sorted(self._best[cost], key=lambda item: (-item[0], item[1]))
            found.extend(make() for residual, _, make in ranked if -residual <= slack * best)
            best = min([best, *(-residual for residual, _, _ in ranked)])
        self._best = {}
        return found


def undone_targets(
    target: FloatArray, weights: FloatArray, available: tuple[Chain, ...]
) -> list[tuple[Chain, FloatArray, FloatArray]]:
    """Each chain that applies, with the undone target and its row weights."""
    found = []
    for chain in available:
        result = chain.undo(target)
        if result is None:
            continue
        undone, scaled = result[0], result[1] * weights
        # The squares of very large or small numbers are none: a chain that leads there has nothing to say.
        if 0.0 < variation(undone, scaled) < np.inf:
            found.append((chain, undone, scaled))
    return found


def tiles(costs: IntArray, width: int) -> list[tuple[int, slice]]:
    """Slices of entries of one cost each, at most `width` long; `costs` is sorted."""
    found: list[tuple[int, slice]] = []
    levels, starts = np.unique(costs, return_index=True)
    stops = [*starts[1:], len(costs)] if len(costs) else []
    for level, start, stop in zip(levels, starts, stops, strict=True):
        found.extend(
            (int(level), slice(at, min(at + width, int(stop)))) for at in range(int(start), int(stop), width)
        )
    return found


def distinct(library: Library, order: IntArray, affine: bool) -> IntArray:
    """The entries without multiples of earlier ones; with `affine`, a constant added changes nothing."""
    values = library.values[order]
    if affine:
        values = values - values.mean(axis=1, keepdims=True)
    values /= np.sqrt(np.square(values).mean(axis=1, keepdims=True))
    _, first = np.unique(value_keys(values), return_index=True)
    return order[np.sort(first)]


def screen_products(
    library: Library,
    order: IntArray,
    frame: Frame,
    undone: list[tuple[Chain, FloatArray, FloatArray]],
    factors: IntArray,
    board: Leaderboard,
) -> Iterator[float]:
    """Rank `T⁻¹(y) ~ A*(a + b*B)` over pairs of entries; A = 1 included.

    Parameters
    ----------
    order
        Entries taken as B in products, by cost; single entries are all looked at.
    factors
        Entries taken as A.
    """
    values, costs = library.values[order], library.costs[order]
    divisors, prices = library.values[factors], library.costs[factors]
    prepared = Standardised.of(values)
    columns = tiles(costs, ENTRIES)
    yield from _screen_singles(library, frame, undone, board)
    for chain, target, weights in undone:
        total = variation(target, weights)
        for start in range(0, len(factors), TARGETS):
            block = np.arange(start, min(start + TARGETS, len(factors)))
            with np.errstate(all="ignore"):
                quotients = target / divisors[block]
                scaled = weights * np.square(divisors[block])
            good = np.isfinite(quotients).all(axis=1) & (np.ptp(quotients, axis=1) > 0)
            good &= np.isfinite(scaled).all(axis=1)
            rows = np.flatnonzero(good)
            if not rows.size:
                continue
            prepared_targets = Affine.of(quotients[rows], scaled[rows])
            for level, some in columns:
                residual = prepared_targets.residuals(prepared, some)
                least = residual.min(axis=1) / total
                for row in np.flatnonzero(least < 0.9):
                    left = int(block[rows[row]])
                    cost = level + chain.cost + int(prices[left]) + 1
                    if board.admits(cost, float(least[row])):
                        entry = some.start + int(residual[row].argmin())
                        # Where a factor spans decades, single precision may have seen a fit that is none.
                        sure = _left_over(values[[entry]], quotients[rows[row]], scaled[rows[row]]) / total
                        parts = int(factors[left]), int(order[entry])
                        make = _maker(library, frame, chain, "product", *parts, cost)
                        board.add(cost, sure, make)
            yield 2e-11 * len(rows) * len(values) * PROBES


def _left_over(entries: FloatArray, target: FloatArray, weights: FloatArray) -> float:
    """Weighted residual sum of squares of `t ~ a + b*f` or `t ~ a + b*f + c*g`, in double precision."""
    columns = np.concatenate([target[None], entries])
    columns -= (columns @ weights)[:, None] / weights.sum()
    columns *= np.sqrt(weights)
    left, rest = columns[0], columns[1:]
    while len(rest):
        column, rest = rest[0], rest[1:]
        size = float(column @ column)
        if size > 0:
            left = left - column * (column @ left / size)
            rest = rest - np.outer(rest @ column / size, column)
    return float(left @ left)


def screen_bare(
    library: Library,
    frame: Frame,
    undone: list[tuple[Chain, FloatArray, FloatArray]],
    board: Leaderboard,
) -> Iterator[float]:
    """Rank `T⁻¹(y) ~ ±B`, and apart from it `T⁻¹(y) ~ b*B`, over all that the library holds.

    Where noise is large many curves fit as well once they are stretched and shifted; that one fits without is
    then what tells it apart.
    """
    order = distinct(library, np.argsort(library.costs, kind="stable"), affine=False)
    costs = library.costs[order]
    best: dict[tuple[int, int], list[tuple[float, int, Chain]]] = {}
    for chain, target, weights in undone:
        total = variation(target, weights)
        power = float(weights @ np.square(target))
        for start in range(0, len(order), PIECE):
            values = library.values[order[start : start + PIECE]]
            with np.errstate(all="ignore"):
                cross, square = np.abs(values @ (weights * target)), np.square(values) @ weights
                kinds = (power - 2 * cross + square, power - np.square(cross) / square)
            for level, some in tiles(costs[start : start + PIECE], PIECE):
                for kind, residual in enumerate(kinds):
                    for entry in (
                        some.start + np.argsort(residual[some], kind="stable")[:BEST_BARE]
                    ).tolist():
                        if residual[entry] < 0.9 * total:
                            known = best.setdefault((kind, level + chain.cost), [])
                            known.append((float(residual[entry]) / total, int(order[start + entry]), chain))
            yield 4e-9 * values.size
    for (_, cost), found in sorted(best.items(), key=lambda item: item[0]):
        for left_over, entry, chain in sorted(found, key=lambda item: item[:2])[:BEST_BARE]:
            board.add(cost, left_over, _maker(library, frame, chain, "single", None, entry, cost))


def _screen_singles(
    library: Library,
    frame: Frame,
    undone: list[tuple[Chain, FloatArray, FloatArray]],
    board: Leaderboard,
) -> Iterator[float]:
    """Rank `T⁻¹(y) ~ a + b*B` over all that the library holds, several of each cost."""
    order = distinct(library, np.argsort(library.costs, kind="stable"), affine=True)
    costs = library.costs[order]
    wanted = [
        (chain, Affine.of(target[None], weights[None]), variation(target, weights))
        for chain, target, weights in undone
    ]
    for start in range(0, len(order), PIECE):
        piece = order[start : start + PIECE]
        prepared = Standardised.of(library.values[piece])
        for chain, affine, total in wanted:
            residual = affine.residuals(prepared, slice(None))[0] / total
            for level, some in tiles(costs[start : start + PIECE], PIECE):
                cost = level + chain.cost
                ranked = some.start + np.argsort(residual[some], kind="stable")
                # Affine images of each other leave the same residual.
                _, first = np.unique(np.round(residual[ranked] * 1e5), return_index=True)
                for entry in ranked[first[:BEST_SINGLES]]:
                    if residual[entry] < 0.9 and board.admits(cost, float(residual[entry])):
                        make = _maker(library, frame, chain, "single", None, int(piece[entry]), cost)
                        board.add(cost, float(residual[entry]), make)
        yield 2e-9 * len(undone) * piece.size * PROBES


def screen_sums(
    library: Library,
    order: IntArray,
    frame: Frame,
    undone: list[tuple[Chain, FloatArray, FloatArray]],
    board: Leaderboard,
) -> Iterator[float]:
    """Rank `T⁻¹(y) ~ a + b*A + c*B` over all pairs of entries."""
    values, costs = library.values[order], library.costs[order]
    columns = tiles(costs, ENTRIES)
    for chain, target, weights in undone:
        root = np.sqrt(weights)
        mean = (values @ weights)[:, None] / weights.sum()
        unit = root * (values - mean)
        norm = np.linalg.norm(unit, axis=1, keepdims=True)
        usable = norm[:, 0] > 1e-7 * np.linalg.norm(root * values, axis=1)
        norm[~usable] = np.inf
        unit32 = (unit / norm).astype(np.float32)
        wanted = root * (target - np.average(target, weights=weights))
        wanted /= np.linalg.norm(wanted)
        correlation = unit32 @ wanted.astype(np.float32)
        total = variation(target, weights)
        for level, block in tiles(costs, TARGETS):
            for other, some in columns:
                if some.stop <= block.start:
                    continue
                cost = level + other + chain.cost + 1
                residual = pair_residuals(unit32, block, some, correlation)
                least = float(residual.min())
                if least >= 0.9 or not board.admits(cost, least):
                    continue
                flat = residual.ravel()
                best = np.argpartition(flat, min(BEST_OF_TILE, flat.size - 1))[:BEST_OF_TILE]
                for place in best:
                    row, column = divmod(int(place), residual.shape[1])
                    left, entry = block.start + row, some.start + column
                    if entry > left and board.admits(cost, float(flat[place])):
                        sure = _left_over(values[[left, entry]], target, weights) / total
                        make = _maker(library, frame, chain, "sum", int(order[left]), int(order[entry]), cost)
                        board.add(cost, sure, make)
            yield 1.2e-11 * (block.stop - block.start) * (len(values) - block.start) * PROBES


def screen_scaled_sums(
    library: Library,
    order: IntArray,
    frame: Frame,
    undone: list[tuple[Chain, FloatArray, FloatArray]],
    factors: IntArray,
    board: Leaderboard,
) -> Iterator[float]:
    """Rank `y ~ D*(a + b*A + c*B)` over a few factors D and pairs of entries.

    All pairs, or, of a long library, those with one of the entries that alone say most about `y/D`.
    """
    costs = library.costs[order]
    prepared = Standardised.of(library.values[order])
    columns = tiles(costs, ENTRIES)
    leading = min(len(order), SCALED_PAIRS // max(len(order), 1))
    for chain, target, weights in undone:
        if chain.steps:
            continue
        total = variation(target, weights)
        for third in factors:
            value = library.values[third]
            with np.errstate(all="ignore"):
                quotient, scaled = target / value, weights * np.square(value)
            if not np.isfinite(quotient).all() or not np.ptp(quotient) > 0 or not 0 < scaled.max() < np.inf:
                continue
            share = np.float32(variation(quotient, scaled) / total)
            pairs = LeadingPairs.of(prepared, quotient, scaled, leading)
            rank = np.full(len(order), len(order))
            rank[pairs.leading] = np.arange(len(pairs.leading))
            price = int(library.costs[third]) + chain.cost + 2
            for level, some in columns:
                residual = pairs.residuals(prepared, some)
                # Two of the leading entries meet twice.
                residual[rank[None, some] <= np.arange(len(pairs.leading))[:, None]] = 1.0
                residual *= share
                best = residual.argmin(axis=1)
                for row in np.flatnonzero(residual[np.arange(len(best)), best] < 0.9):
                    left, entry = int(pairs.leading[row]), some.start + int(best[row])
                    cost, least = level + int(costs[left]) + price, float(residual[row, best[row]])
                    if board.admits(cost, least):
                        places = int(order[left]), int(order[entry])
                        # Where weights span decades, single precision may have seen a fit that is none.
                        sure = _left_over(library.values[[*places]], quotient, scaled) / total
                        make = _maker(library, frame, chain, "scaled difference", *places, cost, int(third))
                        board.add(cost, sure, make)
            yield 6e-11 * leading * len(order) * PROBES


def _maker(
    library: Library,
    frame: Frame,
    chain: Chain,
    kind: Kind,
    left: int | None,
    right: int,
    cost: int,
    third: int | None = None,
) -> Callable[[], Match]:
    def make() -> Match:
        return Match(
            frame,
            chain,
            kind,
            None if left is None else library.expression(left),
            library.expression(right),
            cost,
            None if third is None else library.expression(third),
        )

    return make
