"""Weighted linear least squares that neither loses digits nor overflows.

Columns are scaled to a largest entry near 1 by powers of two (exact), then factored; the normal matrix
is never formed. So 1e-34 beside 1e30 is as good as 1 beside 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

RANK_TOLERANCE = 1e-11
"""A unit column closer than this to the span of those before it counts as dependent."""


def power_of_two(size: FloatArray) -> FloatArray:
    """The power of two just above each size; 1 where the size is 0 or not finite."""
    with np.errstate(all="ignore"):
        exponent = np.frexp(size)[1]
        usable = (size > 0.0) & np.isfinite(size)
        return np.where(usable, np.ldexp(1.0, np.clip(exponent, -1021, 1021)), 1.0)


@dataclass(frozen=True)
class LinearFit:
    """Solution of a linear least-squares problem.

    Attributes
    ----------
    coefficients
        Shape (columns,); of smallest scaled norm when the columns are dependent.
    residual
        Shape (rows,), unweighted.
    rank
        Number of independent columns.
    """

    coefficients: FloatArray
    residual: FloatArray
    rank: int


def linear_least_squares(
    columns: FloatArray, target: FloatArray, weights: FloatArray | None = None
) -> LinearFit:
    """Minimise the weighted sum of squares of `target - coefficients @ columns`.

    Parameters
    ----------
    columns
        Shape (columns, rows), finite.
    target
        Shape (rows,), finite.
    weights
        Shape (rows,), not negative, or None.

    Notes
    -----
    Column scaling, singular values, and one step of iterative refinement (Golub & Van Loan, *Matrix
    Computations*, 5.3 and 5.6).
    """
    count, rows = columns.shape
    if count == 0:
        return LinearFit(np.zeros(0), np.array(target), 0)
    column_scale = power_of_two(np.abs(columns).max(axis=1, initial=0.0))
    target_scale = float(power_of_two(np.abs(target).max(initial=0.0)))
    matrix = (columns / column_scale[:, None]).T
    wanted = target / target_scale
    root = None
    if weights is not None:
        root = np.sqrt(weights / max(float(weights.max(initial=0.0)), 5e-324))
        weighted = matrix * root[:, None]
    else:
        weighted = matrix
    norms = np.sqrt(np.einsum("rc,rc->c", weighted, weighted))
    norms[norms == 0.0] = 1.0
    left, values, right = np.linalg.svd(weighted / norms, full_matrices=False)
    keep = values > max(rows, count) * np.finfo(np.float64).eps * values[0]
    rank = int(keep.sum())
    inverse = np.where(keep, 1.0 / np.where(keep, values, 1.0), 0.0)

    def solve(side: FloatArray) -> FloatArray:
        weighted_side = side if root is None else side * root
        answer: FloatArray = (right.T @ (inverse * (left.T @ weighted_side))) / norms
        return answer

    solution = solve(wanted)
    solution = solution + solve(wanted - matrix @ solution)
    with np.errstate(all="ignore"):
        coefficients = solution / column_scale * target_scale
    return LinearFit(coefficients, (wanted - matrix @ solution) * target_scale, rank)


def solve_columns(
    columns: FloatArray, target: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, npt.NDArray[np.bool_]]:
    """Many small least-squares problems at once: the hot path of variable projection.

    Parameters
    ----------
    columns
        Shape (starts, columns, rows), weighted. May hold nan or inf.
    target
        Shape (rows,) or (starts, rows), weighted.

    Returns
    -------
    coefficients
        Shape (starts, columns). A column that depends on those before it gets 0.
    residual
        Shape (starts, rows); nan for starts with an entry that is not finite.
    basis
        Shape (starts, rows, columns): orthonormal columns with the same span (0 for dependent ones).
    independent
        Shape (starts, columns).
    """
    starts, count, _ = columns.shape
    with np.errstate(all="ignore"):
        largest = np.abs(columns).max(axis=-1, initial=0.0)
        usable = np.isfinite(largest).all(axis=-1)
        if not usable.all():
            columns = np.where(usable[:, None, None], columns, 0.0)
            largest = np.where(usable[:, None], largest, 0.0)
        scale = power_of_two(largest)
        unit = columns / scale[:, :, None]
        norm = np.sqrt(np.einsum("scr,scr->sc", unit, unit))
        independent = norm > 0.0
        norm[~independent] = 1.0
        unit /= norm[:, :, None]
        if count == 1:
            basis = unit.transpose(0, 2, 1)
            products = np.einsum("sr,...r->s", unit[:, 0], target) if target.ndim == 1 else None
            if products is None:
                products = np.einsum("sr,sr->s", unit[:, 0], target)
            coefficients = products[:, None]
            residual = target - coefficients * unit[:, 0]
        else:
            basis, upper = np.linalg.qr(unit.transpose(0, 2, 1))
            diagonal = np.abs(np.einsum("scc->sc", upper))
            independent = independent[:, : diagonal.shape[1]] if diagonal.shape[1] < count else independent
            deficient = diagonal <= RANK_TOLERANCE
            if deficient.any() or diagonal.shape[1] < count:
                return _dependent(unit, target, scale * norm, usable)
            products = np.matmul(basis.transpose(0, 2, 1), _as_columns(target, starts))[:, :, 0]
            coefficients = np.linalg.solve(upper, products[:, :, None])[:, :, 0]
            residual = target - np.matmul(coefficients[:, None, :], unit)[:, 0]
        coefficients = coefficients / (scale * norm)
        if not usable.all():
            residual = np.where(usable[:, None], residual, np.nan)
    return coefficients, residual, basis, independent


def _as_columns(target: FloatArray, starts: int) -> FloatArray:
    if target.ndim == 1:
        return np.broadcast_to(target, (starts, target.shape[0]))[:, :, None]
    return target[:, :, None]


def _dependent(
    unit: FloatArray, target: FloatArray, scale: FloatArray, usable: npt.NDArray[np.bool_]
) -> tuple[FloatArray, FloatArray, FloatArray, npt.NDArray[np.bool_]]:
    """The slow path: some columns are dependent. Gram-Schmidt, twice, leaving those out."""
    starts, count, rows = unit.shape
    residual = np.array(np.broadcast_to(target, (starts, rows)))
    basis = np.zeros((starts, rows, count))
    upper = np.zeros((starts, count, count))
    products = np.zeros((starts, count))
    independent = np.zeros((starts, count), dtype=np.bool_)
    for column in range(count):
        rest = unit[:, column].copy()
        for _ in range(2):
            overlap = np.einsum("src,sr->sc", basis, rest)
            upper[:, :, column] += overlap
            rest -= np.einsum("src,sc->sr", basis, overlap)
        size = np.sqrt(np.einsum("sr,sr->s", rest, rest))
        good = size > RANK_TOLERANCE
        independent[:, column] = good
        upper[:, column, column] = np.where(good, size, 1.0)
        basis[:, :, column] = np.where(good[:, None], rest / np.where(good, size, 1.0)[:, None], 0.0)
        products[:, column] = np.einsum("sr,sr->s", basis[:, :, column], residual)
        residual -= products[:, column, None] * basis[:, :, column]
    # Rows of dependent columns hold only the unit diagonal; their product is 0, so they come out as 0.
    upper = np.where(independent[:, :, None] | np.eye(count, dtype=np.bool_), upper, 0.0)
    coefficients = np.linalg.solve(upper, products[:, :, None])[:, :, 0] / scale
    residual = np.where(usable[:, None], residual, np.nan)
    return coefficients, residual, basis, independent
