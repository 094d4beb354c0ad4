"""Quotients of polynomials: `x' * (1 + d(x)) = n(x)` is linear in the constants of numerator and denominator.

Sparse sums of the terms of `n` and of `-x' * d` explain the rate; the constants of the quotient are then
fitted in the weak form, which has no derivative.

References
----------
Kaheman, Kutz and Brunton, *SINDy-PI*, Proceedings of the Royal Society A 476 (2020).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.dynamics.search.shapes import FittedSum
from physdiffuser.dynamics.search.sparse import extended, pairs
from physdiffuser.dynamics.search.terms import products
from physdiffuser.dynamics.search.weak import WeakForm
from physdiffuser.expressions import ONE, Expression, Parameter, evaluate
from physdiffuser.expressions.tree import add, div, mul, with_columns

MAX_TERMS = 6
BEAM = 40
"""Wider than for sums: products with the rate resemble each other."""
KEPT = 4
"""Quotients of each size whose constants are fitted."""


def rational_sums(
    weak: WeakForm, state: int, columns: Sequence[int], slopes: FloatArray
) -> Iterator[FittedSum]:
    """Quotients of sums of products for the rate of one state.

    Parameters
    ----------
    columns
        Positions of the variables that may occur.
    slopes
        Shape (nodes,): the rate at the nodes, from the curve.
    """
    count = len(columns)
    order = 4 if count == 1 else 3 if count == 2 else 2
    above = [with_columns(term, columns) for term in products(count, order)]
    below = [with_columns(term, columns) for term in products(count, 4 if count == 1 else 2)[1:]]
    values = [evaluate(term, weak.nodes) for term in above]
    values += [-slopes * evaluate(term, weak.nodes) for term in below]
    matrix = weak.mean(np.stack(values, axis=1)) / weak.errors[:, [state]]
    target = weak.mean(slopes) / weak.errors[:, state]
    length = np.sqrt(np.square(matrix).sum(axis=0))
    if not (np.isfinite(length).all() and (length > 0).all()):
        return
    unit = matrix / length
    beam: list[tuple[int, ...]] = [()]
    for size in range(1, min(MAX_TERMS, weak.windows - 2) + 1):
        beam = (pairs(unit, target) if size == 2 else extended(unit, target, beam))[:BEAM]
        quotients = [one for one in beam if min(one) < len(above) <= max(one)]
        for subset in quotients[:KEPT]:
            start = np.linalg.lstsq(unit[:, subset], target, rcond=None)[0] / length[list(subset)]
            skeleton, places = _quotient(above, below, subset)
            parameters, loss = weak.fit(skeleton, start[places], state, iterations=12)
            if math.isfinite(loss):
                yield FittedSum(skeleton, parameters, loss)


def _quotient(
    above: Sequence[Expression], below: Sequence[Expression], subset: Sequence[int]
) -> tuple[Expression, list[int]]:
    """`(c1*a + c2*b)/(1 + c3*d)`, and the places in the subset that its parameters have."""
    order = sorted(range(len(subset)), key=lambda place: subset[place])
    numerator: Expression | None = None
    denominator: Expression = ONE
    for number, place in enumerate(order):
        index = subset[place]
        term = above[index] if index < len(above) else below[index - len(above)]
        part: Expression = Parameter(number) if term == ONE else mul(Parameter(number), term)
        if index >= len(above):
            denominator = add(denominator, part)
        else:
            numerator = part if numerator is None else add(numerator, part)
    assert numerator is not None  # the caller asks for a term above
    return div(numerator, denominator), order
