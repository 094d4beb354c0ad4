"""Cheap rewritings of what the search finds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from physdiffuser.expressions import ONE, Apply, Expression, Number
from physdiffuser.expressions.tree import (
    add,
    div,
    fitted_constants,
    mul,
    number_expression,
    size,
    sub,
    substitute,
    walk,
)


@dataclass(frozen=True)
class RewritingPolicy:
    """Which formulas are rewritten, and what is tried.

    Sizes were set by the time that rewriting takes, the others by hand.
    """

    max_nodes: int = 40
    max_constants: int = 6
    max_nodes_at_the_end: int = 70
    """Arranging takes some milliseconds for a law, and up to half a second for a sum of many unlike terms:
    nodes and constants of a formula, and nodes at the end of the search."""
    max_decades: float = 15.0
    """Constants that only rewriting makes as large or small as so many decades are not for readers."""
    max_turns: int = 1000
    """Beyond so many turns a phase has lost digits that the sine needs."""
    max_product: int = 6
    """Powers that are written as products where powers may not occur."""
    rounding_distance: float = 0.01
    max_rounded: int = 12
    """How near a fitted constant must be to a half integer to be tried as one, and how large those are."""


POLICY = RewritingPolicy()


def worth_arranging(expression: Expression, *, at_the_end: bool = False) -> bool:
    """Whether a formula may be a law, and is worth the time that arranging takes.

    Parameters
    ----------
    at_the_end
        Whether this is one of the few that the user will see, rather than one of the many on the way.
    """
    if at_the_end:
        return size(expression) <= POLICY.max_nodes_at_the_end
    return size(expression) <= POLICY.max_nodes and fitted_constants(expression) <= POLICY.max_constants


def tame(new: Expression, old: Expression) -> bool:
    """Whether a rewriting kept constants readable: `exp(180*(x - 1))` is not to become `1e-78*exp(180*x)`."""
    return _widest(new) <= max(2 * _widest(old), POLICY.max_decades)


def _widest(expression: Expression) -> float:
    """Decades that the constant farthest from 1 lies away from it."""
    sizes = (abs(float(node.value)) for node in walk(expression) if isinstance(node, Number) and node.value)
    return max((abs(math.log10(size)) for size in sizes if 0.0 < size < math.inf), default=0.0)


def one_fraction(expression: Expression) -> Expression:
    """Sums with a quotient in them over one denominator: `a + b/c` as `(a*c + b)/c`, from the inside out."""
    if not isinstance(expression, Apply):
        return expression
    arguments = tuple(one_fraction(argument) for argument in expression.arguments)
    if expression.operator in ("add", "sub"):
        combine = add if expression.operator == "add" else sub
        (left, below_left), (right, below_right) = map(_parts, arguments)
        if below_left is not None and below_right is not None:
            return div(combine(mul(left, below_right), mul(right, below_left)), mul(below_left, below_right))
        if below_right is not None:
            return div(combine(mul(left, below_right), right), below_right)
        if below_left is not None:
            return div(combine(left, mul(right, below_left)), below_left)
    return Apply(expression.operator, arguments)


def _parts(expression: Expression) -> tuple[Expression, Expression | None]:
    if isinstance(expression, Apply) and expression.operator == "div":
        return expression.arguments[0], expression.arguments[1]
    return expression, None


def without_powers(expression: Expression) -> Expression:
    """The formula with small whole powers as products: `x*x` for `x**2`."""

    def replace(node: Expression) -> Expression | None:
        if not (isinstance(node, Apply) and node.operator == "pow"):
            return None
        exponent = node.arguments[1]
        if not (isinstance(exponent, Number) and exponent.exact):
            return None
        value = Fraction(exponent.value)
        if value.denominator != 1 or not 2 <= abs(value) <= POLICY.max_product:
            return None
        base = without_powers(node.arguments[0])
        product = base
        for _ in range(abs(int(value)) - 1):
            product = mul(product, base)
        return product if value > 0 else div(ONE, product)

    return substitute(expression, replace)


def small_phases(expression: Expression) -> Expression:
    """The formula with fitted phases within half a turn: `sin(x - 1.57)` for `sin(x + 10.99)`."""

    def replace(node: Expression) -> Expression | None:
        if not (isinstance(node, Apply) and node.operator in ("sin", "cos")):
            return None
        (argument,) = node.arguments
        if not (isinstance(argument, Apply) and argument.operator in ("add", "sub")):
            return None
        terms = tuple(_phase(term) or substitute(term, replace) for term in argument.arguments)
        return Apply(node.operator, (Apply(argument.operator, terms),))

    return substitute(expression, replace)


def _phase(term: Expression) -> Number | None:
    if not isinstance(term, Number) or term.exact:
        return None
    phase = float(term.value)
    return (
        Number(math.remainder(phase, math.tau))
        if math.pi < abs(phase) < POLICY.max_turns * math.tau
        else None
    )


def worth_rounding(expression: Expression) -> Expression:
    """The formula with constants near half integers made so, where that says more than chance would.

    That is when no fitted constant is left (`1.0004*a**1.4997` as `a**1.5`), or else for exponents alone:
    next to another fitted constant, 3.53 is no more likely to be 3.5 than to be itself.
    """
    every = rounded(expression)
    if not fitted_constants(every):
        return every

    def replace(node: Expression) -> Expression | None:
        if isinstance(node, Apply) and node.operator == "pow" and isinstance(node.arguments[1], Number):
            return Apply("pow", (substitute(node.arguments[0], replace), rounded(node.arguments[1])))
        return None

    return substitute(expression, replace)


def rounded(expression: Expression) -> Expression:
    """The formula with fitted constants near small whole or half numbers made so.

    A guess that costs one evaluation: `1.0004*a**1.4997` may be `a**1.5` measured with errors that are
    not those of least squares. The archive keeps both, and the description length decides.
    """

    def replace(node: Expression) -> Expression | None:
        if not isinstance(node, Number) or node.exact:
            return None
        value = float(node.value)
        if not 0.25 < abs(value) < POLICY.max_rounded + 0.5:
            return None
        nearest = Fraction(round(2 * value), 2)
        if abs(value - nearest) > POLICY.rounding_distance * abs(value):
            return None
        return number_expression(nearest)

    return substitute(expression, replace)
