"""A hypothesis about a law: what stands before it, and what the rest may depend on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.expressions import ONE, Expression, Variable, complexity, evaluate, to_text
from physdiffuser.expressions.tree import call, chain, div, number_expression, power, variables

# Places in a list of trees, or columns, with their exponents.
Exponents = tuple[tuple[int, Fraction], ...]


@dataclass(frozen=True)
class Reduction:
    """`y = factor * g(features)`; made by `of`, so that equal hypotheses are equal.

    Attributes
    ----------
    factors
        Trees and their exponents, other than 0, in the product before g.
    features
        What g may depend on: columns, or groups of columns that stand for them.
    """

    factors: tuple[tuple[Expression, Fraction], ...]
    features: tuple[Expression, ...]

    @classmethod
    def of(cls, factors: Iterable[tuple[Expression, Fraction]], features: Iterable[Expression]) -> Reduction:
        """The reduction of some factors, which may occur more than once or cancel."""
        exponents: dict[Expression, Fraction] = {}
        for tree, exponent in factors:
            exponents[tree] = exponents.get(tree, Fraction(0)) + exponent
        kept = [(tree, exponent) for tree, exponent in exponents.items() if exponent]
        kept.sort(
            key=lambda pair: (min(variables(pair[0]), default=-1), complexity(pair[0]), to_text(pair[0]))
        )
        return cls(tuple(kept), tuple(features))

    @classmethod
    def of_columns(cls, factors: Iterable[tuple[int, Fraction]], features: Iterable[int]) -> Reduction:
        """The reduction of some powers of columns before a function of others."""
        return cls.of(((Variable(column), exponent) for column, exponent in factors), map(Variable, features))

    def factor(self) -> Expression | None:
        """The factor as a tree, or None when there is none."""
        return _power_product(self.factors) if self.factors else None

    def product(self, inputs: FloatArray) -> FloatArray:
        """Values of the factor; ones when there is none."""
        tree = self.factor()
        return np.ones(len(inputs)) if tree is None else evaluate(tree, inputs)

    def divided_out(
        self, inputs: FloatArray, target: FloatArray, weights: FloatArray | None
    ) -> tuple[FloatArray, FloatArray] | None:
        """The target without the factor, and the weights with which its residuals count as the target's.

        None where the factor is zero or no number on some row.
        """
        product = self.product(inputs)
        divided = target / product
        if not np.isfinite(divided).all():
            return None
        base = np.square(product / np.abs(product).max())
        return divided, base if weights is None else base * weights

    @property
    def columns(self) -> frozenset[int]:
        """The columns that occur in it."""
        return frozenset().union(*map(variables, (*self.features, self.factor() or ONE)))

    def values(self, inputs: FloatArray) -> FloatArray:
        """Values of the features, shape (rows, features)."""
        if not self.features:
            return np.empty((len(inputs), 0))
        return np.stack([evaluate(feature, inputs) for feature in self.features], axis=1)


def monomial(product: Exponents, bases: tuple[Expression, ...] | None) -> Expression:
    """The tree of a power product, `x1**2*x3/sqrt(x2)`, over the given bases (columns when None)."""
    return _power_product(
        (Variable(place) if bases is None else bases[place], exponent) for place, exponent in product
    )


def _power_product(factors: Iterable[tuple[Expression, Fraction]]) -> Expression:
    above: list[Expression] = []
    below: list[Expression] = []
    for base, exponent in factors:
        size = abs(exponent)
        if size == Fraction(1, 2):
            base = call("sqrt", base)
        elif size != 1:
            base = power(base, number_expression(size))
        (above if exponent > 0 else below).append(base)
    numerator = _product(above)
    return numerator if not below else div(numerator, _product(below))


def _product(factors: list[Expression]) -> Expression:
    return chain("mul", factors) if factors else ONE
