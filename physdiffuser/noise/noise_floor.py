"""Whether a table is noisy, decided before any law is known.

A smooth function is fitted better and better by polynomials of growing degree; noise is not. Where the error
of predicting rows left out of the fit stops falling, and the errors of neighbouring rows are independent, the
rest is noise, and searches that want exact data have nothing to find. Errors may grow with the value, or have
heavy tails.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from physdiffuser.arrays import FloatArray, IndexArray
from physdiffuser.core.analysis import Level
from physdiffuser.core.problem import Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.selection.description_length import residual_is_noise


@dataclass(frozen=True)
class NoiseFloorPolicy:
    """How far polynomials are followed to find the noise floor.

    Set on development laws with and without noise (docs/methods/reduction.md).
    """

    rows: int = 1_000
    """Rows that are fitted at most."""
    max_degree: int = 14
    max_terms: int = 240
    max_share: float = 1 / 3
    max_features: int = 6
    """Degrees and terms at most; terms at most this share of the rows; features at most."""
    flat: float = 0.85
    """Two more degrees that leave the error above this share of what it was show that it has stopped
    falling."""
    floor: float = 1.25
    """A floor is reached by two degrees at least, that far above the minimum."""
    as_well: float = 1.05
    """Polynomials whose errors are this much above the minimum do as well."""
    as_good: float = 1.1
    """Reductions whose errors are this much above the best one's have missed something."""
    max_floor: float = 0.5
    min_floor: float = 1e-6
    """Share of the deviation that the errors may be: a polynomial that explains less has missed the law, and
    one that explains more has found it."""
    decade: float = 10.0
    """Values whose largest is more than so many times the smallest are taken by their logarithm."""


POLICY = NoiseFloorPolicy()


def levels(problem: Problem, reductions: Iterable[Reduction]) -> list[Level]:
    """How well the features of each reduction predict rows left out; unsuitable reductions are omitted.

    On some of the rows. Reductions without features, with many, or with values that are not finite are
    unsuitable.
    """
    rows = _some_rows(problem)
    inputs, target = problem.inputs[rows], problem.target[rows]
    found: list[Level] = []
    with np.errstate(all="ignore"):
        for reduction in reductions:
            if not 1 <= len(reduction.features) <= POLICY.max_features:
                continue
            product = reduction.product(inputs)
            units = [_scaled(value) for value in reduction.values(inputs).T]
            if not all(np.isfinite(unit).all() for unit in units) or not np.isfinite(target / product).all():
                continue
            errors = list(_left_out(units, product / np.abs(product).max(), target))
            if not errors:
                continue
            sizes = np.array([float(np.std(left)) for left, _ in errors]) / float(np.std(target))
            least = float(sizes.min())
            well = tuple(
                left for (_, left), size in zip(errors, sizes, strict=True) if size <= POLICY.as_well * least
            )
            if np.isfinite(least):
                found.append(Level(reduction, least, _fell(sizes), well))
    return found


def is_noisy(problem: Problem, known: Iterable[Level]) -> bool:
    """Whether the errors of polynomials in the features of the best reduction show a floor of noise."""
    best = min(known, key=lambda level: level.error, default=None)
    if best is None or best.falling or not POLICY.min_floor < best.error < POLICY.max_floor:
        return False
    # A column that the reduction leaves out, and that matters, is structure and not noise, and so are the
    # errors in corners that polynomials cannot follow. The fewest terms come first: each more is fitted to
    # noise where rows are sparse. Where a few large errors rule the sizes, they may be too few.
    inputs = problem.inputs[_some_rows(problem)]
    return any(residual_is_noise(inputs, left) for left in best.left)


def best_of_each_size(some: Iterable[Reduction], known: list[Level]) -> list[Reduction]:
    """Those of some reductions that predict rows hardly worse than the best one does.

    The best of each number of features, the fewest first: with more of them nothing is missed.
    """
    least = min(level.error for level in known)
    wanted = set(some)
    best: dict[int, Level] = {}
    for level in known:
        size = len(level.reduction.features)
        if level.reduction in wanted and level.error < POLICY.as_good * least:
            best[size] = min(level, best.get(size, level), key=lambda one: one.error)
    return [best[size].reduction for size in sorted(best)]


def as_good(known: list[Level]) -> set[Reduction]:
    """The reductions that predict rows hardly worse than the best one does."""
    limit = POLICY.as_good * min(level.error for level in known)
    return {level.reduction for level in known if level.error < limit}


def best_first(reductions: list[Reduction], known: list[Level]) -> list[Reduction]:
    """The reductions, with those that predict rows hardly worse than the best one does first."""
    enough = as_good(known)
    return sorted(reductions, key=lambda reduction: reduction not in enough)


def _some_rows(problem: Problem) -> IndexArray:
    """The rows that polynomials are fitted to."""
    return problem.generator(7).permutation(problem.rows)[: POLICY.rows]


def _fell(sizes: FloatArray) -> bool:
    """Whether the error was still falling with the degree when the terms ran out, or was never flat."""
    floor = int(np.count_nonzero(sizes < POLICY.floor * sizes.min()))
    return len(sizes) < 3 or floor < 2 or bool(sizes[-1] < POLICY.flat * sizes[-3])


def _scaled(values: FloatArray) -> FloatArray:
    """Values, or the logarithms of those that span decades, from -1 to 1."""
    if values.min() > 0 and values.max() > POLICY.decade * values.min():
        values = np.log(values)
    low, high = float(values.min()), float(values.max())
    return 2 * (values - low) / (high - low) - 1


def _left_out(
    units: list[FloatArray], product: FloatArray, target: FloatArray
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Errors of each row under polynomials, times a factor, fitted to the others, by total degree from 1 on.

    Each with the same errors over what they spread by if all is noise of one size, so that rows far from all
    others, which are predicted badly, do not pass for corners.
    """
    degrees = _degrees(len(units), min(POLICY.max_terms, int(POLICY.max_share * len(target))))
    totals = degrees.sum(axis=1)
    if totals[-1] < 1:
        return
    tables = [np.polynomial.chebyshev.chebvander(unit, int(totals[-1])) for unit in units]
    # Noise is in the target, not in what is left of it when a factor is divided out.
    design = np.repeat(product[:, None], len(degrees), axis=1)
    for table, degree in zip(tables, degrees.T, strict=True):
        design *= table[:, degree]
    # The first columns of one orthogonal basis span the polynomials of each lower degree.
    basis, _ = np.linalg.qr(design)
    coefficients = basis.T @ target
    for total in range(1, int(totals[-1]) + 1):
        count = int(np.searchsorted(totals, total, side="right"))
        some = basis[:, :count]
        leverage = np.minimum(np.square(some).sum(axis=1), 0.99)
        left = target - some @ coefficients[:count]
        yield left / (1 - leverage), left / np.sqrt(1 - leverage)


def _degrees(features: int, terms: int) -> IndexArray:
    """Exponents of the terms of a polynomial, by total degree, shape (terms, features)."""
    found = [np.zeros((1, features), np.intp)]
    for _ in range(POLICY.max_degree):
        longer = _next(found[-1])
        if sum(map(len, found)) + len(longer) > terms:
            break
        found.append(longer)
    return np.concatenate(found)


def _next(rows: IndexArray) -> IndexArray:
    """All exponents of one total degree more."""
    units = np.eye(rows.shape[1], dtype=np.intp)
    made: IndexArray = np.unique((rows[:, None] + units).reshape(-1, rows.shape[1]), axis=0)
    return made
