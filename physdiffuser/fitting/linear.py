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
    usable = (size > 0.0) & np.isfinite(size)
    exponent = np.frexp(np.where(usable, size, 1.0))[1]
    power: FloatArray = np.ldexp(1.0, np.clip(exponent, -1021, 1021))
    return power


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
        Shape (starts, columns, rows), weighted. May hold nan or inf; the caller silences warnings.
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
    starts, count, rows = columns.shape
    scale, unit = unit_columns(columns)
    usable: npt.NDArray[np.bool_] = np.asarray(np.isfinite(scale).all(axis=-1))
    whole = bool(usable.all())
    if not whole:
        unit = np.where(usable[:, None, None], unit, 0.0)
        scale = np.where(usable[:, None], scale, 1.0)
    if count == 1:
        first = unit[:, 0]
        basis = unit.transpose(0, 2, 1)
        coefficients = np.einsum("sr,sr->s", first, np.broadcast_to(target, first.shape))[:, None]
        residual = target - coefficients * first
        independent = np.einsum("sr,sr->s", first, first)[:, None] > 0.5
    else:
        basis, upper = np.linalg.qr(unit.transpose(0, 2, 1))
        if rows < count or (np.abs(np.einsum("scc->sc", upper)) <= RANK_TOLERANCE).any():
            coefficients, residual, basis, independent = _dependent(unit, target)
        else:
            independent = np.ones((starts, count), dtype=np.bool_)
            side = np.broadcast_to(target, (starts, rows))[:, :, None]
            products = np.matmul(basis.transpose(0, 2, 1), side)
            coefficients = np.linalg.solve(upper, products)[:, :, 0]
            residual = target - np.matmul(coefficients[:, None, :], unit)[:, 0]
    if not whole:
        residual = np.where(usable[:, None], residual, np.nan)
    return coefficients / scale, residual, basis, independent


def unit_columns(columns: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Euclidean lengths of columns, and the columns divided by them.

    Parameters
    ----------
    columns
        Shape (starts, columns, rows), of any magnitude.

    Returns
    -------
    lengths
        Shape (starts, columns); 1 for a column of zeros, nan or inf for one that is not finite.
    unit
        Shape (starts, columns, rows); not finite where the length is not.
    """
    length = np.sqrt(np.einsum("scr,scr->sc", columns, columns))
    if ((length > 1e-140) & (length < 1e140)).all():
        return length, columns / length[:, :, None]
    # Squares may have vanished or overflowed: scale first.
    power = power_of_two(np.abs(columns).max(axis=-1, initial=0.0))
    unit = columns / power[:, :, None]
    length = np.sqrt(np.einsum("scr,scr->sc", unit, unit))
    length[length == 0.0] = 1.0
    return power * length, unit / length[:, :, None]


def _dependent(
    unit: FloatArray, target: FloatArray
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
    coefficients = np.asarray(np.linalg.solve(upper, products[:, :, None])[:, :, 0], dtype=np.float64)
    return coefficients, residual, basis, independent
