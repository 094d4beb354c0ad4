"""Products of two library entries, and single entries, in noise."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from physdiffuser.arrays import FloatArray, IntArray
from physdiffuser.core.work import Work
from physdiffuser.device import Device
from physdiffuser.generation.enumeration.context import PROBES, Context, TransformedTarget
from physdiffuser.generation.enumeration.registry import Size, register
from physdiffuser.generation.enumeration.screening import POLICY as SCREENING
from physdiffuser.generation.enumeration.screening import (
    TARGETS,
    ScreeningStage,
    ScreeningTable,
    TopK,
    by_cost,
    left_over,
)
from physdiffuser.library.matches import Product, Single
from physdiffuser.library.ranking import ResidualBlock, part, ranked, row_blocks
from physdiffuser.library.screening import Affine, Standardised, variation
from physdiffuser.transforms.transform import OutputTransform

# Single entries are screened in pieces of this many; of one cost so many are looked at.
PIECE = 8192
BEST_SINGLES = 6
BEST_WITHOUT_CONSTANTS = 3


@register
class Products(ScreeningStage):
    """`T⁻¹(y) ~ A*(a + b*B)` and `a + b*B`; then `±B` and `b*B`.

    The cheapest `Size.divisors` entries are taken as A.
    """

    name = "products"

    def screen(self, table: ScreeningTable, size: Size, top_k: TopK) -> Iterator[float]:
        """See `ScreeningStage`."""
        yield from screen_singles(table, top_k)
        yield from screen_products(table, by_cost(table.library, affine=False)[: size.divisors], top_k)

    def afterwards(self, context: Context, table: ScreeningTable) -> Work:
        """Rank and offer entries without a constant beside them."""
        top_k = TopK()
        yield from screen_without_constants(table, top_k)
        yield from context.offer(top_k.take(), SCREENING.negligible)


def screen_products(table: ScreeningTable, factors: IntArray, top_k: TopK) -> Iterator[float]:
    """Rank `T⁻¹(y) ~ A*(a + b*B)` over pairs of entries.

    Parameters
    ----------
    factors
        Entries taken as A.
    """
    library, order = table.library, table.order
    divisors, prices = library.values[factors], library.costs[factors]
    prepared = Standardised.of(table.on_device(order))
    on_device = table.on_device(factors)
    columns = row_blocks(table.costs, SCREENING.entries)
    for transformed in table.transformed:
        transform, target, weights = transformed
        total = variation(target, weights)
        for rows, ranking in _divided(prepared, columns, transformed, on_device, table.device):
            for (level, some), residual_block in zip(columns, ranking, strict=True):
                least = residual_block.least() / total
                for row in np.flatnonzero(least < SCREENING.unexplained):
                    left = int(rows[row])
                    cost = level + transform.cost + int(prices[left]) + 1
                    if top_k.admits(cost, float(least[row])):
                        # Where a factor spans decades, single precision may have seen a fit that is none.
                        quotient, scaled = target / divisors[left], weights * np.square(divisors[left])
                        sure, entry = min(
                            (left_over(library.values[[order[at]]], quotient, scaled) / total, at)
                            for at in (some.start + column for column in residual_block.columns(int(row)))
                        )
                        entries = int(factors[left]), int(order[entry])
                        top_k.add(cost, sure, table.maker(Product, transform, cost, *entries))
            yield 2e-11 * len(rows) * len(order) * PROBES


def _divided(
    prepared: Standardised,
    columns: list[tuple[int, slice]],
    transformed: TransformedTarget,
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
    target, weights = device.put(transformed.target), device.put(transformed.weights)
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


def screen_without_constants(table: ScreeningTable, top_k: TopK) -> Iterator[float]:
    """Rank `T⁻¹(y) ~ ±B`, and apart from it `T⁻¹(y) ~ b*B`, over all that the library holds.

    Where noise is large many curves fit as well once they are stretched and shifted; that one fits without is
    then what tells it apart.
    """
    library = table.library
    order = by_cost(library, affine=False)
    costs = library.costs[order]
    best: dict[tuple[int, int], list[tuple[float, int, OutputTransform]]] = {}
    for transform, target, weights in table.transformed:
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
                        some.start + np.argsort(residual[some], kind="stable")[:BEST_WITHOUT_CONSTANTS]
                    ).tolist():
                        if residual[entry] < SCREENING.unexplained * total:
                            known = best.setdefault((kind, level + transform.cost), [])
                            known.append(
                                (float(residual[entry]) / total, int(order[start + entry]), transform)
                            )
            yield 4e-9 * values.size
    for (_, cost), found in sorted(best.items(), key=lambda item: item[0]):
        for share, entry, transform in sorted(found, key=lambda item: item[:2])[:BEST_WITHOUT_CONSTANTS]:
            top_k.add(cost, share, table.maker(Single, transform, cost, entry))


def screen_singles(table: ScreeningTable, top_k: TopK) -> Iterator[float]:
    """Rank `T⁻¹(y) ~ a + b*B` over all that the library holds, several of each cost."""
    library = table.library
    order = by_cost(library, affine=True)
    costs = library.costs[order]
    wanted = [
        (transform, Affine.of(target[None], weights[None]), variation(target, weights))
        for transform, target, weights in table.transformed
    ]
    for start in range(0, len(order), PIECE):
        piece = order[start : start + PIECE]
        prepared = Standardised.of(library.values[piece])
        for transform, affine, total in wanted:
            residual = affine.residuals(prepared, slice(None))[0] / total
            for level, some in row_blocks(costs[start : start + PIECE], PIECE):
                cost = level + transform.cost
                leading = some.start + np.argsort(residual[some], kind="stable")
                # Affine images of each other leave the same residual.
                _, first = np.unique(np.round(residual[leading] * 1e5), return_index=True)
                for entry in leading[first[:BEST_SINGLES]]:
                    if residual[entry] < SCREENING.unexplained and top_k.admits(cost, float(residual[entry])):
                        make = table.maker(Single, transform, cost, int(piece[entry]))
                        top_k.add(cost, float(residual[entry]), make)
        yield 2e-9 * len(wanted) * piece.size * PROBES
