"""Exact matches with a power product outside the output transform."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from physdiffuser.arrays import FloatArray, IntArray
from physdiffuser.core.reduction import monomial
from physdiffuser.expressions import Expression
from physdiffuser.generation.enumeration.context import Context
from physdiffuser.generation.enumeration.exact import ExactStage, ExactTable, Piece
from physdiffuser.generation.enumeration.registry import Size, register
from physdiffuser.library.matches import Match, Product, Single
from physdiffuser.library.terms import power_products
from physdiffuser.transforms.transform import OutputTransform, output_transforms


@register
class ExactPrefactors(ExactStage):
    """`T⁻¹(y/P) = a + b*B` and `A*(a + b*B)` with a power product P.

    The cheapest `Size.shifts` power products are tried as P, the cheapest `Size.divisors` entries as A.
    """

    name = "exact prefactors"

    def pieces(self, context: Context, size: Size, table: ExactTable) -> Iterator[Piece]:
        """See `ExactStage`."""
        library = table.library
        cheapest = np.argsort(library.costs, kind="stable")[: size.divisors]
        products, prices = power_products(len(table.reduction.features), size.shifts)
        # Without an outer function the prefactor is just another divisor.
        outer = [
            transform
            for transform in output_transforms(size.depth, context.problem.operators)
            if transform.steps
        ]
        for product, price in zip(products, prices, strict=True):
            with np.errstate(all="ignore"):
                value = np.prod([library.inputs[:, i] ** float(e) for i, e in product], axis=0)
                divided = table.target / value
            if not np.isfinite(divided).all():
                continue
            transformed = [
                (transform, result[0])
                for transform in outer
                if (result := transform.undo(divided)) is not None
            ]
            if transformed:
                prefactor = monomial(product, table.reduction.features)
                found = _matches(table, cheapest, transformed, prefactor, price)
                yield found, table.seconds(len(transformed) * (len(cheapest) + 1))


def _matches(
    table: ExactTable,
    cheapest: IntArray,
    transformed: Sequence[tuple[OutputTransform, FloatArray]],
    prefactor: Expression,
    price: int,
) -> list[Match]:
    library, costs = table.library, table.library.costs
    left = np.concatenate([np.ones((1, library.values.shape[1])), library.values[cheapest]])
    extra = np.concatenate([[0], costs[cheapest] + 1])
    steps = np.array([transform.cost for transform, _ in transformed])
    values = np.stack([value for _, value in transformed])
    with np.errstate(all="ignore"):
        # Shape (transforms, A, probes), then (queries, probes).
        queries = (values[:, None, :] / left).reshape(-1, left.shape[1])
    found: list[Match] = []
    for row, entry in table.lookup(
        queries,
        lambda rows: steps[rows // len(left)] + extra[rows % len(left)],
        lambda rows: (left[rows % len(left)], values[rows // len(left)]),
    ):
        transform = transformed[row // len(left)][0]
        second = row % len(left) - 1
        cost = transform.cost + price + int(costs[entry])
        right = library.expression(entry)
        if second < 0:
            found.append(Single(table.reduction, transform, cost, right, prefactor=prefactor))
        else:
            cost += int(costs[cheapest[second]]) + 1
            other = library.expression(int(cheapest[second]))
            found.append(Product(table.reduction, transform, cost, other, right, prefactor=prefactor))
    return found
