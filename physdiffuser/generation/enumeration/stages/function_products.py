"""A constant beside a product of functions of single features: `y = a + b*f(u)*g(v)*h(w)`.

Where the constant is 0 a factor can be divided out of the target, and the search for products of library
entries finds the rest. With a constant all pairs of factors are ranked by their best linear fit, which takes
three matrix products; a third factor is then looked for beside the best pairs.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from physdiffuser.arrays import FloatArray
from physdiffuser.core.candidate import Candidate
from physdiffuser.core.problem import Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.core.work import Work
from physdiffuser.expressions import Expression, Number, Parameter, evaluate
from physdiffuser.expressions.tree import add, bind, mul, power
from physdiffuser.generation.enumeration.context import PROBES, Context
from physdiffuser.generation.enumeration.function_pool import (
    MOST_TURNS,
    FunctionPool,
    PoolTerm,
    functions_with_constants,
    plain_functions,
    products_of_two,
)
from physdiffuser.generation.enumeration.parametric import POLICY as PARAMETRIC
from physdiffuser.generation.enumeration.parametric import fitted
from physdiffuser.generation.enumeration.registry import Size, Stage, register
from physdiffuser.transforms.transform import OutputTransform

FloatArray32 = npt.NDArray[np.float32]


@dataclass(frozen=True)
class FunctionProductPolicy:
    """How many products of functions are fitted.

    Set on development laws (docs/search.md).

    Attributes
    ----------
    few_features, points
        Functions are of squares as well where there are so few features; points of the grid of a family.
    max_paired
        Of more features only the commonest functions are multiplied with one another.
    block
        Terms of one block of pairs.
    partners, followed
        Partners of each term that are remembered, and pairs that are fitted, one of each pair of forms.
    extended, thirds
        Pairs that a third factor is sought for, and third factors of each.
    constant
        Products of single precision that vary by less than this share of their squares are constant.
    """

    few_features: int = 2
    points: int = 40
    max_paired: int = 4
    block: int = 512
    partners: int = 8
    followed: int = 100
    extended: int = 10
    thirds: int = 4
    constant: float = 1e-4


POLICY = FunctionProductPolicy()


_Terms = tuple[PoolTerm, ...]
NOTHING_KNOWN = Reduction((), ())


@register
class FunctionProducts(Stage):
    """`y = a + b*f(u)*g(v)*h(w)`: at most `Size.entries` terms are paired; see the module."""

    name = "function products"
    fits_constants = True

    def accepts(self, problem: Problem, reduction: Reduction) -> bool:
        """Whether nothing is factored out: a product is found under a factor as well as beside it."""
        return not reduction.factors and problem.rows >= PARAMETRIC.rows_of_constant * 4

    def run(self, context: Context, size: Size, reduction: Reduction) -> Work:
        """Rank pairs of factors, fit the best, and look for a third; see `Stage`."""
        pool = _pool(context, size, reduction)
        yield 1e-8 * len(pool) * PROBES
        if len(pool) < 2:
            return
        problem, rows = context.problem, context.screening_rows
        target = problem.target[rows]
        weights = np.ones(len(rows)) if problem.weights is None else problem.weights[rows]
        ranking = _Ranking(pool.values, target, weights / weights.sum())
        found: list[tuple[float, int, int]] = []
        for start in range(0, len(pool), POLICY.block):
            found += ranking.block(start)
            yield 1.5e-11 * POLICY.block * (len(pool) - start) * PROBES
        pairs = _promising(found, pool)
        fits = yield from _fit(context, [tuple(pool.terms[place] for place in pair) for pair in pairs])
        longer: list[_Terms] = []
        for terms in _best(fits):
            longer += [(*terms, pool.terms[third]) for third in ranking.thirds(_values(context, terms))]
            yield 4e-9 * len(pool) * PROBES
        yield from _fit(context, longer)


def _pool(context: Context, size: Size, reduction: Reduction) -> FunctionPool:
    """Functions with constants, functions without, and products of two of these."""
    plain = plain_functions(context, reduction)
    arguments: list[Expression] = list(reduction.features)
    if len(arguments) <= POLICY.few_features:
        arguments += [power(feature, Number(2)) for feature in reduction.features]
    inside = functions_with_constants(context, arguments, POLICY.points, MOST_TURNS)
    several = plain_functions(context, reduction, common=len(reduction.features) > POLICY.max_paired)
    return plain.joined(inside).joined(products_of_two(several)).first(size.entries)


class _Ranking:
    """The least residuals of `a + b*A*B` for all pairs of terms.

    Parameters
    ----------
    values
        Shape (terms, probes), of size 1.
    target, weights
        Shape (probes,); the weights add up to 1.
    """

    def __init__(self, values: FloatArray, target: FloatArray, weights: FloatArray) -> None:
        centred = target - weights @ target
        centred /= np.sqrt(weights @ np.square(centred))
        self._values, self._centred, self._weights = values, centred, weights
        self._single = values.astype(np.float32)
        self._squares = np.square(self._single)

    def block(self, start: int) -> list[tuple[float, int, int]]:
        """The best pairs of `POLICY.block` terms with themselves and later ones: residual and two places."""
        some = self._values[start : start + POLICY.block]
        weighted = some * self._weights
        others, squares = self._single[start:], self._squares[start:]
        with np.errstate(all="ignore"):
            overlap = (weighted * self._centred).astype(np.float32) @ others.T
            mean = weighted.astype(np.float32) @ others.T
            second = (weighted * some).astype(np.float32) @ squares.T
            variance = second - np.square(mean)
            variance[variance < POLICY.constant * second] = np.inf
            explained = np.square(overlap) / variance
        explained[np.tril_indices(len(some), -1, explained.shape[1])] = 0.0
        explained = np.nan_to_num(explained, nan=0.0, posinf=0.0)
        # The best partners of each term: the pairs of one good term would leave no room for others.
        most = min(POLICY.partners, explained.shape[1])
        partners = np.argpartition(-explained, most - 1, axis=1)[:, :most]
        best = np.take_along_axis(explained, partners, axis=1)
        return [
            (1.0 - float(best[row, place]), start + row, start + int(partners[row, place]))
            for row in range(len(some))
            for place in range(most)
        ]

    def thirds(self, product: FloatArray) -> list[int]:
        """The terms that leave least as a factor of a product, shape (probes,)."""
        with np.errstate(all="ignore"):
            made = self._values * product
            mean = made @ self._weights
            second = np.square(made) @ self._weights
            variance = second - np.square(mean)
            explained = np.square(made @ (self._weights * self._centred)) / variance
        explained[~(variance > 1e-9 * second)] = 0.0
        return [int(place) for place in np.argsort(-explained, kind="stable")[: POLICY.thirds]]


def _promising(found: list[tuple[float, int, int]], pool: FunctionPool) -> list[tuple[int, int]]:
    """The best pairs, one of each pair of forms: neighbours on the grid end in the same place."""
    chosen: dict[object, tuple[int, int]] = {}
    for _, left, right in sorted(found):
        chosen.setdefault(frozenset((pool.terms[left].form, pool.terms[right].form)), (left, right))
        if len(chosen) == POLICY.followed:
            break
    return list(chosen.values())


def _fit(
    context: Context, products: list[_Terms]
) -> Generator[Candidate | float, None, list[tuple[float, _Terms]]]:
    """Fit products, with a constant beside them and without; offers all, and returns losses and constants."""
    problem = context.problem
    laws: list[Expression] = []
    initial: list[list[float]] = []
    of: list[_Terms] = []
    for terms in products:
        for constant in (False, True):
            starts = [1.0] * (1 + constant)
            law: Expression = Parameter(int(constant))
            for term in terms:
                law = mul(law, term.law(len(starts)))
                starts += term.starts
            if PARAMETRIC.rows_of_constant * len(starts) <= problem.rows:
                laws.append(add(Parameter(0), law) if constant else law)
                initial.append(starts)
                of.append(terms)
    found: list[tuple[float, _Terms]] = []
    plain = [OutputTransform(())] * len(laws)
    for fits in fitted(problem, NOTHING_KNOWN, plain, laws, initial, device=context.device):
        for fit in fits:
            if np.isfinite(fit.loss):
                terms = of[len(found)]
                said = f"fitted a product of {len(terms)} functions"
                yield Candidate(fit.expression, "enumeration", (said,))
            found.append((fit.loss, _with_constants(of[len(found)], fit.parameters.tolist())))
        yield 0.002 * len(fits)
    return found


def _with_constants(terms: _Terms, parameters: list[float]) -> _Terms:
    """Terms with the constants of a fit, which are the last of its parameters."""
    first = len(parameters) - sum(len(term.starts) for term in terms)
    refined = []
    for term in terms:
        last = first + len(term.starts)
        refined.append(replace(term, starts=tuple(parameters[first:last])))
        first = last
    return tuple(refined)


def _best(found: list[tuple[float, _Terms]]) -> list[_Terms]:
    """The best products, one of each pair of forms."""
    chosen: dict[object, _Terms] = {}
    for loss, terms in sorted(found, key=lambda one: one[0]):
        if np.isfinite(loss):
            chosen.setdefault(frozenset(term.form for term in terms), terms)
    return list(chosen.values())[: POLICY.extended]


def _values(context: Context, terms: _Terms) -> FloatArray:
    """Values of a product on the probes, of size 1."""
    inputs = context.problem.inputs[context.screening_rows]
    product = np.ones(len(inputs))
    for term in terms:
        value = evaluate(bind(term.tree, list(term.starts)), inputs)
        product = product * (value / np.abs(value).max())
    return product
