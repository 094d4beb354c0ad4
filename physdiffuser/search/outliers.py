"""Gross outliers in small tables: rows that a law contradicts while it describes all others.

With few rows, neighbouring rows do not show which row is wrong. A law does: ten rows on a line and one row
far off it are described more briefly by the line and the value of the one row than by any formula for all
rows. Two descriptions are compared (see `physdiffuser.selection.description_length`):

* a formula with all rows around it;
* a formula with n - k rows around it, and k outliers. Which rows these are takes log(n choose k) nats; each
  value is written in a Cauchy code whose width is the spread of the target.

Both kinds are worked out for the formulas that the search has found and for the usual laws
(`physdiffuser.functions.standard_forms`), fitted by least trimmed squares: outliers are chosen from the
residuals that deleting rows would leave, the law is fitted to the other rows, and the rows farthest from it
are the next choice (Rousseeuw and Van Driessen, *Data Mining and Knowledge Discovery* 12, 2006).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from physdiffuser.arrays import FloatArray, IndexArray
from physdiffuser.core.candidate import Candidate
from physdiffuser.core.generator import Generator
from physdiffuser.core.problem import Problem
from physdiffuser.expressions import Expression, Number, evaluate
from physdiffuser.expressions.tree import fitted_constants, free_constants
from physdiffuser.fitting import fit_constants, refit
from physdiffuser.fitting.batched.evaluation_tape import EvaluationTape
from physdiffuser.fitting.losses import relative_loss, root_mean_square
from physdiffuser.fitting.varpro import linear_parameters
from physdiffuser.functions.standard_fits import ITERATIONS, STARTS
from physdiffuser.noise.outlier_policy import POLICY
from physdiffuser.search.archive import ParetoArchive
from physdiffuser.search.loop import SearchLoop, SearchResult
from physdiffuser.selection.description_length import DescriptionLength

# Logarithm of the density of a standard normal variable, to which lengths of residuals are relative.
_NORMAL = 0.5 * math.log(2 * math.pi * math.e)


@dataclass(frozen=True)
class Outliers:
    """Rows that are outliers, and the law that describes the others.

    Attributes
    ----------
    rows
        Their positions, sorted.
    law
        Fitted to all other rows.
    gain
        Nats by which this description is shorter than the best one of all rows.
    """

    rows: tuple[int, ...]
    law: Expression
    gain: float


@dataclass(frozen=True)
class _Fit:
    """A law fitted to all rows but some."""

    law: Expression
    off: IndexArray
    length: float


class OutlierFinder:
    """Looks for outliers in a small table, again and again while a search goes on.

    Parameters
    ----------
    description_length
        Of the problem, with the loss that rounding of the target alone causes.
    stop
        Whether there is no time for usual laws: then only the laws that the search has found are asked.
    """

    def __init__(
        self,
        problem: Problem,
        archive: ParetoArchive,
        description_length: DescriptionLength,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._archive, self._stop = archive, stop
        self._lengths = _ConditionalDescriptionLength(problem, description_length)
        self._usual: list[_Fit] | None = None
        self._shortest = math.inf

    def find(self) -> Outliers | None:
        """The outliers, None where there are none."""
        lengths, archive = self._lengths, self._archive
        rows = lengths.problem.rows
        if not POLICY.min_rows <= rows <= POLICY.max_rows:
            return None
        if archive.best_loss <= lengths.description_length.floor:
            return None
        with np.errstate(all="ignore"):
            fits = [*self._fits(_found_laws(lengths.problem, archive)), *self._of_usual_laws()]
            shortest = self._shortest
            if not fits or not min(fit.length for fit in fits) < shortest - POLICY.margin:
                return None
            fits.sort(key=lambda fit: fit.length)
            fits += [
                fit
                for off in _suspects(fits)
                if not self._stop()
                for fit in _without(lengths, archive, off, self._stop)
            ]
        best = min(fits, key=lambda fit: fit.length)
        return Outliers(tuple(sorted(int(row) for row in best.off)), best.law, shortest - best.length)

    def _of_usual_laws(self) -> list[_Fit]:
        # What the search finds later only raises the bar for these.
        if self._usual is None:
            self._usual = self._fits(list(_usual_laws(self._lengths.problem, self._archive, self._stop)))
        return self._usual

    def _fits(self, laws: Sequence[Expression]) -> list[_Fit]:
        """Fits with outliers; the shortest description without is kept."""
        lengths = [self._lengths.of_all(law) for law in laws]
        self._shortest = min([self._shortest, *lengths])
        return [fit for law in laws for fit in self._lengths.trimmed(law, self._shortest + POLICY.slack)]


def _found_laws(problem: Problem, archive: ParetoArchive) -> list[Expression]:
    """The best laws of the search, fitted to all rows by least squares."""
    found = sorted({*archive.front(), *archive.near()}, key=archive.length)[: POLICY.max_laws]
    return [
        refit(entry.candidate.expression, problem.inputs, problem.target, weights=problem.weights).expression
        for entry in found
    ]


def _usual_laws(problem: Problem, archive: ParetoArchive, stop: Callable[[], bool]) -> Iterator[Expression]:
    """The usual laws, fitted to all rows with either loss."""
    for fit in () if stop() else archive.analysis.standard_fits(problem):
        if stop():
            return
        yield fit.expression
        if len(linear_parameters(fit.skeleton)) < len(fit.parameters):
            # Linearised at a fit that outliers have spoiled, another law is a poor guide to them.
            yield fit_constants(
                fit.skeleton,
                problem.inputs,
                problem.target,
                weights=problem.weights,
                loss="robust",
                initial=fit.parameters,
                starts=2,
                iterations=12,
            ).expression


def _suspects(fits: list[_Fit]) -> list[tuple[int, ...]]:
    """The sets of outliers of the best fits, and each without one of them.

    A law that all rows do not lead to may be the best one of the other rows, and may have fewer outliers.
    """
    best = dict.fromkeys(tuple(sorted(int(row) for row in fit.off)) for fit in fits)
    suspects: dict[tuple[int, ...], None] = {}
    for off in list(best)[: POLICY.max_sets]:
        fewer = [off[:place] + off[place + 1 :] for place in range(len(off))]
        suspects |= dict.fromkeys([off, *filter(None, fewer)])
    return list(suspects)


def _without(
    lengths: _ConditionalDescriptionLength,
    archive: ParetoArchive,
    off: tuple[int, ...],
    stop: Callable[[], bool],
) -> Iterator[_Fit]:
    """Fits of the usual laws to the rows that are not off."""
    problem = lengths.problem
    kept = np.delete(np.arange(problem.rows), off)
    weights = None if problem.weights is None else problem.weights[kept]
    for known in archive.analysis.standard_fits(problem):
        if stop():
            return
        if problem.rows - len(off) - len(known.parameters) < POLICY.min_freedom:
            continue
        law = fit_constants(
            known.skeleton,
            problem.inputs[kept],
            problem.target[kept],
            weights=weights,
            starts=STARTS,
            iterations=ITERATIONS,
        ).expression
        fit = lengths.concentrated(law, np.array(off))
        if fit is not None:
            yield fit


def search_with_outliers(
    loop: SearchLoop,
    rebuild: Callable[[], dict[str, Generator]],
    steps: int | None,
    initial: Sequence[Candidate],
    result: SearchResult | None = None,
) -> tuple[SearchLoop, SearchResult, tuple[int, ...]]:
    """Search all rows, and where some of them turn out to be outliers, the others anew.

    Whether there are outliers is decided when the search is over, and before that when half of the steps or
    of the time is spent: a search of rows with outliers seldom ends earlier.

    Parameters
    ----------
    loop
        On all rows of the table.
    rebuild
        Makes new instances of the generators.
    steps, initial
        As for `SearchLoop.run`; both searches share the steps and the time.
    result
        Of the loop, if it has already settled.

    Returns
    -------
    The loop that was run last, what it left behind, and the rows that were left out.
    """
    problem = loop.problem
    if problem.full_problem is not None or not POLICY.min_rows <= problem.rows <= POLICY.max_rows:
        return loop, result or loop.run(steps, math.inf, initial), ()
    now = loop.clock()
    halfway = now + (loop.limit.search_until - now) / 2
    half = math.inf if steps is None else steps / 2
    if result is None:
        result = loop.run(steps, math.inf, initial, lambda: loop.spent >= half or loop.clock() >= halfway)
    finder = OutlierFinder(problem, loop.archive, loop.description_length, loop.must_end)
    found = finder.find()
    if found is None and not result.settled:
        result = loop.run(steps, math.inf)
        found = finder.find()
    if found is None:
        return loop, result, ()
    kept = np.delete(np.arange(problem.rows), found.rows)
    weights = None if problem.weights is None else problem.weights[kept] / problem.weights[kept].mean()
    rest = replace(
        problem, inputs=problem.inputs[kept], target=problem.target[kept], weights=weights, loss="squared"
    )
    again = loop.restarted(rest, rebuild())
    mean = Number(float(np.average(rest.target, weights=weights)))
    known = [
        Candidate(mean, "constant"),
        Candidate(found.law, "enumeration", ("fitted to all rows but those far from it",)),
        *(entry.candidate for entry in loop.archive.front()),
    ]
    left = None if steps is None else max(1, steps - loop.spent)
    return again, again.run(left, math.inf, known), found.rows


class _ConditionalDescriptionLength:
    """Lengths of descriptions with and without outliers."""

    def __init__(self, problem: Problem, description_length: DescriptionLength) -> None:
        self.problem, self.description_length = problem, description_length
        weights = problem.weights
        self.root = np.ones(problem.rows) if weights is None else np.sqrt(weights / weights.mean())
        centre = np.average(problem.target, weights=weights)
        self.spread = root_mean_square(self.root * (problem.target - centre))
        self.most = min(POLICY.max_outliers, int(POLICY.max_share * problem.rows))

    def of_all(self, law: Expression) -> float:
        """Length with all rows around the law."""
        problem = self.problem
        loss = relative_loss(evaluate(law, problem.inputs), problem.target, problem.weights)
        return self.description_length.length(law, loss)

    def _left(self, form: float, constants: int, residual: FloatArray, off: IndexArray, loss: float) -> float:
        """Length with the rows `off` as outliers, for a loss of the others.

        `form` is what the law takes to write down, its fitted constants included.
        """
        rows, outliers = self.problem.rows, len(off)
        length = 0.5 * (rows - outliers - constants) * math.log(max(loss, self.description_length.floor))
        values = np.log(np.pi * (1 + np.square(residual[off]))) - _NORMAL
        return form + length + math.log(math.comb(rows, outliers)) + float(values.sum())

    def _form(self, law: Expression) -> tuple[float, int]:
        """Nats to write a law down, and its number of fitted constants."""
        constants = fitted_constants(law)
        return self.description_length.formula_nats(
            law
        ) + constants * self.description_length.constant_nats, constants

    def trimmed(self, law: Expression, limit: float) -> Iterator[_Fit]:
        """Fits of a law to all rows but one, two, ... whose residuals are gross."""
        linearised = self._linearised(law)
        if linearised is None:
            return
        residual, kept = linearised
        form, constants = self._form(law)
        rows = self.problem.rows
        for outliers in range(1, min(self.most, rows - constants - POLICY.min_freedom) + 1):
            off = _best_deletions(residual, kept, outliers)
            block = kept[np.ix_(off, off)] + 1e-12 * np.eye(outliers)
            squares = float(residual @ residual - residual[off] @ np.linalg.solve(block, residual[off]))
            if self._left(form, constants, residual, off, max(squares, 0.0) / (rows - outliers)) < limit:
                fit = self.concentrated(law, off)
                if fit is not None:
                    yield fit

    def _linearised(self, law: Expression) -> tuple[FloatArray, FloatArray] | None:
        """The smallest residuals of the linearised law, and the projection onto that."""
        problem = self.problem
        skeleton, values = free_constants(law)
        value, slopes = EvaluationTape(skeleton, problem.inputs).value_and_jacobian(np.array(values))
        residual = self.root * (problem.target - value) / self.spread
        slopes = self.root * slopes / self.spread
        if not (np.isfinite(residual).all() and np.isfinite(slopes).all()):
            return None
        kept = np.eye(problem.rows)
        if values:
            unit = slopes / np.maximum(np.abs(slopes).max(axis=1, keepdims=True), 1e-300)
            basis = np.linalg.svd(unit, full_matrices=False)[2]
            kept -= basis.T @ basis
        return kept @ residual, kept

    def concentrated(self, law: Expression, off: IndexArray) -> _Fit | None:
        """The law fitted to the rows that are not off, until these are the rows nearest to it."""
        problem, outliers = self.problem, len(off)
        for _ in range(POLICY.rounds):
            kept = np.delete(np.arange(problem.rows), off)
            weights = None if problem.weights is None else problem.weights[kept]
            law = refit(law, problem.inputs[kept], problem.target[kept], weights=weights).expression
            residual = self.root * (problem.target - evaluate(law, problem.inputs)) / self.spread
            if not np.isfinite(residual).all():
                return None
            farthest = np.sort(np.argsort(np.abs(residual), kind="stable")[problem.rows - outliers :])
            if np.array_equal(farthest, np.sort(off)):
                break
            off = farthest
        else:
            return None
        form, constants = self._form(law)
        freedom = problem.rows - outliers - constants
        squares = float(np.square(residual[kept]).sum())
        if np.abs(residual[off]).min() < POLICY.gross * math.sqrt(squares / max(freedom, 1)):
            return None
        loss = squares / len(kept)
        return _Fit(law, off, self._left(form, constants, residual, off, loss))


def _best_deletions(residual: FloatArray, kept: FloatArray, outliers: int) -> IndexArray:
    """Rows whose deletion lowers the sum of squares most: the best one, the best pair, and one by one more.

    Parameters
    ----------
    residual
        Shape (rows,), of a fit to all rows.
    kept
        Shape (rows, rows): the projection onto the residuals of the fit.
    """
    rows = len(residual)
    own = np.maximum(np.diag(kept), 1e-9)
    if outliers == 1:
        return np.array([int(np.argmax(residual**2 / own))])
    # residual @ inverse @ residual of every two rows.
    determinant = np.maximum(np.outer(own, own) - kept**2, 1e-9)
    square = residual**2
    drop = np.outer(square, own) + np.outer(own, square) - 2 * np.outer(residual, residual) * kept
    drop = np.triu(drop / determinant, 1)
    chosen = [int(place) for place in np.unravel_index(int(np.argmax(drop)), (rows, rows))]
    while len(chosen) < outliers:
        block = np.array(chosen)
        inverse = np.linalg.solve(kept[np.ix_(block, block)] + 1e-12 * np.eye(len(block)), kept[block])
        reduced = residual - inverse.T @ residual[block]
        left = np.maximum(own - np.einsum("ij,ij->j", kept[block], inverse), 1e-9)
        gain = reduced**2 / left
        gain[block] = -1.0
        chosen.append(int(np.argmax(gain)))
    return np.array(chosen, dtype=np.intp)
