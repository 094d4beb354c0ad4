"""Formulas in other units: the same law when columns and target are multiplied by powers of two."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from physdiffuser.expressions.tree import ONE, Apply, Expression, Number, Variable, div, mul

# A power of two becomes part of an exact number if numerator and denominator stay below this.
MAX_EXACT = 10_000
# A constant this near to a fraction of small numbers is that fraction.
_SIMPLE, _ROUNDING = 100, 1e-15
_MIN_NORMAL = 2.0**-1022

Form = Literal["collected", "by column", "outside"]
"""Where the powers of two go: into one constant of each product; into a factor of each column; or as by
column, with that of the target before the whole formula."""
FORMS: tuple[Form, ...] = ("collected", "by column", "outside")


@dataclass(frozen=True)
class Rescaled:
    """A formula in other units.

    Attributes
    ----------
    expression
        The formula.
    origins
        Each fitted number in it, with the fitted number it comes from and the exponent of two between
        them; the former is None where a number is a power of two alone or comes from an exact number.
    """

    expression: Expression
    origins: dict[float, tuple[float | None, int]]


def rescaled(
    expression: Expression, columns: Sequence[int], target: int, form: Form = "collected"
) -> Rescaled | None:
    """The formula whose value is `2**target` times that of another on columns times `2**columns`.

    Parameters
    ----------
    expression
        In the old columns.
    columns
        Exponent of two of each column: the old column is `2**exponent` times the new one.
    target
        Exponent of two of the value.
    form
        Where the powers of two go.

    Returns
    -------
    None where a constant would not be a normal double.
    """
    rewriting = _Rewriting(tuple(columns), collect=form == "collected")
    try:
        if form == "outside":
            found: Expression = mul(rewriting.power(target), rewriting.scaled(expression, 0))
        else:
            found = rewriting.scaled(expression, target)
    except OverflowError:
        return None
    return Rescaled(found, rewriting.origins)


@dataclass
class _Rewriting:
    columns: tuple[int, ...]
    collect: bool
    origins: dict[float, tuple[float | None, int]] = field(default_factory=dict)

    def scaled(self, node: Expression, exponent: int) -> Expression:
        """`2**exponent` times a formula, in the new columns."""
        if isinstance(node, Apply) and node.operator in ("add", "sub", "neg"):
            return Apply(node.operator, tuple(self.scaled(part, exponent) for part in node.arguments))
        made, own = self.natural(node)
        return self.times(made, own + exponent)

    def natural(self, node: Expression) -> tuple[Expression, int]:
        """A formula in the new columns, and the exponent of two that it lacks."""
        if isinstance(node, Variable):
            exponent = self.columns[node.index]
            if self.collect or not exponent:
                return node, exponent
            return mul(self.power(exponent), node), 0
        if isinstance(node, Number):
            if not node.exact:
                self.origins.setdefault(float(node.value), (float(node.value), 0))
            return node, 0
        if not isinstance(node, Apply):
            return node, 0
        if node.operator in ("mul", "div"):
            (left, first), (right, second) = (self.natural(part) for part in node.arguments)
            if node.operator == "mul":
                return self._product(left, right), first + second
            return div(left, right), first - second
        if node.operator in ("neg", "abs"):
            inner, own = self.natural(node.arguments[0])
            return Apply(node.operator, (inner,)), own
        if node.operator in ("add", "sub"):
            parts = [self.natural(part) for part in node.arguments]
            if parts[0][1] == parts[1][1]:
                return Apply(node.operator, (parts[0][0], parts[1][0])), parts[0][1]
        whole = _exponent(node)
        if whole is not None:
            inner, own = self.natural(node.arguments[0])
            product = own * whole
            if product.denominator == 1:
                return Apply(node.operator, (inner, *node.arguments[1:])), int(product)
        return Apply(node.operator, tuple(self.scaled(part, 0) for part in node.arguments)), 0

    def _product(self, left: Expression, right: Expression) -> Expression:
        """A product, whose number in front takes in the power of two in front of its second factor."""
        if isinstance(left, Number) and isinstance(right, Apply) and right.operator == "mul":
            power = right.arguments[0]
            if isinstance(power, Number) and self.origins.get(float(power.value)) == (None, 0):
                mantissa, exponent = math.frexp(float(power.value))
                taken = self._taken_in(left, exponent - 1) if mantissa == 0.5 else None
                if taken is not None:
                    return mul(taken, right.arguments[1])
        return mul(left, right)

    def times(self, node: Expression, exponent: int) -> Expression:
        """`2**exponent` times a formula in the new columns; a constant factor takes it in."""
        if not exponent:
            return node
        taken = self._taken_in(node, exponent)
        return mul(self.power(exponent), node) if taken is None else taken

    def power(self, exponent: int) -> Number:
        """A power of two; raises OverflowError where that is no double."""
        return self._number(Number(1), exponent)

    def _taken_in(self, node: Expression, exponent: int) -> Expression | None:
        if isinstance(node, Number):
            try:
                return self._number(node, exponent)
            except OverflowError:
                return None
        if not isinstance(node, Apply) or node.operator not in ("mul", "div"):
            return None
        left, right = node.arguments
        taken = self._taken_in(left, exponent)
        if taken is not None:
            return right if taken == ONE and node.operator == "mul" else Apply(node.operator, (taken, right))
        taken = self._taken_in(right, exponent if node.operator == "mul" else -exponent)
        if taken is None:
            return None
        return left if taken == ONE else Apply(node.operator, (left, taken))

    def _number(self, number: Number, exponent: int) -> Number:
        if number.exact:
            exact = Fraction(number.value) * Fraction(2) ** exponent
            if max(abs(exact.numerator), exact.denominator) < MAX_EXACT:
                return Number(exact.numerator if exact.denominator == 1 else exact)
        value = math.ldexp(float(number.value), exponent)
        if abs(value) < _MIN_NORMAL and math.frexp(value)[0] != math.frexp(float(number.value))[0]:
            raise OverflowError("a constant below the range of normal doubles would lose digits")
        if exponent and 1 / _SIMPLE <= abs(value) <= _SIMPLE:
            simple = Fraction(value).limit_denominator(_SIMPLE)
            if abs(float(simple) - value) <= _ROUNDING * abs(value):
                # No fitted number is that near to a simple one by chance.
                return Number(simple.numerator if simple.denominator == 1 else simple)
        old, before = self.origins.get(float(number.value), (None, 0))
        self.origins[value] = (None, 0) if number.exact or old is None else (old, before + exponent)
        return Number(value)


def _exponent(node: Apply) -> Fraction | None:
    """The exact exponent of a power; None where there is none."""
    if node.operator == "sqrt":
        return Fraction(1, 2)
    if node.operator == "pow":
        exponent = node.arguments[1]
        if isinstance(exponent, Number) and exponent.exact:
            return Fraction(exponent.value)
    return None
