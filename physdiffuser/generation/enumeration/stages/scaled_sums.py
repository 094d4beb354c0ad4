"""Sums of two library entries under a factor, in noise."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from physdiffuser.arrays import IntArray
from physdiffuser.core.problem import Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.device import Device
from physdiffuser.generation.enumeration.context import PROBES
from physdiffuser.generation.enumeration.registry import Size, register
from physdiffuser.generation.enumeration.screening import POLICY as SCREENING
from physdiffuser.generation.enumeration.screening import (
    ScreeningStage,
    ScreeningTable,
    TopK,
    by_cost,
    left_over,
)
from physdiffuser.library.matches import ScaledSum
from physdiffuser.library.ranking import ranked, row_blocks
from physdiffuser.library.screening import LeadingPairs, Standardised, variation

FloatArray32 = npt.NDArray[np.float32]

# With fewer rows some of the many sums with a factor fit by chance.
ROWS_FOR_SCALED = 20
# Of so many pairs for each factor; where there are more, one entry of each is among those that alone explain
# most. The two parts of a difference may each explain little.
SCALED_PAIRS = 160_000


@register
class ScaledSums(ScreeningStage):
    """`y ~ D*(a + b*A + c*B)` over pairs of entries; the cheapest `Size.divisors` algebraic ones are D."""

    name = "scaled sums"

    def accepts(self, problem: Problem, reduction: Reduction) -> bool:
        """Whether there are enough rows."""
        return problem.rows >= ROWS_FOR_SCALED

    def screen(self, table: ScreeningTable, size: Size, top_k: TopK) -> Iterator[float]:
        """See `ScreeningStage`."""
        factors = by_cost(table.library, affine=False)
        factors = factors[~table.library.functions[factors]]
        return screen_scaled_sums(table, factors[: size.divisors], top_k)


def screen_scaled_sums(table: ScreeningTable, factors: IntArray, top_k: TopK) -> Iterator[float]:
    """Rank `y ~ D*(a + b*A + c*B)` over a few factors D and pairs of entries.

    All pairs, or, of a long library, those with one of the entries that alone say most about `y/D`.
    """
    library, order, costs, device = table.library, table.order, table.costs, table.device
    prepared = Standardised.of(table.on_device(order))
    columns = row_blocks(costs, SCREENING.entries)
    leading = min(len(order), SCALED_PAIRS // max(len(order), 1))
    for transform, target, weights in table.transformed:
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
                for row in np.flatnonzero(least < SCREENING.unexplained):
                    left = int(pairs.leading[row])
                    cost = level + int(costs[left]) + price
                    if top_k.admits(cost, float(least[row])):
                        # Where weights span decades, single precision may have seen a fit that is none.
                        sure, entry = min(
                            (left_over(library.values[order[[left, at]]], quotient, scaled) / total, at)
                            for at in (some.start + column for column in residual_block.columns(int(row)))
                        )
                        entries = int(order[left]), int(order[entry]), int(third)
                        top_k.add(cost, sure, table.maker(ScaledSum, transform, cost, *entries))
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
