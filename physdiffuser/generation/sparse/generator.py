"""The sparse generator: dictionaries of growing size, for each reduction and each output transform."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.archive import Archive
from physdiffuser.core.candidate import Candidate
from physdiffuser.core.problem import Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.core.work import MeteredGenerator, Work
from physdiffuser.generation.sparse.dictionary import Dictionary, Rung, ladder, make
from physdiffuser.generation.sparse.implicit import quadratics, ratios
from physdiffuser.generation.sparse.logarithmic import logarithmic
from physdiffuser.generation.sparse.regression import (
    enough_rows,
    exact_span,
    forward,
    least_squares,
    scaled,
)
from physdiffuser.generation.sparse.sums import candidate_of, combination, counted
from physdiffuser.generation.sparse.targets import EXACT_TRANSFORMS, transformed
from physdiffuser.noise.precision import decimal_precision
from physdiffuser.transforms.transform import OutputTransform


@dataclass(frozen=True)
class SparsePolicy:
    """How long dictionaries are.

    Set on development laws (docs/methods/generators.md).
    """

    screen_rows: int = 300
    """Long dictionaries are searched on so many rows; coefficients are then fitted on all."""
    max_span: int = 450
    """Exact spans take time that grows with the square of the terms: so many at most."""
    first_rungs: int = 3
    """Rungs of the ladder that are cheap."""
    few_features: int = 4
    max_features: int = 12
    """Features of reductions whose ladders are short, and of any."""
    full_turn: float = 2 * np.pi + 0.1
    """Features up to this, and down to its negative, may be angles in radians."""


POLICY = SparsePolicy()


class SparseGenerator(MeteredGenerator):
    """Sums of library terms, ratios of such sums, and roots of quadratics with them."""

    name = "sparse"

    def run(self, problem: Problem, archive: Archive) -> Work:
        """Candidates stage by stage; see `MeteredGenerator`."""
        if problem.columns == 0:
            return
        tolerance = 30 * decimal_precision(problem.target)
        analysis = archive.analysis.first
        suited = [
            reduction
            for reduction in analysis.reductions
            if 0 < len(reduction.features) <= POLICY.max_features
        ]
        first = _with_rungs(problem, suited)
        yield from _logarithmic(problem, first)
        if analysis.noisy:
            yield from self._rungs(problem, archive, first, slice(POLICY.first_rungs), tolerance)
        else:
            # Exact spans are quick and decisive on clean data, but ladders of many features are long.
            small = [item for item in first if len(item[0].features) <= POLICY.few_features]
            large = [item for item in first if len(item[0].features) > POLICY.few_features]
            yield from self._rungs(problem, archive, small, slice(None), tolerance, exact=True)
            yield from self._rungs(problem, archive, large, slice(POLICY.first_rungs), tolerance, exact=True)
        later = _with_rungs(problem, (yield from archive.analysis.later()))
        yield from _logarithmic(problem, later)
        if not analysis.noisy:
            yield from self._rungs(problem, archive, later, slice(None), tolerance, exact=True)
            yield from self._rungs(problem, archive, first, slice(POLICY.first_rungs), tolerance)
            yield from self._rungs(
                problem, archive, large, slice(POLICY.first_rungs, None), tolerance, exact=True
            )
        yield from self._rungs(problem, archive, later, slice(POLICY.first_rungs), tolerance)
        yield from self._rungs(problem, archive, [*first, *later], slice(POLICY.first_rungs, None), tolerance)

    def _rungs(
        self,
        problem: Problem,
        archive: Archive,
        some: list[tuple[Reduction, list[Rung]]],
        positions: slice,
        tolerance: float,
        exact: bool = False,
    ) -> Work:
        """The dictionaries at some positions of the ladders, for sums that leave little over, or nothing."""
        longest = max((len(rungs) for _, rungs in some), default=0)
        for position in range(longest)[positions]:
            for reduction, rungs in some:
                if archive.is_solved:
                    return
                if position < len(rungs):
                    yield from self._rung(problem, reduction, rungs[position], exact, tolerance)

    def _rung(
        self, problem: Problem, reduction: Reduction, rung: Rung, exact: bool, tolerance: float
    ) -> Work:
        terms = rung.terms()
        yield 2e-5 * len(terms)
        if not exact or (len(terms) <= POLICY.max_span and enough_rows(len(terms), problem.rows, exact)):
            dictionary = make(terms, problem.inputs)
            yield 2e-5 * len(terms)
            if exact:
                yield from self._spans(problem, reduction, rung.name, dictionary, tolerance)
            else:
                yield from self._sums(problem, reduction, rung.name, dictionary)
        if rung.ratio is not None:
            yield from ratios(problem, reduction, make(rung.ratio(), problem.inputs), exact, tolerance)
        if rung.quadratic is not None:
            plain, linear = (make(terms_of(), problem.inputs) for terms_of in rung.quadratic)
            yield from quadratics(problem, reduction, plain, linear, exact, tolerance)

    def _spans(
        self, problem: Problem, reduction: Reduction, name: str, dictionary: Dictionary, tolerance: float
    ) -> Work:
        """Sums that fit exactly."""
        for transform, target, weights in transformed(problem, reduction, more=EXACT_TRANSFORMS):
            design, wanted = scaled(dictionary.values, target, weights)
            columns = exact_span(design, wanted, tolerance)
            if columns is not None:
                candidate = _sum(problem, reduction, transform, name, dictionary, columns, target, weights)
                if candidate is not None:
                    yield candidate
            yield 0.001 + 3e-11 * design.size * design.shape[1]

    def _sums(self, problem: Problem, reduction: Reduction, name: str, dictionary: Dictionary) -> Work:
        """Sums of few terms that leave little over."""
        for transform, target, weights in transformed(problem, reduction):
            design, wanted = scaled(dictionary.values, target, weights)
            some = slice(None, POLICY.screen_rows if len(dictionary) > 500 else None)
            for supports in forward(design[some], wanted[some]):
                for support in supports:
                    candidate = _sum(
                        problem, reduction, transform, name, dictionary, support.columns, target, weights
                    )
                    if candidate is not None:
                        yield candidate
                yield 0.002 + 1e-8 * dictionary.values.size


def _with_rungs(problem: Problem, reductions: Iterable[Reduction]) -> list[tuple[Reduction, list[Rung]]]:
    return [(reduction, _rungs_of(problem, reduction)) for reduction in reductions]


def _logarithmic(problem: Problem, some: Iterable[tuple[Reduction, list[Rung]]]) -> Work:
    """Products of powers and exponentials, where nothing is factored out."""
    for reduction, _ in some:
        if reduction.factor() is None:
            yield from logarithmic(problem, reduction)


def _rungs_of(problem: Problem, reduction: Reduction) -> list[Rung]:
    """The dictionaries made of a reduction's features."""
    largest = np.abs(reduction.values(problem.inputs)).max(axis=0)
    angles = np.flatnonzero(largest < POLICY.full_turn).tolist()
    return list(ladder(reduction, problem.operators, problem.rows, angles))


def _sum(
    problem: Problem,
    reduction: Reduction,
    transform: OutputTransform,
    name: str,
    dictionary: Dictionary,
    columns: tuple[int, ...],
    target: FloatArray,
    weights: FloatArray,
) -> Candidate | None:
    coefficients = least_squares(dictionary.values[:, columns], target, weights)
    if coefficients is None:
        return None
    inner = combination(coefficients, [dictionary.terms[column] for column in columns])
    if inner is None:
        return None
    sentence = f"sparse regression on {name} found {counted(len(columns))}"
    return candidate_of(reduction, transform, inner, sentence)
