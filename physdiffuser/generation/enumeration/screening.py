"""Pair screening on data with noise: the best fits, ranked by matrix products."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from physdiffuser.core.reduction import Reduction
from physdiffuser.device import HOST, HOST_ROWS, Device
from physdiffuser.library.expression_library import Library, value_keys
from physdiffuser.library.matches import Kind, Match
from physdiffuser.library.ranking import PairBlocks, ResidualBlock, part, ranked
from physdiffuser.library.screening import Affine, LeadingPairs, Standardised, variation
from physdiffuser.transforms.output_transforms import OutputTransform

FloatArray = npt.NDArray[np.float64]
FloatArray32 = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]

# Tiles of residuals must stay in the second-level cache: 128 x 2048 single floats are a megabyte. Work is
# counted by them on every device.
TARGETS = HOST_ROWS
ENTRIES = 2048
# Rows on which noisy fits are ranked. What stands around a matrix product costs as much with fewer, so that
# work is charged as on this many.
PROBES = 320
PIECE = 8192
# Finds looked at in one block, and single entries of one cost.
BEST_OF_BLOCK = 6
BEST_SINGLES = 6
BEST_BARE = 3
# Of so many pairs for each factor; where there are more, one entry of each is among those that alone explain
# most. The two parts of a difference may each explain little.
SCALED_PAIRS = 160_000


class TopK:
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


def transformed_targets(
    target: FloatArray, weights: FloatArray, available: tuple[OutputTransform, ...]
) -> list[tuple[OutputTransform, FloatArray, FloatArray]]:
    """Each chain that applies, with the transformed target and its row weights."""
    found = []
    for transform in available:
        result = transform.undo(target)
        if result is None:
            continue
        transformed, scaled = result[0], result[1] * weights
        # The squares of very large or small numbers are none: a chain that leads there has nothing to say.
        if 0.0 < variation(transformed, scaled) < np.inf:
            found.append((transform, transformed, scaled))
    return found


def row_blocks(costs: IntArray, width: int) -> list[tuple[int, slice]]:
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


def _on_device(library: Library, order: IntArray, device: Device) -> FloatArray:
    """Values of entries on the device, shape (entries, probes)."""
    return device.held(library, library.values)[order]


def screen_products(
    library: Library,
    order: IntArray,
    reduction: Reduction,
    transformed: list[tuple[OutputTransform, FloatArray, FloatArray]],
    factors: IntArray,
    top_k: TopK,
    device: Device = HOST,
) -> Iterator[float]:
    """Rank `T⁻¹(y) ~ A*(a + b*B)` over pairs of entries; A = 1 included.

    Parameters
    ----------
    order
        Entries taken as B in products, by cost; single entries are all looked at.
    factors
        Entries taken as A.
    """
    costs = library.costs[order]
    divisors, prices = library.values[factors], library.costs[factors]
    prepared = Standardised.of(_on_device(library, order, device))
    on_device = _on_device(library, factors, device)
    columns = row_blocks(costs, ENTRIES)
    yield from _screen_singles(library, reduction, transformed, top_k)
    for transform, target, weights in transformed:
        total = variation(target, weights)
        for rows, ranking in _divided(prepared, columns, target, weights, on_device, device):
            for (level, some), residual_block in zip(columns, ranking, strict=True):
                least = residual_block.least() / total
                for row in np.flatnonzero(least < 0.9):
                    left = int(rows[row])
                    cost = level + transform.cost + int(prices[left]) + 1
                    if top_k.admits(cost, float(least[row])):
                        # Where a factor spans decades, single precision may have seen a fit that is none.
                        quotient, scaled = target / divisors[left], weights * np.square(divisors[left])
                        sure, entry = min(
                            (_left_over(library.values[[order[at]]], quotient, scaled) / total, at)
                            for at in (some.start + column for column in residual_block.columns(int(row)))
                        )
                        parts = int(factors[left]), int(order[entry])
                        make = _maker(library, reduction, transform, "product", *parts, cost)
                        top_k.add(cost, sure, make)
            yield 2e-11 * len(rows) * len(order) * PROBES


def _divided(
    prepared: Standardised,
    columns: list[tuple[int, slice]],
    target: FloatArray,
    weights: FloatArray,
    divisors: FloatArray,
    device: Device,
) -> Iterator[tuple[IntArray, Iterator[ResidualBlock]]]:
    """A target divided by each entry of a library, in blocks, and what is left of it in each block.

    Parameters
    ----------
    prepared, divisors
        Arrays of the device.

    Yields
    ------
    The divisors of at most `TARGETS` that lead to numbers, and for each of the columns a block of these.
    """
    # A constant on the device saves bringing it there for each block.
    target, weights = device.put(target), device.put(weights)
    for first in range(0, len(divisors), device.rows):
        several = divisors[first : first + device.rows]
        with np.errstate(all="ignore"):
            quotients = target / several
            scaled = weights * np.square(several)
        good = np.isfinite(quotients).all(axis=1) & (np.ptp(quotients, axis=1) > 0)
        good &= np.isfinite(scaled).all(axis=1)
        rows = np.flatnonzero(np.asarray(good))
        if not rows.size:
            continue
        wanted = Affine.of(quotients[rows], scaled[rows])
        residuals = (wanted.residuals(prepared, some) for _, some in columns)
        ranking = ranked(residuals, device, variance=wanted.variance)
        if not device.remote:
            yield first + rows, ranking
            continue
        known = list(ranking)
        for start in range(0, len(several), TARGETS):
            begin, end = np.searchsorted(rows, [start, start + TARGETS]).tolist()
            if begin < end:
                block = slice(begin, end)
                yield first + rows[block], (part(residual_block, block) for residual_block in known)


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
    reduction: Reduction,
    transformed: list[tuple[OutputTransform, FloatArray, FloatArray]],
    top_k: TopK,
) -> Iterator[float]:
    """Rank `T⁻¹(y) ~ ±B`, and apart from it `T⁻¹(y) ~ b*B`, over all that the library holds.

    Where noise is large many curves fit as well once they are stretched and shifted; that one fits without is
    then what tells it apart.
    """
    order = distinct(library, np.argsort(library.costs, kind="stable"), affine=False)
    costs = library.costs[order]
    best: dict[tuple[int, int], list[tuple[float, int, OutputTransform]]] = {}
    for transform, target, weights in transformed:
        total = variation(target, weights)
        power = float(weights @ np.square(target))
        for start in range(0, len(order), PIECE):
            values = library.values[order[start : start + PIECE]]
            with np.errstate(all="ignore"):
                cross, square = np.abs(values @ (weights * target)), np.square(values) @ weights
                kinds = (power - 2 * cross + square, power - np.square(cross) / square)
            for level, some in row_blocks(costs[start : start + PIECE], PIECE):
                for kind, residual in enumerate(kinds):
                    for entry in (
                        some.start + np.argsort(residual[some], kind="stable")[:BEST_BARE]
                    ).tolist():
                        if residual[entry] < 0.9 * total:
                            known = best.setdefault((kind, level + transform.cost), [])
                            known.append(
                                (float(residual[entry]) / total, int(order[start + entry]), transform)
                            )
            yield 4e-9 * values.size
    for (_, cost), found in sorted(best.items(), key=lambda item: item[0]):
        for left_over, entry, transform in sorted(found, key=lambda item: item[:2])[:BEST_BARE]:
            top_k.add(cost, left_over, _maker(library, reduction, transform, "single", None, entry, cost))


def _screen_singles(
    library: Library,
    reduction: Reduction,
    transformed: list[tuple[OutputTransform, FloatArray, FloatArray]],
    top_k: TopK,
) -> Iterator[float]:
    """Rank `T⁻¹(y) ~ a + b*B` over all that the library holds, several of each cost."""
    order = distinct(library, np.argsort(library.costs, kind="stable"), affine=True)
    costs = library.costs[order]
    wanted = [
        (transform, Affine.of(target[None], weights[None]), variation(target, weights))
        for transform, target, weights in transformed
    ]
    for start in range(0, len(order), PIECE):
        piece = order[start : start + PIECE]
        prepared = Standardised.of(library.values[piece])
        for transform, affine, total in wanted:
            residual = affine.residuals(prepared, slice(None))[0] / total
            for level, some in row_blocks(costs[start : start + PIECE], PIECE):
                cost = level + transform.cost
                ranked = some.start + np.argsort(residual[some], kind="stable")
                # Affine images of each other leave the same residual.
                _, first = np.unique(np.round(residual[ranked] * 1e5), return_index=True)
                for entry in ranked[first[:BEST_SINGLES]]:
                    if residual[entry] < 0.9 and top_k.admits(cost, float(residual[entry])):
                        make = _maker(library, reduction, transform, "single", None, int(piece[entry]), cost)
                        top_k.add(cost, float(residual[entry]), make)
        yield 2e-9 * len(transformed) * piece.size * PROBES


def screen_sums(
    library: Library,
    order: IntArray,
    reduction: Reduction,
    transformed: list[tuple[OutputTransform, FloatArray, FloatArray]],
    top_k: TopK,
    device: Device = HOST,
) -> Iterator[float]:
    """Rank `T⁻¹(y) ~ a + b*A + c*B` over all pairs of entries."""
    costs = library.costs[order]
    values = _on_device(library, order, device)
    columns = row_blocks(costs, ENTRIES)
    for transform, target, weights in transformed:
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
        pairs = PairBlocks(
            unit32, correlation, [some for _, some in columns], BEST_OF_BLOCK, device, once=True
        )
        for level, block in row_blocks(costs, TARGETS):
            for number, (other, some) in enumerate(columns):
                if some.stop <= block.start:
                    continue
                cost = level + other + transform.cost + 1
                residual_block = pairs.residual_block(block, number, len(order))
                least = residual_block.lowest()
                if least >= 0.9 or not top_k.admits(cost, least):
                    continue
                for residual, row, column in residual_block.best(BEST_OF_BLOCK):
                    left, entry = block.start + row, some.start + column
                    if entry > left and top_k.admits(cost, residual):
                        places = int(order[left]), int(order[entry])
                        sure = _left_over(library.values[[*places]], target, weights) / total
                        make = _maker(library, reduction, transform, "sum", *places, cost)
                        top_k.add(cost, sure, make)
            yield 1.2e-11 * (block.stop - block.start) * (len(order) - block.start) * PROBES


def screen_scaled_sums(
    library: Library,
    order: IntArray,
    reduction: Reduction,
    transformed: list[tuple[OutputTransform, FloatArray, FloatArray]],
    factors: IntArray,
    top_k: TopK,
    device: Device = HOST,
) -> Iterator[float]:
    """Rank `y ~ D*(a + b*A + c*B)` over a few factors D and pairs of entries.

    All pairs, or, of a long library, those with one of the entries that alone say most about `y/D`.
    """
    costs = library.costs[order]
    prepared = Standardised.of(_on_device(library, order, device))
    columns = row_blocks(costs, ENTRIES)
    leading = min(len(order), SCALED_PAIRS // max(len(order), 1))
    for transform, target, weights in transformed:
        if transform.steps:
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
            price = int(library.costs[third]) + transform.cost + 2
            residuals = _of_leading(pairs, prepared, columns, rank, share, device)
            for (level, some), residual_block in zip(columns, ranked(residuals, device), strict=True):
                least = residual_block.least()
                for row in np.flatnonzero(least < 0.9):
                    left = int(pairs.leading[row])
                    cost = level + int(costs[left]) + price
                    if top_k.admits(cost, float(least[row])):
                        # Where weights span decades, single precision may have seen a fit that is none.
                        sure, entry = min(
                            (_left_over(library.values[order[[left, at]]], quotient, scaled) / total, at)
                            for at in (some.start + column for column in residual_block.columns(int(row)))
                        )
                        places = int(order[left]), int(order[entry])
                        make = _maker(
                            library, reduction, transform, "scaled difference", *places, cost, int(third)
                        )
                        top_k.add(cost, sure, make)
            yield 6e-11 * leading * len(order) * PROBES


def _of_leading(
    pairs: LeadingPairs,
    prepared: Standardised,
    columns: list[tuple[int, slice]],
    rank: IntArray,
    share: np.float32,
    device: Device,
) -> Iterator[FloatArray32]:
    """Residuals of pairs in blocks, each of shape (leading, columns), over the variance of the target."""
    among = np.arange(len(pairs.leading))[:, None]
    # A block by itself is nothing to a GPU.
    runs = [slice(0, len(rank))] if device.remote else [some for _, some in columns]
    for run in runs:
        residual = pairs.residuals(prepared, run)
        # Two of the leading entries meet twice.
        residual[rank[None, run] <= among] = 1.0
        residual *= share
        if device.remote:
            yield from (residual[:, some] for _, some in columns)
        else:
            yield residual


def _maker(
    library: Library,
    reduction: Reduction,
    transform: OutputTransform,
    kind: Kind,
    left: int | None,
    right: int,
    cost: int,
    third: int | None = None,
) -> Callable[[], Match]:
    def make() -> Match:
        return Match(
            reduction,
            transform,
            kind,
            None if left is None else library.expression(left),
            library.expression(right),
            cost,
            None if third is None else library.expression(third),
        )

    return make
