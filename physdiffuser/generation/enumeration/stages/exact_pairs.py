"""Exact matches of one or two library entries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from physdiffuser.arrays import FloatArray, IntArray
from physdiffuser.expressions import ONE, Expression
from physdiffuser.expressions.tree import add, div, sub
from physdiffuser.generation.enumeration.context import Context
from physdiffuser.generation.enumeration.exact import QUERIES, ExactStage, ExactTable, Piece, Restore
from physdiffuser.generation.enumeration.registry import Size, register
from physdiffuser.library.matches import Match, Product, Single, Sum
from physdiffuser.transforms.transform import OutputTransform, output_transforms


@register
class ExactPairs(ExactStage):
    """`T⁻¹(y) = a + b*B`, `A*(a + b*B)`, `(a + b*B)/(1 ± A)` and `±A + a + b*B`."""

    name = "exact pairs"

    def pieces(self, context: Context, size: Size, table: ExactTable) -> Iterator[Piece]:
        """See `ExactStage`."""
        return pairs(table, output_transforms(size.depth, context.problem.operators), size.divisors)


class _Query(NamedTuple):
    """Values to look up for each of some entries A, shape (entries, probes).

    Attributes
    ----------
    factor
        What gives back the target; None where A was subtracted or added.
    wrap
        The tree of the factor, given that of A.
    extra
        What a match costs beside its entries.
    """

    values: FloatArray
    factor: FloatArray | None
    wrap: Callable[[Expression], Expression] | None = None
    extra: int = 1


def pairs(table: ExactTable, transforms: Sequence[OutputTransform], divisors: int) -> Iterator[Piece]:
    """Look up single entries B, then pairs.

    Parameters
    ----------
    divisors
        How many of the cheapest entries are tried as A; 0 for singles only.
    """
    library, target = table.library, table.target
    transformed = [
        (transform, result[0]) for transform in transforms if (result := transform.undo(target)) is not None
    ]
    if not transformed:
        return
    yield _singles(table, transformed), table.seconds(len(transformed)) + 2e-7 * library.size
    cheapest = np.argsort(library.costs, kind="stable")[:divisors]
    for transform, value in transformed:
        for start in range(0, cheapest.size, QUERIES):
            block = cheapest[start : start + QUERIES]
            queries = _queries(value, library.values[block])
            found: list[Match] = []
            for query in queries:
                found.extend(_matches(table, transform, value, block, query))
            yield found, table.seconds(len(queries) * block.size)


def _singles(table: ExactTable, transformed: Sequence[tuple[OutputTransform, FloatArray]]) -> list[Match]:
    library = table.library
    queries = np.stack([value for _, value in transformed])
    steps = np.array([transform.cost for transform, _ in transformed])
    found: list[Match] = []
    for row, entry in table.lookup(queries, lambda rows: steps[rows], _itself(queries)):
        transform = transformed[row][0]
        cost = transform.cost + int(library.costs[entry])
        found.append(Single(table.reduction, transform, cost, library.expression(entry)))
    return found


def _queries(value: FloatArray, left: FloatArray) -> list[_Query]:
    with np.errstate(all="ignore"):
        above, below = 1.0 / (1.0 + left), 1.0 / (1.0 - left)
        return [
            _Query(value / left, left),
            _Query(value - left, None),
            _Query(value + left, None),
            # A denominator 1 ± A, where the library holds A but not yet what it takes to invert it.
            _Query(value / above, above, _over_one_plus, 3),
            _Query(value / below, below, _over_one_minus, 3),
        ]


def _matches(
    table: ExactTable, transform: OutputTransform, value: FloatArray, block: IntArray, query: _Query
) -> Iterator[Match]:
    library, costs = table.library, table.library.costs
    for row, entry in table.lookup(query.values, lambda rows: costs[block[rows]], _part(value, query.factor)):
        left, right = library.expression(int(block[row])), library.expression(entry)
        if query.wrap is not None:
            left = query.wrap(left)
        cost = transform.cost + int(costs[block[row]]) + int(costs[entry]) + query.extra
        if query.factor is None:
            # The coefficient of A was 1 or -1 in the lookup; it is fitted like the others.
            yield Sum(table.reduction, transform, cost, right, left)
        else:
            yield Product(table.reduction, transform, cost, left, right)


def _over_one_plus(tree: Expression) -> Expression:
    return div(ONE, add(ONE, tree))


def _over_one_minus(tree: Expression) -> Expression:
    return div(ONE, sub(ONE, tree))


def _itself(queries: FloatArray) -> Restore:
    def restored(rows: IntArray) -> tuple[FloatArray, FloatArray]:
        return np.ones((1, queries.shape[1])), queries[rows]

    return restored


def _part(value: FloatArray, factor: FloatArray | None) -> Restore:
    def restored(rows: IntArray) -> tuple[FloatArray, FloatArray]:
        return np.ones((1, value.size)) if factor is None else factor[rows], value

    return restored
