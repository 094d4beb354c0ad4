"""Each row predicted from its neighbours by a robust local linear fit (LOESS).

References
----------
Cleveland, W. S. (1979). Robust locally weighted regression and smoothing scatterplots. Journal of the
American Statistical Association 74, 829-836.
"""

from __future__ import annotations

import numpy as np

from physdiffuser.arrays import FloatArray, IndexArray, spread_places

# Rows whose neighbours are found in one matrix product.
BLOCK = 500


def spread_out(rows: IndexArray, most: int) -> IndexArray:
    """At most so many of the rows, evenly spaced: tables may be sorted."""
    return rows[spread_places(len(rows), most)]


def usual_error(error: FloatArray) -> float:
    """Standard deviation of normal errors with the same median of absolute values."""
    return 1.4826 * float(np.median(np.abs(error)))


def coordinates(inputs: FloatArray) -> list[FloatArray]:
    """The columns as they are, and with logarithms where possible; standardised, without constant ones."""
    plain = inputs / np.maximum(np.abs(inputs).max(axis=0), 1e-300)
    choices = [plain]
    positive = (inputs > 0).all(axis=0)
    if positive.any():
        logarithms = plain.copy()
        logarithms[:, positive] = np.log(plain[:, positive])
        choices.append(logarithms)
    found = []
    for choice in choices:
        spread = choice.std(axis=0)
        found.append((choice - choice.mean(axis=0))[:, spread > 0] / spread[spread > 0])
    return found


def neighbours(
    unit: FloatArray, rows: IndexArray, references: IndexArray, count: int
) -> tuple[IndexArray, FloatArray]:
    """The nearest references of each row, itself left out, nearest first, with their distances."""
    near = np.empty((len(rows), count), np.intp)
    reach = np.empty((len(rows), count))
    others = unit[references]
    size = np.square(others).sum(axis=1)
    for start in range(0, len(rows), BLOCK):
        some = rows[start : start + BLOCK]
        square = np.square(unit[some]).sum(axis=1)[:, None] + size - 2 * unit[some] @ others.T
        square[some[:, None] == references] = np.inf
        chosen = np.argpartition(square, count - 1, axis=1)[:, :count]
        distance = np.take_along_axis(square, chosen, axis=1)
        order = np.argsort(distance, axis=1, kind="stable")
        near[start : start + BLOCK] = references[np.take_along_axis(chosen, order, axis=1)]
        reach[start : start + BLOCK] = np.sqrt(np.maximum(np.take_along_axis(distance, order, axis=1), 0.0))
    return near, reach


def neighbour_count(unit: FloatArray, references: IndexArray) -> int:
    """How many neighbours a prediction takes."""
    return min(len(references) - 1, 3 * int(unit.shape[1]) + 5)


def local_predictions(
    unit: FloatArray, values: FloatArray, rows: IndexArray, references: IndexArray, rounds: int = 3
) -> tuple[FloatArray, IndexArray]:
    """The rows' values by local linear fits to the nearest references, themselves left out; and these."""
    columns, count = unit.shape[1], neighbour_count(unit, references)
    near, reach = neighbours(unit, rows, references, count)
    kernel = (1 - (reach / (1.01 * reach[:, -1:] + 1e-300)) ** 3) ** 3
    offset = unit[near] - unit[rows][:, None, :]
    design = np.concatenate([np.ones((len(rows), count, 1)), offset], axis=2)
    weighted = design * kernel[:, :, None]
    wanted = values[near]
    # Rounds of reweighting: one misprint must not spoil all its neighbours' fits.
    robust = np.ones_like(wanted)
    fitted = np.zeros(len(rows))
    for _ in range(rounds):
        gram = (weighted * robust[:, :, None]).transpose(0, 2, 1) @ design
        gram += (
            1e-9 * np.eye(columns + 1) * np.maximum(np.trace(gram, axis1=1, axis2=2), 1e-12)[:, None, None]
        )
        right = (weighted * robust[:, :, None]).transpose(0, 2, 1) @ wanted[:, :, None]
        solved = np.linalg.solve(gram, right)
        fitted = solved[:, 0, 0]
        residual = np.abs(wanted - (design @ solved)[:, :, 0])
        usual = np.median(residual, axis=1, keepdims=True)
        robust = 1.0 / (1.0 + np.square(residual / (4 * usual + 1e-12)))
    return fitted, near
