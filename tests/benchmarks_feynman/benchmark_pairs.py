"""Pairs of formulas for the judge: laws of the suites in awkward ways, and near misses of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np

from benchmarks_feynman.sampling import bits, draw
from benchmarks_feynman.suites import Law
from physdiffuser.expressions import Apply, Expression, Number, Variable, evaluate
from physdiffuser.expressions.tree import ONE, PI, add, call, div, mul, power, sub, substitute, variables

TWO = Number(2)
HALF = Number(Fraction(1, 2))
Rewrite = Callable[[Expression], Expression | None]


def everywhere(expression: Expression, rewrite: Rewrite) -> Expression:
    """Rewrite from the leaves up."""
    if not isinstance(expression, Apply):
        return expression
    arguments = tuple(everywhere(argument, rewrite) for argument in expression.arguments)
    node = Apply(expression.operator, arguments)
    return rewrite(node) or node


def other_functions(node: Expression) -> Expression | None:
    """Half angles, exponentials and logarithms for what is written otherwise."""
    match node:
        case Apply(operator="pow", arguments=(Apply(operator="sin", arguments=(angle,)), Number(value=2))):
            return div(sub(ONE, call("cos", mul(TWO, angle))), TWO)
        case Apply(operator="cos", arguments=(angle,)):
            return sub(ONE, mul(TWO, power(call("sin", div(angle, TWO)), TWO)))
        case Apply(operator="sin", arguments=(angle,)):
            return mul(TWO, mul(call("sin", div(angle, TWO)), call("cos", div(angle, TWO))))
        case Apply(operator="tanh", arguments=(angle,)):
            return sub(ONE, div(TWO, add(call("exp", mul(TWO, angle)), ONE)))
        case Apply(operator="exp", arguments=(exponent,)):
            return div(ONE, call("exp", Apply("neg", (exponent,))))
        case Apply(operator="log", arguments=(Apply(operator="div", arguments=(above, below)),)):
            return sub(call("log", above), call("log", below))
        case Apply(operator="asin", arguments=(sine,)):
            return sub(div(PI, TWO), call("acos", sine))
        case Apply(operator="sqrt", arguments=(inner,)):
            return power(inner, HALF)
    return None


def expanded(node: Expression) -> Expression | None:
    """Products of sums multiplied out, squares of sums written as three terms."""
    if not isinstance(node, Apply) or len(node.arguments) != 2:
        return None
    left, right = node.arguments
    match node.operator, _sum(left), _sum(right):
        case "mul", _, (sign, a, b):
            return Apply(sign, (mul(left, a), mul(left, b)))
        case "mul", (sign, a, b), _:
            return Apply(sign, (mul(a, right), mul(b, right)))
        case "div", (sign, a, b), _:
            return Apply(sign, (div(a, right), div(b, right)))
        case "pow", (sign, a, b), _ if right == TWO:
            return add(Apply(sign, (power(a, TWO), mul(mul(TWO, a), b))), power(b, TWO))
    if node.operator == "sub" and left == ONE and isinstance(right, Apply) and right.operator == "div":
        above, below = right.arguments
        return div(sub(below, above), below)
    return None


def _sum(node: Expression) -> tuple[str, Expression, Expression] | None:
    """Sign and terms of a sum or difference."""
    if isinstance(node, Apply) and node.operator in ("add", "sub"):
        return node.operator, *node.arguments  # type: ignore[return-value]
    return None


def equal_pairs(law: Law) -> Iterator[Expression]:
    """The law, awkwardly."""
    truth = law.expression
    for rewrite in (other_functions, expanded):
        found = everywhere(truth, rewrite)
        if found != truth:
            yield found
    # For a positive first column, a root of its square is that column.
    if law.variables[0].low >= 0:
        root = call("sqrt", power(Variable(0), TWO))
        yield substitute(truth, lambda node: root if node == Variable(0) else None)


def near_misses(law: Law) -> Iterator[Expression]:
    """Not the law, though close: a constant off by 1e-4, a wrong exponent, two columns swapped."""
    truth = law.expression
    yield mul(Number(1.0001), truth)
    yield substitute(
        truth, lambda node: power(Variable(0), Number(Fraction(101, 100))) if node == Variable(0) else None
    )
    first, *rest = sorted(variables(truth))
    if rest:
        swap = {Variable(first): Variable(rest[0]), Variable(rest[0]): Variable(first)}
        swapped = substitute(truth, lambda node: swap.get(node) if isinstance(node, Variable) else None)
        table = draw(law.variables, bits(law, 0, "swap"), 20)
        # Many laws are symmetric in their first two columns: swapped, they are still the law.
        if not np.allclose(
            evaluate(swapped, table), evaluate(truth, table), rtol=1e-6, atol=0, equal_nan=True
        ):
            yield swapped
