"""Sums of up to four functions of single features with constants inside, found one after the other.

A function may stand beside a factor, a product of powers of other columns: `2*a*exp(-b/3) + c`. To each of
the best sums so far the function is added that explains most of what is left, all constants are fitted again
together, and the best of the longer sums go on. What changes of the constants at hand could explain as well
is not counted: functions are compared with the residual only as far as both are independent of the
derivatives by these constants (orthogonal matching pursuit with fitted atoms). In the end each function of
the best sums is replaced in the same way, for the first ones were chosen without the others.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice

import numpy as np

from physdiffuser.core.candidate import Candidate
from physdiffuser.core.problem import Problem
from physdiffuser.core.reduction import Reduction, monomial
from physdiffuser.core.work import Work
from physdiffuser.expressions import Expression, Number, Parameter, complexity
from physdiffuser.expressions.tree import add, call, div, mul, power
from physdiffuser.fitting.batched.evaluation_tape import EvaluationTape
from physdiffuser.generation.enumeration import parametric
from physdiffuser.generation.enumeration.context import PROBES, Context
from physdiffuser.generation.enumeration.function_pool import (
    FunctionPool,
    PoolTerm,
    functions_with_constants,
    of_trees,
    plain_functions,
    times_factors,
)
from physdiffuser.generation.enumeration.registry import Size, Stage, register
from physdiffuser.library.terms import power_products
from physdiffuser.selection.description_length import ROUNDING_LOSS, DescriptionLength
from physdiffuser.transforms.transform import OutputTransform

# Functions are of squares and logarithms as well where there are so few features.
FEW_FEATURES = 2
# Points of the grid of a family, and turning points of a function, where functions are multiplied by factors,
# and so many of these products.
POINTS, MOST_TURNS, MOST_PRODUCTS = 12, 4, 12_000
# Functions of a sum, and sums that go on.
MOST_TERMS, BEAM = 4, 8
# Of the sums that go on, so many apply other functions to the same arguments beside the same factors.
ALIKE = 3
# Functions that are added to the best sum, and to each other one: all that grow in a similar way look alike.
ADDED_TO_BEST, ADDED = 30, 8
# Sums whose functions are replaced in the end, and functions that are put in the place of each.
REVISED, REPLACEMENTS = 4, 8
# Steps of a fit: the next function may be wrong, and what is kept is polished when it is archived.
ITERATIONS = 12
# What is left of a function beside the sum, as a share of it, below which it adds nothing.
_NOTHING_NEW = 1e-6


@dataclass(frozen=True)
class _Sum:
    """A sum of functions, fitted.

    Attributes
    ----------
    terms
        Its functions.
    values
        The constant, then the factor of each function and its constants.
    loss, nats
        Of the fit, and length of the description.
    """

    terms: tuple[PoolTerm, ...]
    values: tuple[float, ...]
    loss: float = 1.0
    nats: float = 0.0

    def law(self) -> Expression:
        """The sum with parameters, in the order of the values."""
        law: Expression = Parameter(0)
        first = 1
        for term in self.terms:
            law = add(law, mul(Parameter(first), term.law(first + 1)))
            first += 1 + len(term.starts)
        return law

    def with_term(self, term: PoolTerm) -> _Sum:
        """The sum with one more function, to be fitted."""
        return _Sum((*self.terms, term), (*self.values, 1.0, *term.starts))

    def without(self, place: int) -> _Sum:
        """The sum without one of its functions, to be fitted."""
        first = 1 + sum(1 + len(term.starts) for term in self.terms[:place])
        last = first + 1 + len(self.terms[place].starts)
        return _Sum(
            (*self.terms[:place], *self.terms[place + 1 :]), (*self.values[:first], *self.values[last:])
        )


@register
class ResidualPursuit(Stage):
    """`y = a + sum of c*A*f(k; u)`, one function after the other; see the module.

    The cheapest `Size.entries` power products are functions as well. The first `Size.divisors` of `_factors`
    are the factors A of functions of other columns.
    """

    name = "residual pursuit"
    fits_constants = True

    def accepts(self, problem: Problem, reduction: Reduction) -> bool:
        """Whether nothing is factored out, and there are rows for the constants."""
        return not reduction.factors and problem.rows >= parametric.POLICY.rows_of_constant * 5

    def run(self, context: Context, size: Size, reduction: Reduction) -> Work:
        """Add functions until there are four or they gain nothing, then replace some; see `Stage`."""
        pool = _Pool(context, _functions(context, size, reduction))
        yield 2e-8 * len(pool.functions) * PROBES
        sums = [_Sum((), (float(np.average(context.problem.target, weights=context.problem.weights)),))]
        every: list[_Sum] = []
        before = math.inf
        for _ in range(MOST_TERMS):
            longer: list[_Sum] = []
            for rank, one in enumerate(sums):
                most = ADDED if rank else ADDED_TO_BEST
                longer += [one.with_term(term) for term in islice(pool.best_beside(one), most)]
                yield 1e-8 * len(pool.functions) * PROBES
            sums = yield from _fitted(context, longer)
            every += sums
            if not sums or sums[0].loss <= ROUNDING_LOSS or sums[0].nats > before:
                break
            before = sums[0].nats
        if sums and sums[0].loss <= ROUNDING_LOSS:
            return
        fewer: list[_Sum] = []
        for one in sorted(every, key=lambda one: one.nats)[:REVISED]:
            fewer += [one.without(place) for place in range(len(one.terms))]
        revised: list[_Sum] = []
        for one in (yield from _fitted(context, fewer, most=len(fewer))):
            revised += [one.with_term(term) for term in islice(pool.best_beside(one), REPLACEMENTS)]
            yield 1e-8 * len(pool.functions) * PROBES
        yield from _fitted(context, revised)


def _functions(context: Context, size: Size, reduction: Reduction) -> FunctionPool:
    arguments: list[Expression] = list(reduction.features)
    if len(arguments) <= FEW_FEATURES:
        arguments += [power(feature, Number(2)) for feature in reduction.features]
        if "log" in context.problem.operators:
            arguments += [call("log", add(Number(1), feature)) for feature in reduction.features]
    found, _ = power_products(len(reduction.features), size.entries)
    trees = [monomial(product, reduction.features) for product in found]
    inputs = context.problem.inputs[context.screening_rows]
    factors = _factors(reduction.features)[: size.divisors]
    products = of_trees(list(dict.fromkeys([*trees, *factors])), inputs)
    plain = products.joined(plain_functions(context, reduction))
    functions = plain.joined(functions_with_constants(context, arguments))
    if not factors:
        return functions
    few = functions_with_constants(context, reduction.features, POINTS, MOST_TURNS)
    return functions.joined(times_factors(few, of_trees(factors, inputs), MOST_PRODUCTS))


def _factors(features: Sequence[Expression]) -> list[Expression]:
    """Columns, their products, reciprocals and squares, and their quotients: what functions stand beside."""
    pairs = list(combinations(features, 2))
    return [
        *features,
        *(mul(one, other) for one, other in pairs),
        *(div(Number(1), feature) for feature in features),
        *(power(feature, Number(2)) for feature in features),
        *(div(one, other) for one, other in pairs),
        *(div(other, one) for one, other in pairs),
    ]


class _Pool:
    """Functions, and which of them explain most of what a sum leaves."""

    def __init__(self, context: Context, functions: FunctionPool) -> None:
        rows = context.screening_rows
        problem = context.problem
        weights = np.ones(len(rows)) if problem.weights is None else problem.weights[rows]
        self.functions = functions
        self._inputs, self._target = problem.inputs[rows], problem.target[rows]
        self._root = np.sqrt(weights / weights.mean())
        weighted = functions.values * self._root
        self._unit = weighted / np.linalg.norm(weighted, axis=1, keepdims=True)

    def best_beside(self, one: _Sum) -> Generator[PoolTerm, None, None]:
        """The functions that explain most beyond what the sum's constants could, one of each form."""
        values = np.array(one.values)
        tape = EvaluationTape(one.law(), self._inputs)
        value, slopes = tape.value_and_jacobian(values, tuple(range(len(values))))
        residual = (self._target - value) * self._root
        design = (np.broadcast_to(slopes, (len(values), len(residual))) * self._root).T
        if not (np.isfinite(design).all() and np.isfinite(residual).all()):
            return
        basis = np.linalg.qr(design / np.maximum(np.linalg.norm(design, axis=0), 1e-300))[0]
        residual = residual - basis @ (basis.T @ residual)
        new = 1.0 - np.square(self._unit @ basis).sum(axis=1)
        gain = np.square(self._unit @ residual) / np.maximum(new, _NOTHING_NEW)
        gain[new < _NOTHING_NEW] = 0.0
        seen: set[object] = set()
        for place in np.argsort(-gain, kind="stable"):
            term = self.functions.terms[int(place)]
            if term.form not in seen:
                seen.add(term.form)
                yield term


