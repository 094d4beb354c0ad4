"""Products and sums in one fixed arrangement, so that equal laws are written with equal tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from physdiffuser.expressions import ONE, Apply, Expression, Number, Variable, to_prefix
from physdiffuser.expressions.tree import add, call, chain, div, power, sub

Factor = tuple[Expression, Fraction]
Term = tuple[int, Expression]


def order(expression: Expression) -> tuple[Any, ...]:
    """Sort key: numbers, then variables by position, then the rest by length and tokens."""
    match expression:
        case Number(value=value):
            return (0, 0, float(value), ())
        case Variable(index=index):
            return (1, index, 0.0, ())
        case _:
            tokens = tuple(to_prefix(expression))
            return (2, len(tokens), 0.0, tokens)


def _powered(base: Expression, exponent: int) -> Expression:
    return base if exponent == 1 else power(base, Number(exponent))


def _ratio(above: Sequence[Expression], below: Sequence[Expression]) -> Expression:
    top = chain("mul", above) if above else ONE
    return div(top, chain("mul", below)) if below else top


def product(factors: Iterable[Factor]) -> Expression:
    """The product of powers, written as `numerator/denominator` with at most one root in each.

    Equal bases are collected. Whole powers stand first; half powers share one square root, in the
    numerator if anything in it is there.
    """
    exponents: dict[Expression, Fraction] = {}
    for base, exponent in factors:
        exponents[base] = exponents.get(base, Fraction(0)) + exponent
    above: list[Expression] = []
    below: list[Expression] = []
    root_above: list[Expression] = []
    root_below: list[Expression] = []
    for base in sorted(exponents, key=order):
        exponent = exponents[base]
        if exponent == 0:
            continue
        if exponent.denominator == 1:
            (above if exponent > 0 else below).append(_powered(base, abs(int(exponent))))
        else:
            size = abs(exponent.numerator)
            (root_above if exponent > 0 else root_below).append(_powered(base, size))
    if root_above:
        above.append(call("sqrt", _ratio(root_above, root_below)))
    elif root_below:
        below.append(call("sqrt", chain("mul", root_below)))
    return _ratio(above, below)


def total(terms: Iterable[Term]) -> Expression:
    """The sum of signed terms: positive ones first, each group in order."""
    ordered = sorted(terms, key=lambda term: (-term[0], order(term[1])))
    sign, result = ordered[0]
    if sign < 0:
        result = call("neg", result)
    for sign, term in ordered[1:]:
        result = add(result, term) if sign > 0 else sub(result, term)
    return result


def difference(left: Expression, right: Expression) -> Expression:
    """`left - right` up to its sign: the earlier one first."""
    first, second = sorted((left, right), key=order)
    return sub(first, second)


def negated(argument: Expression) -> Apply:
    """`-argument`, as written inside exponentials."""
    return call("neg", argument)
