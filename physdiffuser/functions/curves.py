"""Curves of one feature with several constants inside, as handbooks of curve fitting list them.

In the use "enumeration" a family has few constants inside, on a coarse grid, because it is tried on hundreds
of targets. Here the targets are few, the target itself, its reciprocal and its logarithm, so that there is
time for a fine grid: at each point of it the constants that are linear are solved for at once (variable
projection; Golub and Pereyra 1973), and the best points are starts for Levenberg-Marquardt.

The logarithm makes products linear: `log y = log A + b*log u + c/(u + p)` for `A*u**b*exp(c/(u + p))`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.expressions import Expression, Parameter
from physdiffuser.expressions.tree import add, mul
from physdiffuser.functions.family import Family, linear_form, numeric

# Points of a grid that are finished.
STARTS = 3
# Points of a grid that lie this near each other, in ranks, lead to the same place.
_NEAR = 0.12
# Logarithm of the largest factor before a product.
_LARGEST = 600.0


def skeleton(
    family: Family, u: Expression, inside: FloatArray, coefficients: FloatArray, sign: float = 1.0
) -> tuple[Expression, list[float]]:
    """The curve with parameters, and where they start.

    Parameters
    ----------
    u
        The feature.
    inside
        Constants of a point of the grid.
    coefficients
        Of the constant, where there is one, and of the terms there.
    sign
        Of a target whose logarithm was taken.
    """
    logarithmic, offset = linear_form(family).logarithmic, family.spec.offset
    many = len(inside)
    holders = [Parameter(place) for place in range(many + len(coefficients))]
    body = family.build([u], [*holders[:many], *holders[many + offset :]])
    if not family.spec.coefficients:
        body = mul(holders[-1], body)
    if not offset:
        return body, [*map(float, inside), *map(float, coefficients)]
    tree = mul(holders[many], body) if logarithmic else add(holders[many], body)
    first = float(coefficients[0])
    if logarithmic:
        first = sign * float(np.exp(first))
    return tree, [*map(float, inside), first, *map(float, coefficients[1:])]


def best_points(
    family: Family, u: FloatArray, target: FloatArray, weights: FloatArray
) -> Iterator[tuple[float, FloatArray, FloatArray]]:
    """The best points of a curve's grid: their residuals, constants inside, and coefficients.

    Parameters
    ----------
    u, target, weights
        Shape (rows,); `target` is the logarithm for a curve that is a product.
    """
    form = linear_form(family)
    with np.errstate(all="ignore"):
        grid = family.tries("curves", u)
        if not len(grid):
            return
        terms = numeric(form.terms, form.arguments(u), grid)
        shape = (len(grid), u.size)
        ones = [np.ones(shape)] if family.spec.offset else []
        values = np.stack([*ones, *(np.broadcast_to(term, shape) for term in terms)], axis=2)
        size = np.abs(values).max(axis=1)
        good = np.isfinite(size).all(axis=1) & (size < 1e140).all(axis=1) & (size > 0).all(axis=1)
    grid, values, size = grid[good], values[good], size[good]
    if not len(grid):
        return
    root = np.sqrt(weights / weights.mean())
    wanted = root * target
    q, r = np.linalg.qr(values / size[:, None, :] * root[None, :, None])
    explained = np.einsum("tnk,n->tk", q, wanted)
    left = np.square(wanted - np.einsum("tnk,tk->tn", q, explained)).sum(axis=1)
    diagonal = np.abs(np.einsum("tkk->tk", r))
    left = np.where(diagonal.min(axis=1) > 1e-10 * diagonal.max(axis=1), left, np.inf)
    total = float(np.square(wanted - wanted.mean()).sum()) or 1.0
    found = 0
    for place in _peaks(left, grid):
        coefficients = np.linalg.solve(r[place], explained[place]) / size[place]
        if form.logarithmic and abs(coefficients[0]) > _LARGEST:
            continue
        yield float(left[place]) / total, grid[place], coefficients
        found += 1
        if found == STARTS:
            return


def _peaks(left: FloatArray, grid: FloatArray) -> list[int]:
    """The best points, those near a better one passed over."""
    ranks = np.argsort(np.argsort(grid, axis=0), axis=0) / len(grid)
    chosen: list[int] = []
    for place in np.argsort(left, kind="stable")[: 60 * STARTS]:
        if not np.isfinite(left[place]):
            break
        if all(np.abs(ranks[place] - ranks[other]).max() > _NEAR for other in chosen):
            chosen.append(int(place))
    return chosen
