"""Curves of one feature with several constants inside, as handbooks of curve fitting list them.

A family of `parametric` has at most two constants inside, on a coarse grid, because it is tried on hundreds
of targets. Here the targets are few, the target itself, its reciprocal and its logarithm, so that there is
time for a fine grid: at each point of it the constants that are linear are solved for at once (variable
projection; Golub and Pereyra 1973), and the best points are starts for Levenberg-Marquardt.

The logarithm makes products linear: `log y = log A + b*log u + c/(u + p)` for `A*u**b*exp(c/(u + p))`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from physdiffuser.expressions import Expression, Parameter
from physdiffuser.expressions.tree import add, mul

FloatArray = npt.NDArray[np.float64]

# Points of a grid that are finished.
STARTS = 3
# Points of a grid that lie this near each other, in ranks, lead to the same place.
_NEAR = 0.12
# Logarithm of the largest factor before a product.
_LARGEST = 600.0


@dataclass(frozen=True)
class Curve:
    """A function of one feature u.

    Attributes
    ----------
    name
        As derivations have it.
    logarithmic
        Whether it is a product, whose logarithm is the sum of the terms.
    needs
        Operators that it writes.
    grid
        From the values of u, shape (rows,), to the constants inside to try, (tries, constants).
    terms
        From u, (1, rows), and each constant, (tries, 1), to the terms besides the constant one, each of a
        shape that broadcasts to (tries, rows).
    build
        The formula, from that of u, the constants inside and the coefficients of the terms; without the
        factor in front of products, and without the constant that is added to others.
    level
        Whether a constant is added.
    """

    name: str
    logarithmic: bool
    needs: frozenset[str]
    grid: Callable[[FloatArray], FloatArray]
    terms: Callable[..., list[FloatArray]]
    build: Callable[[Expression, list[Expression], list[Expression]], Expression]
    level: bool = True

    def skeleton(
        self, u: Expression, inside: FloatArray, coefficients: FloatArray, sign: float = 1.0
    ) -> tuple[Expression, list[float]]:
        """The curve with parameters, and where they start.

        Parameters
        ----------
        inside
            Constants of a point of the grid.
        coefficients
            Of the constant, where there is one, and of the terms there.
        sign
            Of a target whose logarithm was taken.
        """
        many = len(inside)
        holders = [Parameter(place) for place in range(many + len(coefficients))]
        if not self.level:
            tree = self.build(u, list(holders[:many]), list(holders[many:]))
            return tree, [*map(float, inside), *map(float, coefficients)]
        body = self.build(u, list(holders[:many]), list(holders[many + 1 :]))
        front = holders[many]
        tree = mul(front, body) if self.logarithmic else add(front, body)
        first = float(coefficients[0])
        if self.logarithmic:
            first = sign * float(np.exp(first))
        return tree, [*map(float, inside), first, *map(float, coefficients[1:])]


def best_points(
    curve: Curve, u: FloatArray, target: FloatArray, weights: FloatArray
) -> Iterator[tuple[float, FloatArray, FloatArray]]:
    """The best points of a curve's grid: what they leave over, constants inside, and coefficients.

    Parameters
    ----------
    u, target, weights
        Shape (rows,); `target` is the logarithm for a curve that is a product.
    """
    with np.errstate(all="ignore"):
        grid = curve.grid(u)
        if not len(grid):
            return
        terms = curve.terms(u[None], *grid.T[:, :, None])
        shape = (len(grid), u.size)
        ones = [np.ones(shape)] if curve.level else []
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
        if curve.logarithmic and abs(coefficients[0]) > _LARGEST:
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
