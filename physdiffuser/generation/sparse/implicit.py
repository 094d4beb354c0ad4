"""Laws that are linear in their coefficients once they are multiplied out: ratios, and roots of quadratics.

`y = P/Q` says `y*Q = P`, and `y = B/2 + sqrt(B**2/4 + A)` says `y**2 = B*y + A`, with sums P, Q, A and B of
terms of the columns. Both are found as sums are, among the terms and their products with the target. Roots
of quadratics are levels of two coupled states, principal stresses, concentrations in equilibrium.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.candidate import Candidate
from physdiffuser.core.problem import Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.core.work import Work
from physdiffuser.expressions import ONE, Expression, Number, complexity
from physdiffuser.expressions.simplification.textbook.arrange import arrange
from physdiffuser.expressions.tree import add, call, div, mul, power, sub
from physdiffuser.generation.sparse.dictionary import Dictionary
from physdiffuser.generation.sparse.regression import (
    enough_rows,
    exact_span,
    forward,
    least_squares,
    scaled,
)
from physdiffuser.generation.sparse.sums import candidate_of, combination, counted
from physdiffuser.generation.sparse.targets import transformed
from physdiffuser.transforms.output_transforms import SQUARE
from physdiffuser.transforms.transform import OutputTransform


@dataclass(frozen=True)
class ImplicitPolicy:
    """Which linear relations between products with the target are tried.

    Set on development laws (docs/methods/generators.md).
    """

    pivots: int = 7
    few_terms: int = 6
    """Terms by which a relation is normalised in turn, and terms of one that is not exact."""
    max_chosen: int = 60
    """Products with the target are nearly equal to others: in noise few can be distinguished."""
    digits_lost: float = 100.0
    """They lose digits as well, by so much: a relation that nearly holds is refused later, by the law it
    gives."""
    one_sign: float = 0.98
    """Share of the rows that a root of one sign must hold for."""


POLICY = ImplicitPolicy()


# The target as it is and its square: a law may be the root of a ratio.
SQUARED = (OutputTransform(()), OutputTransform((SQUARE,)))


def ratios(
    problem: Problem, reduction: Reduction, dictionary: Dictionary, exact: bool, tolerance: float
) -> Work:
    """Ratios of sums of terms: `y = P - y*(Q - 1)` is linear in the coefficients."""
    count = len(dictionary)
    for transform, target, weights in transformed(problem, reduction, SQUARED):
        # Each denominator in turn is normalised by one of its terms: the constant may be missing.
        for pivot in range(min(count, POLICY.pivots)):
            others = [column for column in range(count) if column != pivot]
            values = np.column_stack([dictionary.values, -target[:, None] * dictionary.values[:, others]])
            goal = target * dictionary.values[:, pivot]
            if not enough_rows(values.shape[1], problem.rows, exact):
                continue
            for columns in _supports(values, goal, weights, exact, tolerance, pivot):
                coefficients = least_squares(values[:, columns], goal, weights)
                if coefficients is None:
                    continue
                above, below = _parted(columns, coefficients, count)
                denominator = [(1.0, pivot), *((c, others[column]) for c, column in below)]
                if above and below:
                    yield from _ratio(reduction, transform, dictionary, above, denominator)
            yield 0.003


def quadratics(
    problem: Problem,
    reduction: Reduction,
    plain: Dictionary,
    linear: Dictionary,
    exact: bool,
    tolerance: float,
) -> Work:
    """Roots of `R*y**2 = B*y + A`, where R is 1 or one of the features."""
    if not {"add", "sub", "sqrt", "pow"} <= problem.operators:
        return
    for transform, target, weights in transformed(problem, reduction, SQUARED[:1]):
        values = np.column_stack([plain.values, target[:, None] * linear.values])
        if not (
            enough_rows(values.shape[1], problem.rows, exact)
            and (exact or values.shape[1] <= POLICY.max_chosen)
        ):
            continue
        leading: list[tuple[Expression, FloatArray]] = [(ONE, np.ones(problem.rows))]
        if exact:
            features = reduction.values(problem.inputs).T
            leading += list(zip(reduction.features, features, strict=True))
        for pivot, (first, factor) in enumerate(leading):
            goal = factor * np.square(target)
            for columns in _supports(values, goal, weights, exact, POLICY.digits_lost * tolerance, pivot):
                coefficients = least_squares(values[:, columns], goal, weights)
                if coefficients is None:
                    continue
                alone, with_target = _parted(columns, coefficients, len(plain))
                if not alone or not with_target:
                    continue
                halves = np.array([c / 2 for c, _ in with_target])
                half = linear.values[:, [place for _, place in with_target]] @ halves
                larger = float(np.mean(factor * target > half))
                if max(larger, 1 - larger) >= POLICY.one_sign:
                    sums = (plain, alone), (linear, with_target)
                    for found in _root(reduction, transform, first, *sums, larger > 0.5):
                        yield _shorter(problem, found)
            yield 0.002


def _shorter(problem: Problem, found: Candidate) -> Candidate:
    """With the square completed where the formula is too long to be looked at: most of it may cancel."""
    if complexity(found.expression) <= problem.max_complexity:
        return found
    return replace(found, expression=arrange(found.expression, positive=problem.positive))


_Weighted = list[tuple[float, int]]


def _supports(
    values: FloatArray, goal: FloatArray, weights: FloatArray, exact: bool, tolerance: float, pivot: int
) -> list[tuple[int, ...]]:
    """Columns that fit exactly, or, for the first pivot, sets of few with small residuals."""
    design, wanted = scaled(values, goal, weights)
    if exact:
        span = exact_span(design, wanted, tolerance)
        return [] if span is None else [span]
    return (
        [] if pivot else [one.columns for size in forward(design, wanted, POLICY.few_terms) for one in size]
    )


def _parted(columns: Sequence[int], coefficients: FloatArray, count: int) -> tuple[_Weighted, _Weighted]:
    """Coefficients and places of the terms alone, the first `count` columns, and of those with the target."""
    pairs = [(float(c), column) for c, column in zip(coefficients, columns, strict=True)]
    return (
        [pair for pair in pairs if pair[1] < count],
        [(c, column - count) for c, column in pairs if column >= count],
    )


def _sum_of(dictionary: Dictionary, some: _Weighted) -> Expression | None:
    return combination(np.array([c for c, _ in some]), [dictionary.terms[place] for _, place in some])


def _ratio(
    reduction: Reduction,
    transform: OutputTransform,
    dictionary: Dictionary,
    above: _Weighted,
    below: _Weighted,
) -> list[Candidate]:
    numerator, denominator = _sum_of(dictionary, above), _sum_of(dictionary, below)
    if numerator is None or denominator is None:
        return []
    sentence = f"sparse regression found {counted(len(above))} over {counted(len(below))}"
    return [candidate_of(reduction, transform, div(numerator, denominator), sentence)]


def _root(
    reduction: Reduction,
    transform: OutputTransform,
    first: Expression,
    plain: tuple[Dictionary, _Weighted],
    linear: tuple[Dictionary, _Weighted],
    larger: bool,
) -> list[Candidate]:
    rest = _sum_of(*plain)
    half = _sum_of(linear[0], [(c / 2, place) for c, place in linear[1]])
    if rest is None or half is None:
        return []
    root = call("sqrt", add(power(half, Number(2)), rest if first == ONE else mul(first, rest)))
    inner = add(half, root) if larger else sub(half, root)
    sentence = f"found a quadratic equation of {counted(len(plain[1]) + len(linear[1]))} for the target"
    return [candidate_of(reduction, transform, inner if first == ONE else div(inner, first), sentence)]
