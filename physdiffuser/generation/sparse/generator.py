"""The sparse generator: dictionaries of growing size, on each frame of the law and each outer inverse."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from physdiffuser.expressions import ONE, Expression, Number
from physdiffuser.expressions.tree import add, div, mul
from physdiffuser.generation.enumeration.factors import Frame
from physdiffuser.generation.enumeration.framing import first_look, later_frames
from physdiffuser.generation.enumeration.matches import near_simple
from physdiffuser.generation.enumeration.outer import INVERSE, ROOT, SINGLE, SQUARE, Chain
from physdiffuser.generation.sparse.dictionary import Dictionary, Rung, ladder, make
from physdiffuser.generation.sparse.logarithmic import logarithmic
from physdiffuser.generation.sparse.regression import exact_span, forward, least_squares, scaled
from physdiffuser.generation.work import MeteredGenerator, Work
from physdiffuser.search.archive import ParetoArchive
from physdiffuser.search.candidate import Candidate
from physdiffuser.search.precision import decimal_precision
from physdiffuser.search.problem import Problem

FloatArray = npt.NDArray[np.float64]

CHAINS = frozenset(
    {"took the reciprocal", "squared the target", "took the logarithm", "took the square root"}
)
# 1/y**2 and the like are polynomials often enough: y = k/sqrt(a**2 + b**2 - 2*a*b*cos(t)).
DOUBLE_CHAINS = (Chain((SQUARE, INVERSE)), Chain((ROOT, INVERSE)))
# Exact spans need clearly more rows than columns, and time that grows with the square of the columns.
SPAN_SHARE = 0.5
# Long dictionaries are searched on so many rows; coefficients are then fitted on all.
SCREEN_ROWS = 300
MOST_SPAN = 450
EXACT_LOSS = 1e-18
# Rungs of the ladder that are cheap.
FIRST_RUNGS = 3
MOST_FEATURES = 12
# Features up to this, and down to its negative, may be angles in radians.
FULL_TURN = 2 * np.pi + 0.1


class SparseGenerator(MeteredGenerator):
    """Sums of library terms, and ratios of such sums."""

    name = "sparse"

    def run(self, problem: Problem, archive: ParetoArchive) -> Work:
        """Candidates stage by stage; see `MeteredGenerator`."""
        if problem.columns == 0:
            return
        tolerance = 30 * decimal_precision(problem.target)
        look = first_look(problem, archive)
        suited = [frame for frame in look.frames if 0 < len(frame.features) <= MOST_FEATURES]
        first = _with_rungs(problem, suited)
        yield from _logarithmic(problem, first)
        if look.noisy:
            yield from self._rungs(problem, archive, first, slice(FIRST_RUNGS), tolerance)
        else:
            # Exact spans are quick and decisive on clean data.
            yield from self._rungs(problem, archive, first, slice(None), tolerance, exact=True)
        later = _with_rungs(problem, (yield from later_frames(problem, archive)))
        yield from _logarithmic(problem, later)
        if not look.noisy:
            yield from self._rungs(problem, archive, later, slice(None), tolerance, exact=True)
            yield from self._rungs(problem, archive, first, slice(FIRST_RUNGS), tolerance)
        yield from self._rungs(problem, archive, later, slice(FIRST_RUNGS), tolerance)
        yield from self._rungs(problem, archive, [*first, *later], slice(FIRST_RUNGS, None), tolerance)

    def _rungs(
        self,
        problem: Problem,
        archive: ParetoArchive,
        some: list[tuple[Frame, list[Rung]]],
        positions: slice,
        tolerance: float,
        exact: bool = False,
    ) -> Work:
        """The dictionaries at some positions of the ladders, for sums that leave little over, or nothing."""
        longest = max((len(rungs) for _, rungs in some), default=0)
        for position in range(longest)[positions]:
            for frame, rungs in some:
                if archive.best_loss < EXACT_LOSS:
                    return
                if position < len(rungs):
                    yield from self._rung(problem, frame, rungs[position], exact, tolerance)

    def _rung(self, problem: Problem, frame: Frame, rung: Rung, exact: bool, tolerance: float) -> Work:
        terms = rung.terms()
        yield 2e-5 * len(terms)
        if not exact or len(terms) <= min(MOST_SPAN, SPAN_SHARE * problem.rows):
            dictionary = make(terms, problem.inputs)
            yield 2e-5 * len(terms)
            if exact:
                yield from self._spans(problem, frame, rung.name, dictionary, tolerance)
            else:
                yield from self._sums(problem, frame, rung.name, dictionary)
        if rung.ratio is not None:
            yield from self._ratios(problem, frame, make(rung.ratio(), problem.inputs), exact, tolerance)

    def _spans(
        self, problem: Problem, frame: Frame, name: str, dictionary: Dictionary, tolerance: float
    ) -> Work:
        """Sums that leave nothing over."""
        for chain, target, weights in undone(problem, frame):
            design, wanted = scaled(dictionary.values, target, weights)
            columns = exact_span(design, wanted, tolerance)
            if columns is not None:
                candidate = _sum(problem, frame, chain, name, dictionary, columns, target, weights)
                if candidate is not None:
                    yield candidate
            yield 0.001 + 3e-11 * design.size * design.shape[1]

    def _sums(self, problem: Problem, frame: Frame, name: str, dictionary: Dictionary) -> Work:
        """Sums of few terms that leave little over."""
        for chain, target, weights in undone(problem, frame):
            design, wanted = scaled(dictionary.values, target, weights)
            some = slice(None, SCREEN_ROWS if len(dictionary) > 500 else None)
            for supports in forward(design[some], wanted[some]):
                for support in supports:
                    candidate = _sum(
                        problem, frame, chain, name, dictionary, support.columns, target, weights
                    )
                    if candidate is not None:
                        yield candidate
                yield 0.002 + 1e-8 * dictionary.values.size

    def _ratios(
        self, problem: Problem, frame: Frame, dictionary: Dictionary, exact: bool, tolerance: float
    ) -> Work:
        """`y = P/Q` with sums P and Q of terms: `y = P - y*(Q - 1)` is linear in the coefficients."""
        count = len(dictionary)
        for chain, target, weights in undone(problem, frame, frozenset({"squared the target"})):
            # Each denominator in turn is normalised by one of its terms: the constant may be missing.
            for pivot in range(min(count, 7)):
                others = [column for column in range(count) if column != pivot]
                values = np.column_stack([dictionary.values, -target[:, None] * dictionary.values[:, others]])
                goal = target * dictionary.values[:, pivot]
                design, wanted = scaled(values, goal, weights)
                if values.shape[1] * 2 > problem.rows:
                    continue
                span = exact_span(design, wanted, tolerance) if exact else None
                supports = [span] if span is not None else []
                if not exact and pivot == 0:
                    supports = [one.columns for size in forward(design, wanted, 6) for one in size]
                for columns in supports:
                    candidate = _ratio(
                        problem, frame, chain, dictionary, others, pivot, columns, values, goal, weights
                    )
                    if candidate is not None:
                        yield candidate
                yield 0.003


def _with_rungs(problem: Problem, frames: Iterable[Frame]) -> list[tuple[Frame, list[Rung]]]:
    return [(frame, _rungs_of(problem, frame)) for frame in frames]


def _logarithmic(problem: Problem, some: Iterable[tuple[Frame, list[Rung]]]) -> Work:
    """Products of powers and exponentials, where nothing is factored out."""
    for frame, _ in some:
        if frame.factor() is None:
            yield from logarithmic(problem, frame)


def _rungs_of(problem: Problem, frame: Frame) -> list[Rung]:
    """The dictionaries made of a frame's features."""
    largest = np.abs(frame.values(problem.inputs)).max(axis=0)
    angles = np.flatnonzero(largest < FULL_TURN).tolist()
    return list(ladder(frame, problem.operators, problem.rows, angles))


