"""Single-index models: the target as one function of a weighted sum of columns, `y = g(w1*x1 + w2*x2 + ...)`.

A sigmoid of two inputs and a plane wave are such laws. The sum may hold products of two columns, as in
`cos((w - w0)*t)`. The weights are those with which a polynomial of the weighted sum predicts the rows best.
They start from a linear fit, and from sums whose slopes are parallel to those of a polynomial of all columns
(average derivatives [1]_); from there, variable projection.

References
----------
.. [1] A. M. Samarov, "Exploring regression structure using nonparametric functional estimation",
   J. Am. Stat. Assoc. 88 (1993).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.analysis import Level
from physdiffuser.core.problem import Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.expressions import Expression, Number, Variable, evaluate
from physdiffuser.expressions.tree import add, mul, sub, variables
from physdiffuser.noise.noise_floor import POLICY as NOISE_FLOOR
from physdiffuser.noise.noise_floor import levels
from physdiffuser.reduction.surrogate import fit_slopes


@dataclass(frozen=True)
class SingleIndexPolicy:
    """How the weights of a single-index model are sought.

    Set on eight own laws of two and three columns, such as those of tests/generation/test_single_index.py.
    """

    max_columns: int = 8
    max_columns_of_products: int = 3
    rows: int = 600
    rows_of_term: int = 5
    """Columns at most, also of sums with their products; rows at most, and at least for each number."""
    degrees: tuple[int, ...] = (3, 5, 9, 13)
    """Of the polynomial of the weighted sum, one after the other: low ones show the way to high ones."""
    steps: int = 12
    """Of the fit for each degree."""
    starts: int = 3
    """Directions that fits start from."""
    negligible: float = 1.02
    """A column whose weight may be 0 at the cost of this factor in the error has none."""
    explained: float = 1e-3
    """Errors below this share of the target's deviation are small, even if those of other reductions are
    smaller: without noise they all fall with the degree."""


POLICY = SingleIndexPolicy()


def single_index(problem: Problem, known: Sequence[Level]) -> list[Reduction]:
    """The weighted sum of columns, if a function of it predicts rows as well as the best reduction does.

    Where no sum of columns does, their products may be in it.

    Parameters
    ----------
    known
        How well polynomials in the features of other reductions predict rows.
    """
    count = problem.columns
    columns: list[Expression] = [Variable(column) for column in range(count)]
    found = _of_terms(problem, columns, known) if 2 <= count <= POLICY.max_columns else []
    if found or not 2 <= count <= POLICY.max_columns_of_products:
        return found
    return _of_terms(problem, columns + [mul(one, other) for one, other in combinations(columns, 2)], known)


def _of_terms(problem: Problem, terms: list[Expression], known: Sequence[Level]) -> list[Reduction]:
    """The weighted sum of some terms, columns and products of columns."""
    rows = problem.generator(11).permutation(problem.rows)[: POLICY.rows]
    if len(rows) < POLICY.rows_of_term * (POLICY.degrees[0] + len(terms)):
        return []
    inputs, target = problem.inputs[rows], problem.target[rows]
    values = np.column_stack([evaluate(term, inputs) for term in terms])
    spread, height = values.std(axis=0), float(target.std())
    if not (np.isfinite(spread).all() and (spread > 0).all() and 0 < height < np.inf):
        return []
    unit, wanted = (values - values.mean(axis=0)) / spread, (target - target.mean()) / height
    if not (np.isfinite(unit).all() and np.isfinite(wanted).all()):
        return []
    starts = list(_starts(unit, wanted, terms, inputs, spread))
    best = min((_fitted(unit, wanted, start) for start in starts), key=lambda fit: fit[1])
    if min(_error(unit, wanted, start, 1) for start in starts) <= POLICY.negligible * best[1]:
        # A plane is a sum of columns.
        return []
    weights = _sparse(unit, wanted, *best) / spread
    if np.count_nonzero(weights) < 2:
        return []
    weights = weights / weights[np.argmax(np.abs(weights * spread))]
    reduction = Reduction.of((), (_weighted_sum(weights, terms),))
    limit = NOISE_FLOOR.as_good * min((level.error for level in known), default=NOISE_FLOOR.max_floor)
    limit = min(max(limit, POLICY.explained), NOISE_FLOOR.max_floor)
    return [reduction for level in levels(problem, [reduction]) if level.error < limit]


def _starts(
    unit: FloatArray, target: FloatArray, terms: Sequence[Expression], inputs: FloatArray, spread: FloatArray
) -> Iterator[FloatArray]:
    """Weights of length 1: of the linear fit, and of sums with slopes parallel to those of the target."""
    linear = np.linalg.lstsq(unit, target, rcond=None)[0]
    if np.linalg.norm(linear) > 0:
        yield linear / np.linalg.norm(linear)
    deviations = inputs.std(axis=0)
    gradients = fit_slopes((inputs - inputs.mean(axis=0)) / deviations, target)
    if gradients is None:
        return
    # The slope of each term by each column.
    slopes = np.zeros((len(terms), *inputs.shape))
    for place, term in enumerate(terms):
        for column in variables(term):
            others = variables(term) - {column}
            slope = np.prod([inputs[:, other] for other in others], axis=0) if others else 1.0
            slopes[place, :, column] = slope * deviations[column] / spread[place]
    across = [
        gradients[:, one] * slopes[:, :, other] - gradients[:, other] * slopes[:, :, one]
        for one, other in combinations(range(inputs.shape[1]), 2)
    ]
    _, _, weights = np.linalg.svd(np.concatenate(across, axis=1).T, full_matrices=False)
    yield from weights[::-1][: POLICY.starts - 1]


def _fitted(unit: FloatArray, target: FloatArray, start: FloatArray) -> tuple[FloatArray, float, int]:
    """Weights of length 1 near a start, the error of rows left out with them, and the degree it has."""
    weights, best = start, (start, np.inf, POLICY.degrees[0])
    for degree in POLICY.degrees:
        if len(target) < POLICY.rows_of_term * (degree + len(start)):
            break
        weights = _descended(unit, target, weights, degree)
        error = _error(unit, target, weights, degree)
        if error < best[1]:
            best = (weights, error, degree)
    return best


def _projected(
    unit: FloatArray, target: FloatArray, weights: FloatArray, degree: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A basis of the polynomials of the weighted sum, what they leave, and slopes of the fitted one."""
    place = unit @ weights
    low, high = float(place.min()), float(place.max())
    half = 0.5 * (high - low) or 1.0
    place = (place - low) / half - 1.0
    design = np.polynomial.chebyshev.chebvander(place, degree).astype(np.float64)
    basis, triangle = np.linalg.qr(design)
    coefficients = np.linalg.lstsq(triangle, basis.T @ target, rcond=None)[0]
    slopes = np.polynomial.chebyshev.chebval(place, np.polynomial.chebyshev.chebder(coefficients)) / half
    return basis, target - basis @ (basis.T @ target), np.asarray(slopes, np.float64)


