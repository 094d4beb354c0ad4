"""Choosing a few columns: exact spans for clean data, forward selection with a beam for noisy data.

Forward selection adds the column that reduces the residual most after projection onto what is chosen
(orthogonal least squares: Chen, Billings and Luo 1989; orthogonal matching pursuit is its cheaper
cousin). Power products over positive ranges are strongly correlated and one greedy path is easily
misled, so a beam of supports is kept, seeded with the best pairs, and terms are swapped at each size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from physdiffuser.arrays import FloatArray


@dataclass(frozen=True)
class RegressionPolicy:
    """How widely sums of dictionary terms are searched.

    Set on development laws (docs/methods/generators.md).
    """

    beam: int = 10
    branches: int = 4
    """Supports that are followed, and columns that each is extended by."""
    max_terms: int = 8
    """Terms of a sum."""
    pair_columns: int = 1500
    """Pairs are screened over at most so many columns."""
    rows_of_term: int = 2
    spare_rows: int = 10
    """Rows that a sum must have for each term that may be in it; and, if it fits exactly, rows beyond its
    terms, each of which would otherwise have to agree to all digits by chance."""


POLICY = RegressionPolicy()


@dataclass(frozen=True)
class Support:
    """Chosen columns and their residuals.

    Attributes
    ----------
    columns
        Positions, sorted.
    residual
        Weighted residual sum of squares relative to the target's.
    """

    columns: tuple[int, ...]
    residual: float


def enough_rows(terms: int, rows: int, exact: bool) -> bool:
    """Whether so many rows tell a sum of some of the terms from chance.

    Parameters
    ----------
    exact
        Whether it is to fit exactly.
    """
    return terms + POLICY.spare_rows <= rows if exact else terms * POLICY.rows_of_term <= rows


def scaled(values: FloatArray, target: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rows multiplied by the square root of their weights, columns and target of unit norm."""
    root = np.sqrt(weights)
    design = values * root[:, None]
    largest = np.abs(design).max(axis=0)
    design = design / np.where(largest > 0, largest, 1.0)
    norm = np.linalg.norm(design, axis=0)
    wanted = target / (np.abs(target).max() or 1.0) * root
    return design / np.where(norm > 0, norm, 1.0), wanted / (np.linalg.norm(wanted) or 1.0)


def least_squares(values: FloatArray, target: FloatArray, weights: FloatArray) -> FloatArray | None:
    """Coefficients of the columns of `values`, shape (rows, terms); None where they are not determined."""
    root = np.sqrt(weights)
    largest = np.abs(values).max(axis=0)
    height = np.abs(target).max()
    if not (largest > 0).all() or height == 0:
        return None
    solution = np.linalg.lstsq(values / largest * root[:, None], target / height * root, rcond=1e-14)[0]
    found: FloatArray = solution * height / largest
    return found if np.isfinite(found).all() else None


def residual_of(design: FloatArray, target: FloatArray, columns: tuple[int, ...]) -> float:
    """Residual sum of squares of the least-squares fit on some columns."""
    chosen = design[:, columns]
    q, r = np.linalg.qr(chosen)
    diagonal = np.abs(np.diag(r))
    if diagonal.min(initial=1.0) < 1e-12 * diagonal.max(initial=1.0):
        return float("inf")
    left = target - q @ (q.T @ target)
    left -= q @ (q.T @ left)
    return float(left @ left)


def exact_span(design: FloatArray, target: FloatArray, tolerance: float) -> tuple[int, ...] | None:
    """Columns whose span contains the target, as few as elimination leaves; None if all of them do not.

    Parameters
    ----------
    design, target
        As from `scaled`, with more rows than columns.
    tolerance
        Root of the relative residual sum of squares that counts as zero.
    """
    columns = np.arange(design.shape[1])
    coefficients = _solve(design, target)
    if coefficients is None or _norm(target - design @ coefficients) > tolerance:
        return None
    if not coefficients.any():
        return None  # a target of zeros, as squares of very small numbers are
    # Drop what contributes nothing, all at once as long as that goes well, then one by one.
    for threshold in (1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3):
        size = np.abs(coefficients)
        keep = size > threshold * size.max()
        if keep.all():
            continue
        fewer = _solve(design[:, columns[keep]], target)
        if fewer is None or _norm(target - design[:, columns[keep]] @ fewer) > tolerance:
            break
        columns, coefficients = columns[keep], fewer
    while columns.size > 1:
        for position in np.argsort(np.abs(coefficients)):
            rest = np.delete(columns, position)
            fewer = _solve(design[:, rest], target)
            if fewer is not None and _norm(target - design[:, rest] @ fewer) <= tolerance:
                columns, coefficients = rest, fewer
                break
        else:
            break
        if columns.size > 40:
            # Not sparse: elimination would take long to prove what is already plain.
            break
    return tuple(int(column) for column in columns)


def _norm(vector: FloatArray) -> float:
    return float(np.linalg.norm(vector))


