"""Pair screening on data with noise: the best fits, ranked by matrix products."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from physdiffuser.generation.enumeration.factors import Frame
from physdiffuser.generation.enumeration.library import Library
from physdiffuser.generation.enumeration.matches import Match
from physdiffuser.generation.enumeration.outer import Chain
from physdiffuser.generation.enumeration.screening import Standardised, affine_residuals, pair_residuals

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# Targets per matrix product: entries x targets residuals must stay some tens of megabytes.
BLOCK = 256
# Entries of a block of the Gram matrix.
GRAM_BLOCK = 512


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


@dataclass(frozen=True)
class Targets:
    """What entries are fitted to: undone targets, possibly divided by a library entry."""

    values: FloatArray
    weights: FloatArray
    costs: IntArray


def undone_targets(
    target: FloatArray, weights: FloatArray, available: tuple[Chain, ...]
) -> list[tuple[Chain, FloatArray, FloatArray]]:
    """Each chain that applies, with the undone target and its row weights."""
    found = []
    for chain in available:
        result = chain.undo(target)
        if result is not None:
            found.append((chain, result[0], result[1] * weights))
    return found


def screen_products(
    library: Library,
    order: IntArray,
    frame: Frame,
    undone: list[tuple[Chain, FloatArray, FloatArray]],
    divisors: int,
    board: Leaderboard,
) -> Iterator[None]:
    """Rank `T⁻¹(y) ~ A*(a + b*B)` over pairs of entries; A = 1 included.

    Parameters
    ----------
    order
        Entries taken as B, by cost.
    divisors
        How many of the cheapest are tried as A.
    """
    values, costs = library.values[order], library.costs[order]
    prepared = Standardised.of(values)
    levels, starts = np.unique(costs, return_index=True)
    for chain, target, weights in undone:
        total = float((weights * np.square(target - np.average(target, weights=weights))).sum())
        for start in range(-1, min(divisors, len(order)), BLOCK):
            block = np.arange(max(start, 0), min(start + BLOCK, divisors, len(order)))
            with np.errstate(all="ignore"):
                quotients = target / values[block]
                scaled = weights * np.square(values[block])
            if start < 0:
                quotients = np.concatenate([target[None], quotients])
                scaled = np.concatenate([weights[None], scaled])
            good = np.isfinite(quotients).all(axis=1) & (np.ptp(quotients, axis=1) > 0)
            rows = np.flatnonzero(good)
            if not rows.size:
                continue
            residual = affine_residuals(prepared, quotients[rows], scaled[rows]) / np.float32(total)
            best = np.minimum.reduceat(residual, starts, axis=0)
            for level, column in zip(*np.nonzero(best < 0.9), strict=True):
                query = int(rows[column]) - (1 if start < 0 else 0)
                divisor = int(block[query]) if query >= 0 else None
                cost = int(levels[level]) + chain.cost + (0 if divisor is None else int(costs[divisor]) + 1)
                if not board.admits(cost, float(best[level, column])):
                    continue
                stop = starts[level + 1] if level + 1 < len(starts) else len(order)
                entry = int(starts[level] + np.argmin(residual[starts[level] : stop, column]))
                board.add(
                    cost,
                    float(best[level, column]),
                    _maker(
                        library,
                        order,
                        frame,
                        chain,
                        "single" if divisor is None else "product",
                        divisor,
                        entry,
                        cost,
                    ),
                )
            yield


def screen_sums(
    library: Library,
    order: IntArray,
    frame: Frame,
    undone: list[tuple[Chain, FloatArray, FloatArray]],
    board: Leaderboard,
) -> Iterator[None]:
    """Rank `T⁻¹(y) ~ a + b*A + c*B` over all pairs of entries."""
    values, costs = library.values[order], library.costs[order]
    levels, starts = np.unique(costs, return_index=True)
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
        for start in range(0, len(order), GRAM_BLOCK):
            block = slice(start, min(start + GRAM_BLOCK, len(order)))
            residual = pair_residuals(unit32, block, correlation)
            best = np.minimum.reduceat(residual, starts, axis=1)
            for row, level in zip(*np.nonzero(best < 0.9), strict=True):
                left = start + int(row)
                cost = int(levels[level]) + int(costs[left]) + chain.cost + 1
                if not board.admits(cost, float(best[row, level])):
                    continue
                stop = starts[level + 1] if level + 1 < len(starts) else len(order)
                entry = int(starts[level] + np.argmin(residual[row, starts[level] : stop]))
                if entry <= left:
                    continue
                board.add(
                    cost,
                    float(best[row, level]),
                    _maker(library, order, frame, chain, "sum", left, entry, cost),
                )
            yield


def _maker(
    library: Library,
    order: IntArray,
    frame: Frame,
    chain: Chain,
    kind: str,
    left: int | None,
    right: int,
    cost: int,
) -> Callable[[], Match]:
    def make() -> Match:
        return Match(
            frame,
            chain,
            kind,  # type: ignore[arg-type]
            None if left is None else library.expression(int(order[left])),
            library.expression(int(order[right])),
            cost,
        )

    return make