def _fitted(
    context: Context, sums: list[_Sum], most: int = BEAM
) -> Generator[Candidate | float, None, list[_Sum]]:
    """Fit sums and offer all; returns the best, one of each set of forms."""
    problem = context.problem
    sums = [one for one in sums if parametric.POLICY.rows_of_constant * len(one.values) <= problem.rows]
    measure = DescriptionLength(problem.rows, problem.columns)
    found: list[_Sum] = []
    nothing_known = Reduction((), ())
    remaining = iter(sums)
    for fits in parametric.fitted(
        problem,
        nothing_known,
        [OutputTransform(())] * len(sums),
        [one.law() for one in sums],
        [one.values for one in sums],
        iterations=ITERATIONS,
        device=context.device,
    ):
        for fit, one in zip(fits, remaining, strict=False):
            if np.isfinite(fit.loss):
                nats = measure.plain_length(fit.expression, fit.loss)
                found.append(_Sum(one.terms, tuple(fit.parameters.tolist()), fit.loss, nats))
                if complexity(fit.expression) <= problem.max_complexity:
                    said = f"added {len(one.terms)} functions with constants inside, one by one"
                    yield Candidate(fit.expression, "enumeration", (said,))
        yield 0.002 * len(fits)
    return list(islice(_varied(sorted(found, key=lambda one: one.nats)), most))


def _varied(sums: list[_Sum]) -> Iterator[_Sum]:
    """One sum of each set of forms, and few that differ in the kinds of their functions alone."""
    seen: set[object] = set()
    alike: Counter[object] = Counter()
    for one in sums:
        forms = frozenset(term.form for term in one.terms)
        places = frozenset(term.place for term in one.terms)
        if forms not in seen and alike[places] < ALIKE:
            seen.add(forms)
            alike[places] += 1
            yield one