def _solve(design: FloatArray, target: FloatArray) -> FloatArray | None:
    q, r = np.linalg.qr(design)
    diagonal = np.abs(np.diag(r))
    if diagonal.min() < 1e-13 * diagonal.max():
        solution = np.asarray(np.linalg.lstsq(design, target, rcond=1e-13)[0], np.float64)
        return solution if np.isfinite(solution).all() else None
    first = np.linalg.solve(r, q.T @ target)
    # One step of refinement: the columns are nearly collinear.
    refined: FloatArray = first + np.linalg.solve(r, q.T @ (target - design @ first))
    return refined if np.isfinite(refined).all() else None


def _extensions(
    design: FloatArray, target: FloatArray, columns: tuple[int, ...], count: int
) -> list[tuple[int, float]]:
    """The best columns to add, with the residual each would leave."""
    if columns:
        q, _ = np.linalg.qr(design[:, columns])
        inside = q.T @ design
        left = target - q @ (q.T @ target)
        free = 1.0 - np.square(inside).sum(axis=0)
    else:
        left, free = target, np.ones(design.shape[1])
    gain = np.square(left @ design)
    # A column that is nearly in the span already has nothing but rounding to offer.
    usable = free > 1e-9
    gain = np.where(usable, gain / np.where(usable, free, 1.0), -1.0)
    gain[list(columns)] = -1.0
    best = np.argpartition(-gain, min(count, len(gain) - 1))[:count]
    best = best[np.argsort(-gain[best], kind="stable")]
    total = float(left @ left)
    return [(int(column), max(total - float(gain[column]), 0.0)) for column in best if gain[column] > 0]


def best_pairs(design: FloatArray, target: FloatArray, count: int) -> list[Support]:
    """The pairs of columns (besides column 0, the constant) that leave the least."""
    first = design[:, :1]
    inner = design[:, 1 : POLICY.pair_columns + 1]
    inner = inner - first @ (first.T @ inner)
    norm = np.linalg.norm(inner, axis=0)
    usable = norm > 1e-6
    inner = (inner / np.where(usable, norm, 1.0)).astype(np.float32)
    wanted = target - first[:, 0] * (first[:, 0] @ target)
    correlation = (inner.T @ wanted.astype(np.float32)).astype(np.float32)
    gram = inner.T @ inner
    left, right = correlation[:, None], correlation[None, :]
    free = 1.0 - gram * gram
    explained = (left * left + right * right - 2 * left * right * gram) / np.maximum(free, 1e-4)
    explained[(free < 1e-4) | ~usable[:, None] | ~usable[None, :]] = -1
    explained[np.tril_indices(len(explained))] = -1
    flat = np.argpartition(-explained, min(count, explained.size - 1), axis=None)[:count]
    rows, columns = np.unravel_index(flat, explained.shape)
    total = float(wanted @ wanted)
    return [
        Support((0, int(row) + 1, int(column) + 1), total - float(explained[row, column]))
        for row, column in zip(rows, columns, strict=True)
        if explained[row, column] > 0
    ]


def forward(design: FloatArray, target: FloatArray, most: int = POLICY.max_terms) -> Iterator[list[Support]]:
    """The best supports of each size, from one column to `most`, size by size.

    The constant is a column like any other here. Stops early when nothing is left to explain.
    """
    beam = [Support((), 1.0)]
    pairs = best_pairs(design, target, 3 * POLICY.beam) if design.shape[1] > 2 else []
    for size in range(1, min(most, design.shape[1], len(design) // 4) + 1):
        proposals: dict[tuple[int, ...], float] = {}
        for support in beam:
            for column, left in _extensions(design, target, support.columns, POLICY.branches):
                proposals[tuple(sorted((*support.columns, column)))] = left
        if size == 3:
            proposals.update({tuple(sorted(pair.columns)): pair.residual for pair in pairs})
        if size == 2:
            for pair in pairs[: POLICY.beam]:
                proposals[pair.columns[1:]] = residual_of(design, target, pair.columns[1:])
        ranked = sorted(proposals.items(), key=lambda item: (item[1], item[0]))[: 2 * POLICY.beam]
        exact = [Support(columns, residual_of(design, target, columns)) for columns, _ in ranked]
        exact.sort(key=lambda support: (support.residual, support.columns))
        beam = exact[: POLICY.beam]
        if not beam or not np.isfinite(beam[0].residual):
            return
        beam[0] = _swapped(design, target, beam[0])
        yield beam[:3]
        if beam[0].residual < 1e-22:
            return


def _swapped(design: FloatArray, target: FloatArray, support: Support) -> Support:
    """Replace terms one at a time as long as that helps."""
    best = support
    for _ in range(3 if design.shape[1] < 500 else 1):
        before = best
        for column in before.columns:
            rest = tuple(other for other in before.columns if other != column)
            for other, _ in _extensions(design, target, rest, 1):
                columns = tuple(sorted((*rest, other)))
                left = residual_of(design, target, columns)
                if left < best.residual * (1 - 1e-9):
                    best = Support(columns, left)
        if best is before:
            break
    return best
