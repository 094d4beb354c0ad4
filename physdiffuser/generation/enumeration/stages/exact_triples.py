"""Exact matches of three library entries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from physdiffuser.arrays import FloatArray, IntArray
from physdiffuser.generation.enumeration.context import Context
from physdiffuser.generation.enumeration.exact import QUERIES, ExactStage, ExactTable, Piece
from physdiffuser.generation.enumeration.registry import Size, register
from physdiffuser.library.expression_library import Library
from physdiffuser.library.matches import Match, ScaledSum, ShiftedProduct
from physdiffuser.library.terms import fill, power_products
from physdiffuser.transforms.transform import OutputTransform


@register
class ExactTriples(ExactStage):
    """`T⁻¹(y) = ±D + A*(a + b*B)` and `D*(±A + a + b*B)`.

    About `Size.shifts` power products and functions of them are tried as D, and `Size.divisors` power
    products as A.
    """

    name = "exact triples"

    def pieces(self, context: Context, size: Size, table: ExactTable) -> Iterator[Piece]:
        """See `ExactStage`."""

        def empty() -> Library:
            inputs = context.problem.inputs[context.exact_rows]
            features = table.reduction.features
            return Library(table.reduction.values(inputs), features, context.problem.operators)

        outer, inner = empty(), empty()
        fill(outer, size.shifts)
        inner.add_monomials(*power_products(len(table.reduction.features), size.divisors))
        return triples(table, outer, inner, context.noise_tolerant_transforms())


def triples(
    table: ExactTable, outer: Library, inner: Library, transforms: Sequence[OutputTransform]
) -> Iterator[Piece]:
    """Look up triples.

    Parameters
    ----------
    outer, inner
        Small libraries on the same probe rows: what is tried as D and as A.
    """
    if not inner.size:
        return
    rows_at_once = max(1, QUERIES // (4 * inner.size))
    for transform in transforms:
        transformed = transform.undo(table.target)
        if transformed is None:
            continue
        for start in range(0, outer.size, rows_at_once):
            block = slice(start, min(start + rows_at_once, outer.size))
            found = _matches(table, outer, block, inner, transform, transformed[0])
            yield found, table.seconds(4 * (block.stop - block.start) * inner.size)


def _matches(
    table: ExactTable,
    outer: Library,
    block: slice,
    inner: Library,
    transform: OutputTransform,
    target: FloatArray,
) -> list[Match]:
    library, left, third = table.library, inner.values, outer.values[block]
    # Shape (D, A, probes) each; whether D was subtracted (and A divided out) or the other way round.
    apart = third[:, None, :]
    with np.errstate(all="ignore"):
        combined = [
            ((target - apart) / left, True),
            ((target + apart) / left, True),
            (target / apart - left, False),
            (target / apart + left, False),
        ]

    def price(rows: IntArray) -> IntArray:
        costs: IntArray = outer.costs[block][rows // inner.size] + inner.costs[rows % inner.size]
        return costs

    found: list[Match] = []
    for queries, shifted in combined:

        def restored(rows: IntArray, shifted: bool = shifted) -> tuple[FloatArray, FloatArray]:
            return left[rows % inner.size] if shifted else third[rows // inner.size], target

        kind = ShiftedProduct if shifted else ScaledSum
        # (third, second, probes) -> (third * second, probes)
        for row, entry in table.lookup(queries.reshape(-1, target.size), price, restored):
            other, second = block.start + row // inner.size, row % inner.size
            cost = int(outer.costs[other] + inner.costs[second] + library.costs[entry])
            found.append(
                kind(
                    table.reduction,
                    transform,
                    transform.cost + cost + 2,
                    inner.expression(second),
                    library.expression(entry),
                    outer.expression(other),
                )
            )
    return found
