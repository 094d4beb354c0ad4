"""Trees taken apart into a number and powers of factors, and put together again; sums into terms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeGuard

from physdiffuser.expressions.simplification.exact import Value, magnitude, tidy, whole_root
from physdiffuser.expressions.simplification.quotients import HALF, Item, quotient
from physdiffuser.expressions.tree import Apply, Expression, Number, Symbol, Variable, walk


@dataclass(frozen=True)
class Factors:
    """A number times powers of other factors.

    Attributes
    ----------
    coefficient
        A float where it was fitted.
    items
        Factors with their exponents, none of them a number.
    divided
        Whether the number is written as the divisor it is the reciprocal of: `x/s` rather than `k*x`.
    """

    coefficient: Value
    items: tuple[Item, ...]
    divided: bool = False

    @property
    def is_fitted(self) -> bool:
        """Whether the number was fitted, or set to a decimal: no small whole number or fraction is."""
        value = self.coefficient
        return isinstance(value, float) or max(abs(value.numerator), value.denominator) > _MAX_PLAIN

    @property
    def is_number(self) -> bool:
        """Whether there is nothing but the number."""
        return not self.items

    def scaled(self, factor: Value) -> Factors:
        """Times a number; a product that is 1 but for rounding is 1."""
        product = self.coefficient * factor
        if isinstance(product, Fraction):
            product = tidy(product)
        if isinstance(product, float) and abs(abs(product) - 1.0) < ROUNDING:
            product = 1 if product > 0 else -1
        return replace(self, coefficient=product)

    @property
    def tree(self) -> Expression:
        """The product as a tree: number, names, functions."""
        items = sorted(self.items, key=_rank)
        coefficient = self.coefficient
        if self.divided and self.is_fitted and coefficient:
            items.append((Number(tidy(inverse(magnitude(coefficient)))), -1))
            coefficient = 1 if coefficient > 0 else -1
        return quotient(coefficient, items)


_MAX_PLAIN = 60
ROUNDING = 1e-9
"""Numbers that differ by less than this share are equal."""


def _rank(item: Item) -> tuple[int, int, int]:
    """Names stand before functions, an exponential before the others; then by the first column."""
    tree, _ = item
    columns = [node.index for node in walk(tree) if isinstance(node, Variable)]
    kind = 2
    if isinstance(tree, Symbol) or not columns:
        kind = 0
    elif isinstance(tree, Variable):
        kind = 1
    elif isinstance(tree, Apply) and tree.operator == "exp":
        kind = 3
    elif isinstance(tree, Apply) and tree.operator not in ("add", "sub", "mul", "div", "pow", "sqrt"):
        kind = 4
    return kind, 0 if kind in (0, 2) else min(columns), 0


def factors_of(tree: Expression) -> Factors:
    """A tree as a product; powers of sums and of functions are factors."""
    match tree:
        case Number(value=value):
            return Factors(value, ())
        case Apply(operator="neg", arguments=(inner,)):
            return factors_of(inner).scaled(-1)
        case Apply(operator="mul", arguments=(left, right)):
            first, second = factors_of(left), factors_of(right)
            return merged(first, second)
        case Apply(operator="div", arguments=(left, right)):
            first, second = factors_of(left), factors_of(right)
            if second.coefficient == 0:
                return Factors(1, ((tree, 1),))
            made = merged(first, second, -1)
            return replace(made, divided=True) if second.is_fitted and not first.is_fitted else made
        case Apply(operator="sqrt", arguments=(inner,)):
            return _power(inner, HALF)
        case Apply(operator="pow", arguments=(base, Number(value=exponent))):
            return _power(base, exponent)
    return Factors(1, ((tree, 1),))


def _power(base: Expression, exponent: Value) -> Factors:
    """A power; the fitted number of a product is taken out of it."""
    inner = factors_of(base)
    whole = isinstance(exponent, int)
    outside = raised(magnitude(inner.coefficient), exponent)
    if outside is None or (inner.coefficient < 0 and not whole):
        return Factors(1, ((base, exponent),))
    if len(inner.items) == 1 and (inner.is_fitted or inner.coefficient == 1):
        tree, power = inner.items[0]
        if isinstance(power, int) and power < 0 and power % 2:
            # sqrt(k/u) is a number over a root.
            return Factors(outside, ((tree, tidy(Fraction(power) * exponent)),))
    if not (inner.is_fitted and inner.items):
        return Factors(1, ((base, exponent),))
    sign = -1 if inner.coefficient < 0 and exponent % 2 else 1
    return Factors(sign * outside, ((replace(inner, coefficient=1).tree, exponent),))


def merged(first: Factors, second: Factors, sign: int = 1) -> Factors:
    """The product of two products, or with the sign -1 their quotient."""
    items = list(first.items)
    for base, power in second.items:
        exponent = power if sign > 0 else _negative(power)
        known = (at for at, (old, one) in enumerate(items) if old == base and is_value(one))
        place = next(known, None) if is_value(exponent) else None
        if place is None:
            items.append((base, exponent))
            continue
        total = items[place][1] + exponent  # type: ignore[operator]
        if total == 0:
            items.pop(place)
        else:
            items[place] = (base, total)
    coefficient = second.coefficient if sign > 0 else inverse(second.coefficient)
    return Factors(first.coefficient, tuple(items)).scaled(coefficient)


def _negative(power: Value | Expression) -> Value | Expression:
    if is_value(power):
        return -power
    assert isinstance(power, Expression)
    return Apply("neg", (power,))


def inverse(value: Value) -> Value:
    """One over a number, exact where it is."""
    return 1.0 / value if isinstance(value, float) else Fraction(1) / Fraction(value)


def terms_of(tree: Expression, sign: int = 1) -> list[Factors]:
    """A tree as a sum of products."""
    match tree:
        case Apply(operator="add" | "sub" as operator, arguments=(left, right)):
            return terms_of(left, sign) + terms_of(right, sign if operator == "add" else -sign)
        case Apply(operator="neg", arguments=(inner,)):
            return terms_of(inner, -sign)
    return [factors_of(tree).scaled(sign)]


def sum_of(terms: Sequence[Factors]) -> Expression:
    """A sum of products as a tree, in the order given; a positive term leads if there is one."""
    ordered = (
        sorted(terms, key=lambda term: term.coefficient < 0) if terms[0].coefficient < 0 else list(terms)
    )
    tree = ordered[0].tree
    for term in ordered[1:]:
        if term.coefficient < 0:
            tree = Apply("sub", (tree, term.scaled(-1).tree))
        else:
            tree = Apply("add", (tree, term.tree))
    return tree


def is_value(power: Value | Expression) -> TypeGuard[Value]:
    """Whether a power is a number."""
    return isinstance(power, int | float | Fraction)


def raised(value: Value, power: Value) -> Value | None:
    """A positive number to a power; None where it is not finite."""
    if power in (1, -1):
        return value if power == 1 else inverse(value)
    root = whole_root(value, 2) if power in (HALF, -HALF) else None
    if root is not None:
        return root if power > 0 else inverse(root)
    try:
        result = float(value) ** float(power)
    except (OverflowError, ZeroDivisionError):
        return None
    return result if math.isfinite(result) and result > 0.0 else None
