"""Products of powers and exponentials, by sparse regression on the target's logarithm.

`y = c * u**p * v**q * exp(r/u)` has unknown constants in every exponent, and yet its logarithm is a sum of
few terms with linear coefficients: `log(c) + p*log(u) + q*log(v) + r/u`. Rate constants, vapour pressures,
distributions and power laws with a cut-off are of this kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.candidate import Candidate
from physdiffuser.core.problem import Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.core.work import Work
from physdiffuser.expressions import ONE, Expression, Number, evaluate
from physdiffuser.expressions.tree import add, call, div, mul, power, sub
from physdiffuser.generation.sparse.dictionary import Dictionary, make, products
from physdiffuser.generation.sparse.regression import forward, least_squares, scaled

NEEDS = frozenset({"mul", "pow"})


@dataclass(frozen=True)
class LogarithmicPolicy:
    """Which power laws are read off logarithms.

    Set on development laws (docs/methods/generators.md).
    """

    other_sign: float = 0.02
    """Rows of the other sign are left out as noise if they are at most so much of the sum of squares."""
    above_noise: float = 3.0
    """So many times above these rows the logarithm of a row is used."""
    max_exponent: float = 15.0
    """Larger exponents come from the fit, not from a law."""
    few_features: int = 6
    """Sums and differences are taken of so many features at most."""
    exponents: int = 60
    max_terms: int = 6
    """Products that are put into an exponential, and terms of the sum that the logarithm of the target is."""
    negligible: float = 0.03
    """A part of a sum that is always below this share of the other changes nothing but the fit's
    conditioning."""
    close: float = 0.12
    """Whole and half exponents are tried where the fitted ones are this close."""


POLICY = LogarithmicPolicy()

_MAX_LOGARITHM = 600.0


def logarithmic(problem: Problem, reduction: Reduction, plain: bool = False) -> Work:
    """Power products times exponentials that fit best, of each number of factors.

    Parameters
    ----------
    reduction
        Its product is divided out, its features are the bases.
    plain
        Powers of the features alone.
    """
    product = reduction.product(problem.inputs)
    with np.errstate(all="ignore"):
        target = problem.target / product
    if not np.isfinite(target).all() or not problem.operators >= NEEDS:
        return
    sign = 1.0 if (target > 0).sum() >= (target < 0).sum() else -1.0
    squares = np.square(problem.target / np.abs(problem.target).max())
    if problem.weights is not None:
        squares = squares * problem.weights
    # Rows of the other sign are noise, and tell how much of the rest is.
    other = np.flatnonzero(sign * target <= 0)
    if squares[other].sum() > POLICY.other_sign * squares.sum():
        return
    floor = POLICY.above_noise**2 * squares[other].mean() if len(other) >= 3 else 0.0
    rows = np.flatnonzero((sign * target > 0) & (squares > floor))
    if len(rows) < 4:
        return
    inputs, size = problem.inputs[rows], sign * target[rows]
    factor, goal = reduction.factor(), np.log(size)
    # An error of the logarithm is one of the target in proportion to it.
    weights = squares[rows]
    seen: set[Expression] = set()
    for bases, inside in (
        [(list(reduction.features), [])] if plain else _ladder(reduction, problem.operators, inputs)
    ):
        positive = [base for base in bases if (evaluate(base, inputs) > 0).all()]
        logarithms: dict[Expression, Expression] = {call("log", base): base for base in positive}
        dictionary = make([*logarithms, *inside], inputs)
        yield 2e-5 * len(dictionary)
        sentence = "the logarithm of the target is a sum of logarithms" + " and other terms" * bool(inside)
        for supports in forward(*scaled(dictionary.values, goal, weights), POLICY.max_terms + 1):
            for support in supports[:1] if plain else supports:
                columns = sorted({0, *support.columns})
                for tree in _laws(dictionary, logarithms, columns, goal, weights, sign):
                    if tree not in seen:
                        seen.add(tree)
                        law = tree if factor is None else mul(factor, tree)
                        yield Candidate(law, "enumeration" if plain else "sparse", (sentence,))
            yield 0.002 + 1e-8 * dictionary.values.size


def _ladder(
    reduction: Reduction, operators: frozenset[str], inputs: FloatArray
) -> Iterator[tuple[list[Expression], list[Expression]]]:
    """Bases of powers, and terms of the exponential, few and plain ones first."""
    features = list(reduction.features)
    few = len(features) <= POLICY.few_features
    if "exp" in operators:
        arguments = [*features, *(div(ONE, feature) for feature in features)]
        if few:
            for left, right in combinations(features, 2):
                arguments += [div(left, right), div(right, left), mul(left, right)]
        yield features, arguments
        yield features, [*products(reduction, POLICY.exponents), *map(_squared_log, features)]
    if few:
        yield [*features, *_sums(reduction, operators, inputs)], []
        if "exp" in operators:
            yield [*features, *_sums(reduction, operators, inputs)], products(reduction, POLICY.exponents)


def _sums(reduction: Reduction, operators: frozenset[str], inputs: FloatArray) -> Iterator[Expression]:
    """Sums and differences that may be raised to a power, where neither part drowns the other."""
    sizes = [np.abs(value) for value in reduction.values(inputs).T]
    for feature, size in zip(reduction.features, sizes, strict=True):
        if size.max() < POLICY.negligible or POLICY.negligible * size.min() > 1:
            continue
        square = power(feature, Number(2))
        if "sub" in operators:
            yield from (sub(ONE, feature), sub(feature, ONE), sub(ONE, square), sub(square, ONE))
        if "add" in operators:
            yield from (add(ONE, feature), add(ONE, square))
    for (left, first), (right, second) in combinations(zip(reduction.features, sizes, strict=True), 2):
        if first.max() < POLICY.negligible * second.min() or second.max() < POLICY.negligible * first.min():
            continue
        if "add" in operators:
            yield from (add(left, right), add(power(left, Number(2)), power(right, Number(2))))
        if "sub" in operators:
            yield from (sub(left, right), sub(right, left))


def _squared_log(base: Expression) -> Expression:
    return power(call("log", base), Number(2))


def _laws(
    dictionary: Dictionary,
    logarithms: dict[Expression, Expression],
    columns: list[int],
    goal: FloatArray,
    weights: FloatArray,
    sign: float,
) -> Iterator[Expression]:
    """The fitted law, and the one with simple exponents where they are near."""
    fitted = least_squares(dictionary.values[:, columns], goal, weights)
    if fitted is None:
        return
    terms = [dictionary.terms[column] for column in columns]
    whole = [term in logarithms for term in terms]
    rounded = np.where(whole, np.round(2 * fitted) / 2, fitted)
    tries = [fitted]
    if any(whole) and np.abs(rounded - fitted).max() <= POLICY.close:
        rest = [place for place, is_power in enumerate(whole) if not is_power]
        left = goal - dictionary.values[:, columns] @ np.where(whole, rounded, 0.0)
        again = least_squares(dictionary.values[:, [columns[place] for place in rest]], left, weights)
        if again is not None:
            rounded[rest] = again
            tries.append(rounded)
    for coefficients in tries:
        largest = np.abs(coefficients[np.array(whole)]).max(initial=0.0)
        if abs(coefficients[0]) < _MAX_LOGARITHM and largest < POLICY.max_exponent:
            yield _law(terms, [logarithms.get(term) for term in terms], coefficients, sign)


def _law(
    terms: list[Expression], bases: list[Expression | None], coefficients: FloatArray, sign: float
) -> Expression:
    """`sign * exp(c0) * base**p * exp(c*term)`, whatever of it there is; term 0 is the constant."""
    tree: Expression = Number(float(sign * np.exp(coefficients[0])))
    exponent: Expression | None = None
    for term, base, coefficient in zip(terms[1:], bases[1:], coefficients[1:], strict=True):
        if coefficient == 0:
            continue
        if base is None:
            part = mul(Number(float(coefficient)), term)
            exponent = part if exponent is None else add(exponent, part)
            continue
        simple = Fraction(round(2 * coefficient), 2)
        exact = abs(coefficient - simple) <= 1e-9
        number = Number(simple) if exact else Number(float(abs(coefficient)))
        if exact:
            tree = mul(tree, base if simple == 1 else power(base, number))
        elif coefficient > 0:
            tree = mul(tree, power(base, number))
        else:
            tree = div(tree, power(base, number))
    return tree if exponent is None else mul(tree, call("exp", exponent))
