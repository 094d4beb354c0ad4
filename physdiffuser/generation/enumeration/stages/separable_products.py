"""Products of one function of each feature: `y = f(u)*g(v)*h(w)`, each function found by itself.

Polynomials stand for the functions at first, and each is fitted with the others held (alternating least
squares). Where their product predicts the rows as well as a polynomial in all features does, the law is such
a product. Each function then has a table of its own: the target over the other functions, with the weights
that this leaves. The families of functions are fitted to it, and the best of all tables are multiplied and
fitted together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.candidate import Candidate
from physdiffuser.core.formula_fits import refitted
from physdiffuser.core.problem import Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.core.work import Work
from physdiffuser.expressions import Expression, Variable
from physdiffuser.expressions.simplification.textbook.arrange import arrange
from physdiffuser.expressions.tree import mul, substitute
from physdiffuser.fitting import fit_constants
from physdiffuser.functions.standard_forms import further_forms, standard_forms
from physdiffuser.generation.enumeration.context import Context
from physdiffuser.generation.enumeration.registry import Size, Stage, register
from physdiffuser.noise.noise_floor import levels


@dataclass(frozen=True)
class SeparationPolicy:
    """When a law is a product of functions of single features, and how many of each are tried.

    Set on own laws of two and three columns (docs/search.md).
    """

    max_features: int = 4
    rows: int = 600
    rows_of_term: int = 5
    """Features and rows at most; rows at least for each coefficient of the polynomials."""
    degree: int = 13
    sweeps: int = 20
    """Of the polynomials, and how often each is fitted."""
    as_good: float = 1.15
    explained: float = 1e-3
    """The product predicts as well if its error is at most this factor more than that of a polynomial in all
    features, or this share of the target's deviation."""
    starts: int = 3
    iterations: int = 25
    seconds: float = 0.006
    """Of the fit of a form, and nominal seconds of it."""
    forms: int = 3
    products: int = 9
    """Functions of each feature, and products of them, that are offered."""


POLICY = SeparationPolicy()

_Described = tuple[float, Expression]
"""A formula with the nats that it takes to describe its table."""


@register
class SeparableProducts(Stage):
    """`y = f(u)*g(v)*h(w)`; see the module."""

    name = "separable products"
    when_incomplete = True
    fits_constants = True

    def accepts(self, problem: Problem, reduction: Reduction) -> bool:
        """Whether there are two features or more."""
        return 2 <= len(reduction.features) <= POLICY.max_features and "mul" in problem.operators

    def run(self, context: Context, size: Size, reduction: Reduction) -> Work:
        """Separate the rows, fit forms to each function, and offer products; see `Stage`."""
        problem, rows = context.problem, context.problem.generator(13).permutation(context.problem.rows)
        rows = rows[: POLICY.rows]
        weights = None if problem.weights is None else problem.weights[rows]
        left = reduction.divided_out(problem.inputs[rows], problem.target[rows], weights)
        features = reduction.values(problem.inputs[rows])
        yield 0.02
        if left is None or not np.isfinite(features).all():
            return
        target, weights = left
        factors = separated(features, target, weights)
        if factors is None or not _separable(problem, reduction, features, target, weights, factors):
            return
        known: list[list[_Described]] = []
        for place, feature in enumerate(reduction.features):
            others = np.prod(np.delete(factors, place, axis=0), axis=0)
            fits: list[_Described] = []
            for fit in _fits(features[:, place], target, others, weights, problem.operators):
                yield POLICY.seconds
                if fit is not None:
                    fits.append((fit[0], _of(fit[1], feature)))
            fits.sort(key=lambda pair: pair[0])
            known.append(fits[: POLICY.forms])
        yield from _products(problem, reduction, known)


