"""Screening: the best fits with noise, ranked by matrix products. The part that these stages share."""

from __future__ import annotations

import heapq
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass

import numpy as np

from physdiffuser.arrays import FloatArray, IntArray
from physdiffuser.core.problem import Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.core.work import Work
from physdiffuser.device import HOST, HOST_ROWS, Device
from physdiffuser.generation.enumeration.context import (
    PROBES,
    Context,
    TransformedTarget,
    transformed_targets,
)
from physdiffuser.generation.enumeration.registry import Size, Stage
from physdiffuser.library.expression_library import Library, value_keys
from physdiffuser.library.matches import Match
from physdiffuser.transforms.transform import OutputTransform

# Blocks of residuals must stay in the second-level cache: 128 x 2048 single floats are a megabyte. Work is
# counted by them on every device.
TARGETS = HOST_ROWS


@dataclass(frozen=True)
class ScreeningPolicy:
    """How many finds of a screening are kept.

    Set on noisy development laws (docs/search.md).
    """

    entries: int = 2048
    """Entries of one block."""
    best_of_block: int = 6
    """Finds of one block."""
    unexplained: float = 0.9
    """Finds that leave more of the variance than this are none."""
    negligible: float = 1e-6
    """A term whose share of the transformed target is below this is dropped."""
    kept: int = 6
    """Finds kept at each search cost."""


POLICY = ScreeningPolicy()


class TopK:
    """The best few finds at each search cost."""

    def __init__(self) -> None:
        self._best: dict[int, list[tuple[float, int, Callable[[], Match]]]] = {}
        self._count = 0

    def admits(self, cost: int, residual: float) -> bool:
        """Whether a find would be kept."""
        kept = self._best.get(cost, [])
        return len(kept) < POLICY.kept or -kept[0][0] > residual

    def add(self, cost: int, residual: float, make: Callable[[], Match]) -> None:
        """Keep a find if it is among the best of its cost; `make` builds it when it is looked at."""
        if not self.admits(cost, residual):
            return
        self._count += 1
        kept = self._best.setdefault(cost, [])
        heapq.heappush(kept, (-residual, self._count, make))
        if len(kept) > POLICY.kept:
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
class ScreeningTable:
    """A library, and the transformed targets that combinations of its entries are to fit.

    Attributes
    ----------
    order
        Entries by cost, without affine images of earlier ones; partners in pairs are taken from these.
    """

    library: Library
    reduction: Reduction
    transformed: list[TransformedTarget]
    order: IntArray
    device: Device = HOST

    @property
    def costs(self) -> IntArray:
        """The costs of the entries in `order`."""
        return self.library.costs[self.order]

    def on_device(self, entries: IntArray) -> FloatArray:
        """Values of entries on the device, shape (entries, probes)."""
        return self.device.held(self.library, self.library.values)[entries]

    def maker(
        self, kind: Callable[..., Match], transform: OutputTransform, cost: int, *entries: int
    ) -> Callable[[], Match]:
        """What makes a match of a kind of entries, whose trees are built only then."""

        def make() -> Match:
            return kind(self.reduction, transform, cost, *map(self.library.expression, entries))

        return make


def by_cost(library: Library, affine: bool) -> IntArray:
    """The entries by cost without multiples of cheaper ones; see `distinct`."""
    return distinct(library, np.argsort(library.costs, kind="stable"), affine=affine)


class ScreeningStage(Stage):
    """A stage that ranks combinations of library entries, then fits and offers the best."""

    @abstractmethod
    def screen(self, table: ScreeningTable, size: Size, top_k: TopK) -> Iterator[float]:
        """Rank combinations; yield the nominal seconds of each piece of work."""

    def run(self, context: Context, size: Size, reduction: Reduction) -> Work:
        """Screen, fit and offer; see `Stage`."""
        table = yield from screening_table(context, size, reduction)
        top_k = TopK()
        yield from self.screen(table, size, top_k)
        # Matches are fitted and written down, whatever the size of the library.
        yield 0.02
        yield from context.offer(top_k.take(), POLICY.negligible)
        yield from self.afterwards(context, table)

    def afterwards(self, context: Context, table: ScreeningTable) -> Work:
        """More work on the same library; nothing unless a stage says otherwise."""
        return iter(())


def screening_table(
    context: Context, size: Size, reduction: Reduction
) -> Generator[float, None, ScreeningTable]:
    """Build the library of a screening; yields nominal seconds."""
    problem = context.problem
    means = averaged(problem.all_rows, reduction, PROBES) if size.average else None
    if means is None:
        features = reduction.values(problem.inputs[context.screening_rows])
        library = yield from context.library("rows", reduction, features, size.entries)
        transformed = context.transformed(reduction)
    else:
        library = yield from context.library("means", reduction, means.features, size.entries)
        transformed = transformed_targets(means.target, means.weights, context.noise_tolerant_transforms())
    order = by_cost(library, affine=True)[: size.entries]
    return ScreeningTable(library, reduction, transformed, order, context.device)


def distinct(library: Library, order: IntArray, affine: bool) -> IntArray:
    """The entries without multiples of earlier ones; with `affine`, a constant added changes nothing."""
    values = library.values[order]
    if affine:
        values = values - values.mean(axis=1, keepdims=True)
    values /= np.sqrt(np.square(values).mean(axis=1, keepdims=True))
    _, first = np.unique(value_keys(values), return_index=True)
    return order[np.sort(first)]


def left_over(entries: FloatArray, target: FloatArray, weights: FloatArray) -> float:
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
