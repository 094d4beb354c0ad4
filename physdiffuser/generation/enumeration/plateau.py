"""Whether a table is noisy, told before any law is known.

A smooth function is fitted better and better by polynomials of growing degree; noise is not. Where the error
of predicting rows left out of the fit stops falling, and what is left looks like a normal distribution rather
than like the few corners that polynomials fit worst, the rest is noise, and searches that want exact
data have nothing to find.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from physdiffuser.generation.enumeration.factors import Frame
from physdiffuser.search.problem import Problem
from physdiffuser.search.selection import residual_is_noise

FloatArray = npt.NDArray[np.float64]

ROWS = 1_000
# Degrees and terms at most; terms at most this share of the rows; features at most.
DEGREE = 14
TERMS = 240
SHARE = 1 / 3
FEATURES = 6
# Two more degrees that leave the error above this share of what it was show that it has stopped falling.
FLAT = 0.85
# Errors of normal distribution have a kurtosis of 3; polynomials in their worst corners leave ten and more.
KURTOSIS = 4.5
# A polynomial that explains less has not understood the law, and one that explains more has found it.
LARGEST, SMALLEST = 0.5, 1e-6
# Values that span more decades than this are taken by their logarithm.
DECADE = 10.0


def is_noisy(problem: Problem, frames: Iterable[Frame]) -> bool:
    """Whether the errors of polynomials in the most telling frame's features show a floor of noise."""
    rows = problem.generator(7).permutation(problem.rows)[:ROWS]
    inputs, target = problem.inputs[rows], problem.target[rows]
    best: tuple[float, bool, FloatArray] | None = None
    with np.errstate(all="ignore"):
        for frame in frames:
            if not 1 <= len(frame.features) <= FEATURES:
                continue
            product = frame.product(inputs)
            units = [_scaled(value) for value in frame.values(inputs).T]
            divided = target / product
            if not all(np.isfinite(unit).all() for unit in units) or not np.isfinite(divided).all():
                continue
            errors = [left * product for left in _left_out(units, divided)]
            if not errors:
                continue
            sizes = [float(np.std(error)) / float(np.std(target)) for error in errors]
            least = int(np.argmin(sizes))
            if best is None or sizes[least] < best[0]:
                best = sizes[least], _fell(sizes), errors[least]
    if best is None or best[1] or not SMALLEST < best[0] < LARGEST:
        return False
    left = best[2] / np.std(best[2])
    # A column that the frame leaves out, and that matters, is structure and not noise.
    return float(np.mean(left**4)) < KURTOSIS and residual_is_noise(inputs, left)


def _fell(sizes: list[float]) -> bool:
    """Whether the error was still falling with the degree when the terms ran out."""
    return len(sizes) < 3 or sizes[-1] < FLAT * sizes[-3]


def _scaled(values: FloatArray) -> FloatArray:
    """Values, or the logarithms of those that span decades, from -1 to 1."""
    if values.min() > 0 and values.max() > DECADE * values.min():
        values = np.log(values)
    low, high = float(values.min()), float(values.max())
    return 2 * (values - low) / (high - low) - 1


def _left_out(units: list[FloatArray], target: FloatArray) -> Iterator[FloatArray]:
    """Errors of each row under polynomials fitted to the others, by total degree from 1 on."""
    degrees = _degrees(len(units), min(TERMS, int(SHARE * len(target))))
    totals = degrees.sum(axis=1)
    if totals[-1] < 1:
        return
    tables = [np.polynomial.chebyshev.chebvander(unit, int(totals[-1])) for unit in units]
    design = np.ones((len(target), len(degrees)))
    for table, degree in zip(tables, degrees.T, strict=True):
        design *= table[:, degree]
    # The first columns of one orthogonal basis span the polynomials of each lower degree.
    basis, _ = np.linalg.qr(design)
    coefficients = basis.T @ target
    for total in range(1, int(totals[-1]) + 1):
        count = int(np.searchsorted(totals, total, side="right"))
        some = basis[:, :count]
        leverage = np.minimum(np.square(some).sum(axis=1), 0.99)
        yield (target - some @ coefficients[:count]) / (1 - leverage)


def _degrees(features: int, terms: int) -> npt.NDArray[np.intp]:
    """Exponents of the terms of a polynomial, by total degree, shape (terms, features)."""
    found = [np.zeros((1, features), np.intp)]
    for _ in range(DEGREE):
        longer = _next(found[-1])
        if sum(map(len, found)) + len(longer) > terms:
            break
        found.append(longer)
    return np.concatenate(found)


def _next(rows: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """All exponents of one total degree more."""
    units = np.eye(rows.shape[1], dtype=np.intp)
    made: npt.NDArray[np.intp] = np.unique((rows[:, None] + units).reshape(-1, rows.shape[1]), axis=0)
    return made