def _descended(unit: FloatArray, target: FloatArray, weights: FloatArray, degree: int) -> FloatArray:
    """Weights after some steps of Gauss and Newton, with the coefficients of the polynomial projected out."""
    basis, left, slopes = _projected(unit, target, weights, degree)
    loss, damping = float(left @ left), 1e-3
    for _ in range(POLICY.steps):
        jacobian = slopes[:, None] * unit
        jacobian -= basis @ (basis.T @ jacobian)
        normal = jacobian.T @ jacobian
        normal[np.diag_indices_from(normal)] += damping * (np.trace(normal) / len(normal) or 1.0)
        moved = weights + np.linalg.solve(normal, jacobian.T @ left)
        length = float(np.linalg.norm(moved))
        if not np.isfinite(length) or length == 0:
            return weights
        tried = _projected(unit, target, moved / length, degree)
        lower = float(tried[1] @ tried[1])
        if lower < loss:
            done = lower > loss * (1 - 1e-6)
            weights, (basis, left, slopes), loss, damping = moved / length, tried, lower, damping * 0.1
            if done:
                return weights
        else:
            damping *= 10
            if damping > 1e6:
                return weights
    return weights


def _error(unit: FloatArray, target: FloatArray, weights: FloatArray, degree: int) -> float:
    """Root mean square error of each row under the polynomial fitted to the others."""
    basis, left, _ = _projected(unit, target, weights, degree)
    leverage = np.minimum(np.square(basis).sum(axis=1), 0.99)
    return float(np.sqrt(np.mean(np.square(left / (1 - leverage)))))


def _sparse(
    unit: FloatArray, target: FloatArray, weights: FloatArray, error: float, degree: int
) -> FloatArray:
    """The weights without those that hardly matter, the others fitted again."""
    for column in np.argsort(np.abs(weights))[: len(weights) - 1]:
        kept = weights.copy()
        kept[column] = 0.0
        used = np.flatnonzero(kept)
        if not used.size:
            break
        start = kept[used] / np.linalg.norm(kept[used])
        kept[used] = _descended(unit[:, used], target, start, degree)
        if _error(unit, target, kept, degree) <= POLICY.negligible * error:
            weights = kept
    return weights


def _weighted_sum(weights: FloatArray, terms: Sequence[Expression]) -> Expression:
    """The tree of a weighted sum of terms, one of which has the weight 1."""
    places = sorted(np.flatnonzero(weights).tolist(), key=lambda place: weights[place] != 1.0)
    found = terms[places[0]]
    for place in places[1:]:
        term = mul(Number(float(abs(weights[place]))), terms[place])
        found = add(found, term) if weights[place] > 0 else sub(found, term)
    return found