def _fits(
    feature: FloatArray,
    target: FloatArray,
    others: FloatArray,
    weights: FloatArray,
    operators: frozenset[str],
) -> Iterator[_Described | None]:
    """Each family of functions of one feature, fitted to the target over the other functions."""
    with np.errstate(all="ignore"):
        values, trust = target / others, weights * np.square(others)
    usable = np.isfinite(values) & (trust > 0)
    if np.count_nonzero(usable) < POLICY.rows_of_term:
        return
    inputs, values, trust = feature[usable, None], values[usable], trust[usable] / trust[usable].mean()
    positive = frozenset({0}) if (inputs > 0).all() else frozenset[int]()
    for form in (*standard_forms(1, positive, operators), *further_forms(positive, operators)):
        fit = fit_constants(
            form, inputs, values, weights=trust, starts=POLICY.starts, iterations=POLICY.iterations
        )
        if np.isfinite(fit.loss) and fit.loss > 0:
            nats = 0.5 * len(values) * np.log(fit.loss) + 0.5 * len(fit.parameters) * np.log(len(values))
            yield float(nats), fit.expression
        else:
            yield None


def _products(problem: Problem, reduction: Reduction, known: Sequence[Sequence[_Described]]) -> Work:
    """The products of the functions that describe their tables best, fitted together."""
    factor = reduction.factor()
    choices = sorted(product(*known), key=lambda choice: sum(nats for nats, _ in choice))
    for choice in choices[: POLICY.products]:
        parts = [tree for _, tree in choice] + ([] if factor is None else [factor])
        made = arrange(reduce(mul, parts), positive=problem.positive)
        yield 5 * POLICY.seconds
        if problem.admits(made):
            yield Candidate(
                refitted(made, problem),
                "enumeration",
                ("the rows are a product of functions of single features, and each was fitted by itself",),
            )


def separated(features: FloatArray, target: FloatArray, weights: FloatArray) -> FloatArray | None:
    """Values of one function of each feature whose product is nearest to the target, shape (features, rows).

    Parameters
    ----------
    features
        Shape (rows, features).
    target, weights
        Shape (rows,).

    Returns
    -------
    None if there are too few rows.
    """
    rows, count = features.shape
    degree = min(POLICY.degree, rows // (POLICY.rows_of_term * count) - 1)
    spread, height, most = np.ptp(features, axis=0), float(np.abs(target).max()), float(weights.max())
    if degree < 2 or not ((spread > 0).all() and np.isfinite(spread).all() and 0 < height < np.inf):
        return None
    # Squares of very large numbers are none.
    target, weights = target / height, weights / most
    unit = 2 * (features - features.min(axis=0)) / spread - 1
    designs = [np.polynomial.chebyshev.chebvander(column, degree) for column in unit.T]
    roots = np.sqrt(weights)
    best: tuple[float, FloatArray] | None = None
    # A function whose mean is 0 is not seen beside a constant.
    for start in range(3):
        factors = np.stack([design[:, start] for design in designs])
        loss = np.inf
        for _ in range(POLICY.sweeps):
            for place, design in enumerate(designs):
                others = roots * np.prod(np.delete(factors, place, axis=0), axis=0)
                solved = np.linalg.lstsq(design * others[:, None], roots * target, rcond=1e-10)[0]
                factors[place] = design @ solved
                size = float(np.abs(factors[place]).max())
                if not (np.isfinite(size) and size > 0):
                    return None
                if place + 1 < count:
                    factors[place] /= size
            now = float(np.sum(weights * np.square(target - np.prod(factors, axis=0))))
            if now > loss * (1 - 1e-4):
                break
            loss = now
        if best is None or loss < best[0]:
            best = (loss, factors)
    if best is None:
        return None
    best[1][-1] *= height
    return best[1]


def _separable(
    problem: Problem,
    reduction: Reduction,
    features: FloatArray,
    target: FloatArray,
    weights: FloatArray,
    factors: FloatArray,
) -> bool:
    """Whether the product predicts as well as a polynomial in all features does."""
    rows, count = features.shape
    left = np.sum(weights * np.square(target - np.prod(factors, axis=0)))
    whole = np.sum(weights * np.square(target - np.average(target, weights=weights)))
    free = max(rows - count * (POLICY.degree + 1), 1)
    error = float(np.sqrt(left / whole * rows / free))
    limit = max((POLICY.as_good * level.error for level in levels(problem, [reduction])), default=0.0)
    return error < max(limit, POLICY.explained)


def _of(formula: Expression, feature: Expression) -> Expression:
    return substitute(formula, lambda node: feature if isinstance(node, Variable) else None)
