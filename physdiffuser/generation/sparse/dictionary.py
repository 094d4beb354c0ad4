"""Dictionaries: the terms a sum may be made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import combinations, combinations_with_replacement, product

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.reduction import Reduction, monomial
from physdiffuser.expressions import ONE, Expression, complexity, evaluate
from physdiffuser.expressions.tree import call, div, mul, sub
from physdiffuser.library.terms import power_products


@dataclass(frozen=True)
class Dictionary:
    """Terms and their values.

    Attributes
    ----------
    terms
        Trees; the first is the constant 1.
    values
        Shape (rows, terms).
    """

    terms: tuple[Expression, ...]
    values: FloatArray

    def __len__(self) -> int:
        return len(self.terms)


def make(terms: list[Expression], inputs: FloatArray) -> Dictionary:
    """Evaluate terms; those that are not finite, constant, or equal to an earlier one are left out."""
    kept: list[Expression] = [ONE]
    columns = [np.ones(len(inputs))]
    seen: set[bytes] = set()
    for term in terms:
        value = evaluate(term, inputs)
        size = float(np.abs(value).max())
        if not np.isfinite(size) or size == 0 or np.ptp(value) <= 1e-9 * size:
            continue
        # Equal to nine digits on a dozen rows, up to scale: one term says as much as the other.
        unit = value[:12] / value[np.argmax(np.abs(value[:12]))]
        key = np.round(unit, 9).tobytes()
        if key in seen:
            continue
        seen.add(key)
        kept.append(term)
        columns.append(value)
    return Dictionary(tuple(kept), np.stack(columns, axis=1))


def polynomial(reduction: Reduction, degree: int) -> list[Expression]:
    """All power products of the features with whole exponents up to a total degree."""
    count = len(reduction.features)
    terms: list[Expression] = []
    for total in range(1, degree + 1):
        for chosen in combinations_with_replacement(range(count), total):
            powers = np.bincount(np.array(chosen), minlength=count)
            powers_of = tuple((int(i), Fraction(int(powers[i]))) for i in np.flatnonzero(powers))
            terms.append(monomial(powers_of, reduction.features))
    return terms


def multilinear(reduction: Reduction) -> list[Expression]:
    """All products of different features.

    Ratios of sums of them are lenses and resistors, mixtures, balances and the kinetics of enzymes.
    """
    count = len(reduction.features)
    return [
        monomial(tuple((place, Fraction(1)) for place in chosen), reduction.features)
        for size in range(1, count + 1)
        for chosen in combinations(range(count), size)
    ]


def whole_powers(reduction: Reduction, lowest: int, highest: int) -> list[Expression]:
    """Power products of the features with whole exponents within limits, the shortest first."""
    terms = []
    for exponents in product(range(lowest, highest + 1), repeat=len(reduction.features)):
        chosen = tuple((place, Fraction(exponent)) for place, exponent in enumerate(exponents) if exponent)
        if chosen:
            terms.append(monomial(chosen, reduction.features))
    return sorted(terms, key=complexity)


def reciprocal(reduction: Reduction, operators: frozenset[str]) -> list[Expression]:
    """Power products with whole exponents from -1 on, and the logarithm of each feature.

    What multiplying out `(1 - p)*(1 - 1/n) + x*(1 - p)**2 + log(p)` leaves, and lens equations.
    """
    highest = 2 if len(reduction.features) <= 3 else 1
    names = reduction.features if "log" in operators else ()
    logarithms: list[Expression] = [call("log", feature) for feature in names]
    return sorted([*logarithms, *whole_powers(reduction, -1, highest)], key=complexity)


def products(reduction: Reduction, limit: int) -> list[Expression]:
    """The cheapest power products, with negative and half exponents."""
    found, _ = power_products(len(reduction.features), limit)
    return [monomial(exponents, reduction.features) for exponents in found]


Terms = Callable[[], list[Expression]]


@dataclass(frozen=True)
class Rung:
    """A dictionary whose turn will come.

    Attributes
    ----------
    name
        What the terms are, for derivations.
    terms
        Makes the terms of sums.
    ratio
        Makes the terms of numerator and denominator, if ratios of sums are tried as well.
    quadratic
        Makes the terms without and with the target of a quadratic equation, if such are tried as well.
    """

    name: str
    terms: Terms
    ratio: Terms | None = None
    quadratic: tuple[Terms, Terms] | None = None


# Ratios are tried of so many features; of the fewer there are few terms, and a degree more costs little.
MAX_OF_RATIO, FEW_FEATURES = 5, 2
# With fewer features polynomials of low degree hold all their products.
MIN_OF_PRODUCTS = 3

_FUNCTIONS = ("sin", "cos", "exp", "log", "sqrt", "tanh")


def with_functions(reduction: Reduction, operators: frozenset[str], factors: int) -> list[Expression]:
    """Power products times a function of a feature, or of a product, ratio or difference of two."""
    arguments: list[Expression] = list(reduction.features)
    for left, right in combinations(reduction.features, 2):
        arguments += [mul(left, right), div(left, right), div(right, left), sub(left, right)]
    functions: list[Expression] = []
    for argument in arguments:
        functions += [call(name, argument) for name in _FUNCTIONS if name in operators]
        if {"exp", "neg"} <= operators:
            functions.append(call("exp", call("neg", argument)))
    plain = products(reduction, factors)
    return plain + functions + [mul(factor, function) for function in functions for factor in plain]


def turned(reduction: Reduction, angles: Sequence[int]) -> Iterator[Rung]:
    """Products and ratios with sine and cosine of an angle in its place, and so with its tangent."""
    for place in angles:
        others = reduction.features[:place] + reduction.features[place + 1 :]
        circle = tuple(call(name, reduction.features[place]) for name in ("sin", "cos"))
        longer = replace(reduction, features=(*others, *circle))
        each = [*others, *circle, *(mul(other, part) for other in others for part in circle)]
        yield Rung("products with sine and cosine of one column", partial(products, longer, 80), each.copy)


def extended(reduction: Reduction, operators: frozenset[str]) -> Iterator[Rung]:
    """Polynomials in the features and one function of one of them (or of a difference or ratio)."""
    arguments: list[tuple[Expression, tuple[str, ...]]] = [
        (feature, ("cos", "sin", "exp", "log", "sqrt")) for feature in reduction.features
    ]
    if len(reduction.features) <= 5:
        for left, right in combinations(reduction.features, 2):
            arguments += [(sub(left, right), ("cos", "exp")), (div(left, right), ("exp", "log"))]
            if len(reduction.features) <= 3:
                arguments.append((mul(left, right), ("cos", "sin", "exp")))
    degree = 3 if len(reduction.features) <= 5 else 2
    for argument, names in arguments:
        for name in [one for one in names if one in operators]:
            function = call(name, argument)
            longer = replace(reduction, features=(*reduction.features, function))
            yield Rung(f"polynomials in the columns and {name} of one", partial(polynomial, longer, degree))
            if argument in reduction.features:
                yield Rung(f"power products of the columns and {name} of one", partial(products, longer, 150))
            if name in ("cos", "sin") and "sqrt" in operators and len(reduction.features) <= 4:
                roots = tuple(call("sqrt", feature) for feature in reduction.features)
                halves = replace(reduction, features=(*roots, function))
                yield Rung(f"half powers of the columns and {name} of one", partial(polynomial, halves, 4))


def ladder(
    reduction: Reduction, operators: frozenset[str], rows: int, angles: Sequence[int] = ()
) -> Iterator[Rung]:
    """Dictionaries of growing size.

    Parameters
    ----------
    reduction
        Its features are what the terms are made of.
    rows
        Of the table; more terms than these tell nothing.
    angles
        Places of the features that may be angles.
    """
    count = len(reduction.features)
    more = int(count <= FEW_FEATURES)

    def polynomials(degree: int, of_ratio: int | None = None, of_linear: int | None = None) -> Rung:
        few = count <= MAX_OF_RATIO
        terms = partial(polynomial, reduction, degree)
        ratio = partial(polynomial, reduction, of_ratio) if few and of_ratio else None
        quadratic = (terms, partial(polynomial, reduction, of_linear)) if few and of_linear else None
        return Rung(f"polynomial of degree {degree}", terms, ratio, quadratic)

    yield polynomials(2, 1 + more, 1)
    yield Rung("power products", partial(products, reduction, 120))
    if count <= 6:
        yield polynomials(3, 2 + more, 2)
    if MIN_OF_PRODUCTS <= count <= MAX_OF_RATIO:
        each = partial(multilinear, reduction)
        yield Rung("products of different columns", each, each)
    if 2 <= count <= 4 and "div" in operators:
        # Groups of columns may be the reciprocals of those that an equation is short in.
        quadratic = (
            (partial(whole_powers, reduction, -2, 2), partial(whole_powers, reduction, -1, 1))
            if count <= 3
            else None
        )
        terms = partial(reciprocal, reduction, operators)
        yield Rung("products and quotients, and logarithms", terms, None, quadratic)
    yield from extended(reduction, operators)
    if count <= 4 and {"sin", "cos"} <= operators:
        yield from turned(reduction, angles)
    yield Rung("products with functions", partial(with_functions, reduction, operators, 12))
    if count <= 4:
        yield polynomials(4, 4 if more else None, 2 if count <= 3 else None)
    if count <= 2:
        if count == 1:
            yield polynomials(6, 6)
        degree = 14 if count == 1 else 8
        if (degree + 1) ** count < rows:
            yield polynomials(degree)
    yield Rung("many power products", partial(products, reduction, 1200))
    yield Rung("many products with functions", partial(with_functions, reduction, operators, 40))
