"""Weighted linear least squares that neither loses digits nor overflows.

Columns are scaled to a largest entry near 1 by powers of two (exact), then factored; the normal matrix
is never formed. So 1e-34 beside 1e30 is as good as 1 beside 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from physdiffuser.arrays import CHECK_ARRAYS, BoolArray, FloatArray, checked

if TYPE_CHECKING or CHECK_ARRAYS:
    from jaxtyping import Float64


RANK_TOLERANCE = 1e-11
"""A unit column closer than this to the span of those before it counts as dependent."""


def power_of_two(size: FloatArray) -> FloatArray:
    """The power of two just above each size, of any shape; 1 where the size is 0 or not finite."""
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


@checked
def linear_least_squares(
    columns: Float64[np.ndarray, "columns rows"],
    target: Float64[np.ndarray, " rows"],
    weights: Float64[np.ndarray, " rows"] | None = None,
) -> LinearFit:
    """Minimise the weighted sum of squares of `target - coefficients @ columns`.

    Parameters
    ----------
    columns
        Shape (columns, rows), finite.
    target
        Shape (rows,), finite; at least one row.
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
    column_scale = power_of_two(np.abs(columns).max(axis=1))
    target_scale = float(power_of_two(np.abs(target).max()))
    matrix = (columns / column_scale[:, None]).T
    wanted = target / target_scale
    root = None
    if weights is not None:
        root = np.sqrt(weights / max(float(weights.max()), 5e-324))
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


@dataclass(frozen=True)
class SolvedColumns:
    """Many small least-squares problems, solved.

    Attributes
    ----------
    coefficients
        Shape (starts, columns). A column that depends on those before it gets 0.
    residual
        Shape (starts, rows); nan for starts with an entry that is not finite.
    basis
        Shape (starts, columns, rows): orthonormal, with the same span (0 for dependent columns).
    """

    coefficients: FloatArray
    residual: FloatArray
    basis: FloatArray


@checked
def solve_columns(
    columns: Float64[np.ndarray, "starts columns rows"], target: Float64[np.ndarray, "... rows"]
) -> SolvedColumns:
    """Many small least-squares problems at once: the hot path of variable projection.

    Parameters
    ----------
    columns
        Shape (starts, columns, rows), weighted. May hold nan or inf; the caller silences warnings.
    target
        Shape (rows,) or (starts, rows), weighted.

    Notes
    -----
    Gram-Schmidt, each column twice, which is as accurate as Householder's method (Giraud, Langou &
    Rozloznik, *Numer. Math.* 101, 2005) and for a handful of columns much quicker than a call of LAPACK
    per start.
    """
    starts, count, rows = columns.shape
    scale, unit = unit_columns(columns)
    finite: BoolArray = np.asarray(np.isfinite(scale).all(axis=-1))
    whole = bool(finite.all())
    if not whole:
        unit = np.where(finite[:, None, None], unit, 0.0)
        scale = np.where(finite[:, None], scale, 1.0)
    residual = np.broadcast_to(target, (starts, rows)).copy(order="K")
    basis = np.empty_like(unit)
    # `like`: on a GPU the columns are device arrays, and so is what is computed from them.
    upper = np.zeros((starts, count, count), like=unit)
    products = np.empty((starts, count), like=unit)
    for column in range(count):
        rest = unit[:, column]
        if column:
            before = basis[:, :column]
            for _ in range(2):
                overlap = np.matmul(before, rest[:, :, None])
                rest = rest - np.matmul(overlap.transpose(0, 2, 1), before)[:, 0]
                upper[:, :column, column] += overlap[:, :, 0]
            size = np.sqrt(np.einsum("sr,sr->s", rest, rest))
            good = size > RANK_TOLERANCE
            if not good.all():
                # What is left of a dependent column is rounding error.
                rest = np.where(good[:, None], rest, 0.0)
                size = np.where(good, size, 1.0)
                upper[:, :, column] *= good[:, None]
            upper[:, column, column] = size
            rest = rest / size[:, None]
        basis[:, column] = rest
        product = np.einsum("sr,sr->s", rest, residual)
        products[:, column] = product
        residual -= product[:, None] * rest
    # Once more for what rounding left: sums over many rows lose digits, sums of small residuals do not.
    rest_products = np.matmul(basis, residual[:, :, None])
    residual -= np.matmul(rest_products.transpose(0, 2, 1), basis)[:, 0]
    coefficients = products + rest_products[:, :, 0]
    for column in range(count - 1, 0, -1):
        coefficients[:, column] /= upper[:, column, column]
        coefficients[:, :column] -= upper[:, :column, column] * coefficients[:, column, None]
    if not whole:
        residual = np.where(finite[:, None], residual, np.nan)
    return SolvedColumns(coefficients / scale, residual, basis)


@checked
def unit_columns(
    columns: Float64[np.ndarray, "starts columns rows"],
) -> tuple[Float64[np.ndarray, "starts columns"], Float64[np.ndarray, "starts columns rows"]]:
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
    power = power_of_two(np.abs(columns).max(axis=-1))
    unit = columns / power[:, :, None]
    length = np.sqrt(np.einsum("scr,scr->sc", unit, unit))
    length[length == 0.0] = 1.0
    return power * length, unit / length[:, :, None]
