"""Sums of two library entries in noise."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from physdiffuser.generation.enumeration.context import PROBES
from physdiffuser.generation.enumeration.registry import Size, register
from physdiffuser.generation.enumeration.screening import POLICY as SCREENING
from physdiffuser.generation.enumeration.screening import (
    TARGETS,
    ScreeningStage,
    ScreeningTable,
    TopK,
    left_over,
)
from physdiffuser.library.matches import Sum
from physdiffuser.library.ranking import PairBlocks, row_blocks
from physdiffuser.library.screening import variation


@register
class Sums(ScreeningStage):
    """`T⁻¹(y) ~ a + b*A + c*B` over all pairs of entries."""

    name = "sums"

    def screen(self, table: ScreeningTable, size: Size, top_k: TopK) -> Iterator[float]:
        """See `ScreeningStage`."""
        return screen_sums(table, top_k)


def screen_sums(table: ScreeningTable, top_k: TopK) -> Iterator[float]:
    """Rank `T⁻¹(y) ~ a + b*A + c*B`."""
    library, order, costs = table.library, table.order, table.costs
    values = table.on_device(order)
    columns = row_blocks(costs, SCREENING.entries)
    for transform, target, weights in table.transformed:
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
            unit32,
            correlation,
            [some for _, some in columns],
            SCREENING.best_of_block,
            table.device,
            once=True,
        )
        for level, block in row_blocks(costs, TARGETS):
            for number, (other, some) in enumerate(columns):
                if some.stop <= block.start:
                    continue
                cost = level + other + transform.cost + 1
                residual_block = pairs.residual_block(block, number, len(order))
                least = residual_block.lowest()
                if least >= SCREENING.unexplained or not top_k.admits(cost, least):
                    continue
                for residual, row, column in residual_block.best(SCREENING.best_of_block):
                    left, entry = block.start + row, some.start + column
                    if entry > left and top_k.admits(cost, residual):
                        places = int(order[left]), int(order[entry])
                        sure = left_over(library.values[[*places]], target, weights) / total
                        top_k.add(cost, sure, table.maker(Sum, transform, cost, *places))
            yield 1.2e-11 * (block.stop - block.start) * (len(order) - block.start) * PROBES