def undone(
    problem: Problem, frame: Frame, names: frozenset[str] = CHAINS
) -> Iterator[tuple[Chain, FloatArray, FloatArray]]:
    """The target, factors divided out, under each outer inverse, with row weights."""
    product = frame.product(problem.inputs)
    divided = problem.target / product
    if not np.isfinite(divided).all():
        return
    base = np.square(product / np.abs(product).max())
    if problem.weights is not None:
        base = base * problem.weights
    for chain in (*SINGLE, *DOUBLE_CHAINS):
        if not all(step.name in names and step.needs <= problem.operators for step in chain.steps):
            continue
        result = chain.undo(divided)
        if result is not None:
            yield chain, result[0], result[1] * base


def combination(coefficients: FloatArray, terms: list[Expression]) -> Expression | None:
    """`c1*t1 + c2*t2 + ...`, without the terms of coefficient 0."""
    result: Expression | None = None
    for coefficient, term in zip(coefficients, terms, strict=True):
        if coefficient == 0:
            continue
        number = near_simple(float(coefficient), 1e-10)
        if term == ONE:
            product: Expression = number
        else:
            product = term if number == Number(1) else mul(number, term)
        result = product if result is None else add(result, product)
    return result


def _sum(
    problem: Problem,
    frame: Frame,
    chain: Chain,
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
    sentence = f"sparse regression on {name} found {_terms(len(columns))}"
    return _candidate(frame, chain, inner, sentence)


def _ratio(
    problem: Problem,
    frame: Frame,
    chain: Chain,
    dictionary: Dictionary,
    others: list[int],
    pivot: int,
    columns: tuple[int, ...],
    values: FloatArray,
    goal: FloatArray,
    weights: FloatArray,
) -> Candidate | None:
    coefficients = least_squares(values[:, columns], goal, weights)
    if coefficients is None:
        return None
    count = len(dictionary)
    above = [
        (c, dictionary.terms[column])
        for c, column in zip(coefficients, columns, strict=True)
        if column < count
    ]
    below = [
        (c, dictionary.terms[others[column - count]])
        for c, column in zip(coefficients, columns, strict=True)
        if column >= count
    ]
    if not above or not below:
        return None
    numerator = combination(np.array([c for c, _ in above]), [term for _, term in above])
    denominator = combination(
        np.array([1.0, *(c for c, _ in below)]), [dictionary.terms[pivot], *(term for _, term in below)]
    )
    if numerator is None or denominator is None:
        return None
    sentence = f"sparse regression found {_terms(len(above))} over {_terms(len(below) + 1)}"
    return _candidate(frame, chain, div(numerator, denominator), sentence)


def _terms(count: int) -> str:
    return "one term" if count == 1 else f"a sum of {count} terms"


def _candidate(frame: Frame, chain: Chain, inner: Expression, sentence: str) -> Candidate:
    expression = chain.redo(inner)
    factor = frame.factor()
    if factor is not None:
        expression = mul(factor, expression)
    return Candidate(expression, "sparse", (*chain.sentences(), sentence))
