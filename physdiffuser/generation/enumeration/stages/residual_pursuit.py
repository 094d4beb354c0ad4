"""Sums of up to four functions of single features with constants inside, found one after the other.

To each of the best sums so far the function is added that explains most of what is left, all constants are
fitted again together, and the best of the longer sums go on. What changes of the constants at hand could
explain as well is not counted: functions are compared with the residual only as far as both are independent
of the derivatives by these constants (orthogonal matching pursuit with fitted atoms). In the end each
function of the best sums is replaced in the same way, for the first ones were chosen without the others.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from physdiffuser.core.candidate import Candidate
from physdiffuser.core.problem import Problem
from physdiffuser.core.reduction import Reduction, monomial
from physdiffuser.core.work import Work
from physdiffuser.expressions import Expression, Number, Parameter, complexity
from physdiffuser.expressions.tree import add, call, mul, power
from physdiffuser.fitting.batched.evaluation_tape import EvaluationTape
from physdiffuser.generation.enumeration import parametric
from physdiffuser.generation.enumeration.context import PROBES, Context
from physdiffuser.generation.enumeration.function_pool import (
    FunctionPool,
    PoolTerm,
    functions_with_constants,
    of_trees,
    plain_functions,
)
from physdiffuser.generation.enumeration.registry import Size, Stage, register
from physdiffuser.library.terms import power_products
from physdiffuser.selection.description_length import ROUNDING_LOSS, DescriptionLength
from physdiffuser.transforms.transform import OutputTransform

# Functions are of squares and logarithms as well where there are so few features.
FEW_FEATURES = 2
# Functions of a sum, and sums that go on.
MOST_TERMS, BEAM = 4, 12
# Functions that are added to the best sum, and to each other one: all that grow in a similar way look alike.
ADDED_TO_BEST, ADDED = 30, 12
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
    """`y = a + sum of c*f(k; u)`, one function after the other; see the module.

    The cheapest `Size.entries` power products are functions as well.
    """

    name = "residual pursuit"
    fits_constants = True

    def accepts(self, problem: Problem, reduction: Reduction) -> bool:
        """Whether nothing is factored out, and there are rows for the constants."""
        return not reduction.factors and problem.rows >= parametric.ROWS_OF_CONSTANT * 5

    def run(self, context: Context, size: Size, reduction: Reduction) -> Work:
        """Add functions until there are four or they gain nothing, then replace some; see `Stage`."""
        pool = _Pool(context, _functions(context, size, reduction))
        yield 2e-8 * len(pool.functions) * PROBES
        sums = [_Sum((), (float(np.average(context.problem.target, weights=context.problem.weights)),))]
        every: list[_Sum] = []
        for _ in range(MOST_TERMS):
            longer: list[_Sum] = []
            for rank, one in enumerate(sums):
                most = ADDED if rank else ADDED_TO_BEST
                longer += [one.with_term(term) for term in islice(pool.best_beside(one), most)]
                yield 1e-8 * len(pool.functions) * PROBES
            before, sums = sums[0].nats, (yield from _fitted(context, longer))
            every += sums
            if not sums or sums[0].loss <= ROUNDING_LOSS or sums[0].nats > before:
                break
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
    products = of_trees(trees, context.problem.inputs[context.screening_rows])
    plain = products.joined(plain_functions(context, reduction))
    return plain.joined(functions_with_constants(context, arguments))


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
    sums = [one for one in sums if parametric.ROWS_OF_CONSTANT * len(one.values) <= problem.rows]
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
    best: dict[object, _Sum] = {}
    for one in sorted(found, key=lambda one: one.nats):
        best.setdefault(frozenset(term.form for term in one.terms), one)
    return list(best.values())[:most]
