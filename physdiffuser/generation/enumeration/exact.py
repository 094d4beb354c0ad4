"""Pair lookup on data without noise: exact matches, found by hashing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from physdiffuser.core.reduction import Reduction, monomial
from physdiffuser.expressions import ONE, Expression
from physdiffuser.expressions.tree import add, div, sub
from physdiffuser.library.expression_library import Library
from physdiffuser.library.hashing import AffineIndex
from physdiffuser.library.matches import Kind, Match
from physdiffuser.library.terms import power_products
from physdiffuser.transforms.output_transforms import OutputTransform

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
_Wrap = Callable[[Expression], Expression]

# Queries answered in one go.
QUERIES = 60_000
# Matches of one go that are kept, cheapest first: as many as a whole stage offers. Numbers of three
# digits match hundreds of thousands of pairs by chance, and a `Match` for each costs seconds and gigabytes.
MOST_MATCHES = 40
# Matches on the rows of the index that are checked on all probe rows, the cheapest first.
MOST_VERIFIED = 6_000
VERIFIED_AT_ONCE = 1_000


def lookups(
    library: Library,
    reduction: Reduction,
    target: FloatArray,
    output_transforms: tuple[OutputTransform, ...],
    divisors: int,
    tolerance: float,
) -> Iterator[tuple[list[Match], float]]:
    """Exact matches `T⁻¹(y) = a + b*B`, `A*(a + b*B)`, `(a + b*B)/(1 ± A)` and `A + a + b*B`.

    Parameters
    ----------
    target
        Shape (probes,): the target on the library's probe rows, factors divided out.
    divisors
        How many of the cheapest entries are tried as A; 0 for singles only.
    tolerance
        Relative accuracy of the numbers.

    Yields
    ------
    The matches of each piece of work, possibly none.
    """
    values = library.values
    if not len(values):
        return
    index = AffineIndex(values, tolerance)
    transformed = [
        (transform, result[0])
        for transform in output_transforms
        if (result := transform.undo(target)) is not None
    ]
    if not transformed:
        return
    queries = np.stack([value for _, value in transformed])
    rows, entries = index.match(queries)
    costs = library.costs
    steps = np.array([transform.cost for transform, _ in transformed])
    yield (
        [
            Match(
                reduction,
                transformed[row][0],
                "single",
                None,
                library.expression(entry),
                transformed[row][0].cost + int(costs[entry]),
            )
            for row, entry in _verified(
                queries, values, rows, entries, tolerance, steps[rows] + costs[entries], _itself(queries)
            )
        ],
        _seconds(len(queries), library) + 2e-7 * library.size,
    )
    cheapest = np.argsort(costs, kind="stable")[:divisors]
    for transform, value in transformed:
        for start in range(0, cheapest.size, QUERIES):
            block = cheapest[start : start + QUERIES]
            left = values[block]
            with np.errstate(all="ignore"):
                above, below = 1.0 / (1.0 + left), 1.0 / (1.0 - left)
                combined: list[tuple[Kind, FloatArray, FloatArray | None, _Wrap | None]] = [
                    ("product", value / left, left, None),
                    ("difference", value - left, None, None),
                    ("negative difference", value + left, None, None),
                    # A denominator 1 ± A, where the library holds A but not yet what it takes to invert it.
                    ("product", value / above, above, _over_one_plus),
                    ("product", value / below, below, _over_one_minus),
                ]
            found: list[Match] = []
            for kind, queries, factor, wrap in combined:
                rows, entries = index.match(queries)
                prices = costs[block[rows]] + costs[entries]
                found.extend(
                    Match(
                        reduction,
                        transform,
                        kind,
                        library.expression(int(block[row]))
                        if wrap is None
                        else wrap(library.expression(int(block[row]))),
                        library.expression(entry),
                        transform.cost
                        + int(costs[block[row]])
                        + int(costs[entry])
                        + (1 if wrap is None else 3),
                    )
                    for row, entry in _verified(
                        queries, values, rows, entries, tolerance, prices, _part(value, factor)
                    )
                )
            yield found, _seconds(len(combined) * block.size, library)


def _over_one_plus(tree: Expression) -> Expression:
    return div(ONE, add(ONE, tree))


def _over_one_minus(tree: Expression) -> Expression:
    return div(ONE, sub(ONE, tree))


def prefactors(
    library: Library,
    reduction: Reduction,
    target: FloatArray,
    output_transforms: tuple[OutputTransform, ...],
    factors: int,
    divisors: int,
    tolerance: float,
) -> Iterator[tuple[list[Match], float]]:
    """Exact matches `T⁻¹(y/P) = a + b*B` and `A*(a + b*B)` with a power product P outside T.

    Parameters
    ----------
    factors
        How many of the cheapest power products are tried as P.
    divisors
        How many of the cheapest entries are tried as A.
    """
    values, costs = library.values, library.costs
    if not len(values):
        return
    index = AffineIndex(values, tolerance)
    cheapest = np.argsort(costs, kind="stable")[:divisors]
    left = np.concatenate([np.ones((1, values.shape[1])), values[cheapest]])
    extra = np.concatenate([[0], costs[cheapest] + 1])
    products, prices = power_products(len(reduction.features), factors)
    # Without an outer function the prefactor is just another divisor.
    outer = [transform for transform in output_transforms if transform.steps]
    for product, price in zip(products, prices, strict=True):
        tree = monomial(product, reduction.features)
        with np.errstate(all="ignore"):
            value = np.prod([library.inputs[:, i] ** float(e) for i, e in product], axis=0)
            divided = target / value
        if not np.isfinite(divided).all():
            continue
        transformed = [
            (transform, result[0]) for transform in outer if (result := transform.undo(divided)) is not None
        ]
        if not transformed:
            continue
        with np.errstate(all="ignore"):
            queries = (np.stack([u for _, u in transformed])[:, None, :] / left).reshape(-1, left.shape[1])
        rows, entries = index.match(queries)
        steps = np.array([transform.cost for transform, _ in transformed])
        prices = steps[rows // len(left)] + extra[rows % len(left)] + costs[entries]
        found: list[Match] = []
        stack = np.stack([u for _, u in transformed])

        def restored(some: IntArray, stack: FloatArray = stack) -> tuple[FloatArray, FloatArray]:
            return left[some % len(left)], stack[some // len(left)]

        for row, entry in _verified(queries, values, rows, entries, tolerance, prices, restored):
            transform = transformed[row // len(left)][0]
            second = row % len(left) - 1
            cost = transform.cost + price + int(costs[entry])
            found.append(
                Match(
                    reduction,
                    transform,
                    "single" if second < 0 else "product",
                    None if second < 0 else library.expression(int(cheapest[second])),
                    library.expression(entry),
                    cost if second < 0 else cost + int(costs[cheapest[second]]) + 1,
                    prefactor=tree,
                )
            )
        yield found, _seconds(len(queries), library)


def triples(
    library: Library,
    outer: Library,
    inner: Library,
    reduction: Reduction,
    target: FloatArray,
    output_transforms: tuple[OutputTransform, ...],
    tolerance: float,
) -> Iterator[tuple[list[Match], float]]:
    """Exact matches `T⁻¹(y) = ±D + A*(a + b*B)` and `D*(±A + a + b*B)`.

    Parameters
    ----------
    library
        Where B is looked up.
    outer, inner
        Small libraries on the same probe rows: what is tried as D and as A.
    """
    values, costs = library.values, library.costs
    if not len(values) or not inner.size:
        return
    index = AffineIndex(values, tolerance)
    left = inner.values
    rows_at_once = max(1, QUERIES // (4 * inner.size))
    for transform in output_transforms:
        transformed = transform.undo(target)
        if transformed is None:
            continue
        for start in range(0, outer.size, rows_at_once):
            block = np.arange(start, min(start + rows_at_once, outer.size))
            third = outer.values[block][:, None, :]
            with np.errstate(all="ignore"):
                combined: list[tuple[Kind, FloatArray, bool]] = [
                    ("shifted product", (transformed[0] - third) / left, True),
                    ("negatively shifted product", (transformed[0] + third) / left, True),
                    ("scaled difference", transformed[0] / third - left, False),
                    ("negative scaled difference", transformed[0] / third + left, False),
                ]
            found: list[Match] = []
            for kind, queries, by_left in combined:
                flat = queries.reshape(-1, queries.shape[-1])

                def restored(
                    some: IntArray,
                    by_left: bool = by_left,
                    value: FloatArray = transformed[0],
                    third: FloatArray = third[:, 0, :],
                ) -> tuple[FloatArray, FloatArray]:
                    return left[some % inner.size] if by_left else third[some // inner.size], value

                rows, entries = index.match(flat)
                prices = (
                    outer.costs[block[rows // inner.size]] + inner.costs[rows % inner.size] + costs[entries]
                )
                for row, entry in _verified(flat, values, rows, entries, tolerance, prices, restored):
                    other, second = int(block[row // inner.size]), row % inner.size
                    found.append(
                        Match(
                            reduction,
                            transform,
                            kind,
                            inner.expression(second),
                            library.expression(entry),
                            transform.cost + int(outer.costs[other] + inner.costs[second] + costs[entry]) + 2,
                            outer.expression(other),
                        )
                    )
            yield found, _seconds(4 * block.size * inner.size, library)


def _seconds(queries: int, library: Library) -> float:
    """Nominal seconds of so many lookups: ratios, sorting, and a binary search each."""
    return 1e-4 + 5e-7 * float(queries) * max(1.0, math.log10(max(library.size, 1)) - 3)


# What a query was made of: for some of its rows, the factor that gives back what is to be explained, and
# that.
_Restore = Callable[[IntArray], tuple[FloatArray, FloatArray]]


def _itself(queries: FloatArray) -> _Restore:
    def restored(rows: IntArray) -> tuple[FloatArray, FloatArray]:
        return np.ones((1, queries.shape[1])), queries[rows]

    return restored


def _part(value: FloatArray, factor: FloatArray | None) -> _Restore:
    def restored(rows: IntArray) -> tuple[FloatArray, FloatArray]:
        return np.ones((1, value.size)) if factor is None else factor[rows], value

    return restored


def _verified(
    queries: FloatArray,
    values: FloatArray,
    rows: IntArray,
    entries: IntArray,
    tolerance: float,
    prices: IntArray,
    restored: _Restore,
) -> list[tuple[int, int]]:
    """The cheapest matches that hold on all probe rows, not just on those of the index.

    A match must explain what the query was made of. `y - exp(x)` is an affine image of `exp(x)` to all
    digits where `exp(x)` reaches 1e17, and says nothing about y.

    Parameters
    ----------
    prices
        Shape (matches,): by which they are ordered; of equals those found first come first.
    """
    order = np.argsort(prices, kind="stable")[:MOST_VERIFIED]
    found: list[tuple[int, int]] = []
    for start in range(0, order.size, VERIFIED_AT_ONCE):
        some = order[start : start + VERIFIED_AT_ONCE]
        held = some[_hold(queries[rows[some]], values[entries[some]], tolerance, *restored(rows[some]))]
        found.extend((int(rows[place]), int(entries[place])) for place in held)
        if len(found) >= MOST_MATCHES:
            break
    return found[:MOST_MATCHES]


def _hold(
    target: FloatArray, entry: FloatArray, tolerance: float, factor: FloatArray, value: FloatArray
) -> npt.NDArray[np.bool_]:
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
