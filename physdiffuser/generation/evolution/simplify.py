"""Smaller formulas next to a given one: what evolution tries on whatever reaches the front."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.expressions import ONE, Apply, Expression, Number, evaluate
from physdiffuser.expressions.tree import number_expression, positions, replace_at
from physdiffuser.generation.evolution.scaling import pull

# Exponents that laws have.
_DENOMINATORS = (1, 2, 3, 4)
_MAX_EXPONENT = 12
_ROUNDING = 1e-13
_CANCELLED = 0.02


def strip(expression: Expression, columns: int) -> Expression:
    """The formula without the outer scale and offset, which scoring fits anew, and with factors merged."""
    while True:
        _, rest = pull(expression, (0,) * columns)
        if rest is None:
            return ONE
        if isinstance(rest, Apply) and rest.operator in ("add", "sub"):
            left, right = rest.arguments
            if isinstance(left, Number):
                expression = right
                continue
            if isinstance(right, Number):
                expression = left
                continue
        return rest


def simpler(expression: Expression) -> list[Expression]:
    """Neighbours with a part left out, or with a constant rounded to an exact number."""
    found: dict[Expression, None] = {}
    for path, node in positions(expression):
        if isinstance(node, Apply):
            for argument in node.arguments:
                found[replace_at(expression, path, argument)] = None
                if isinstance(argument, Apply):
                    # exp(c*f) - 1 with a tiny c is f: two steps down at once.
                    for inner in argument.arguments:
                        found[replace_at(expression, path, inner)] = None
            if node.operator == "sub":
                found[replace_at(expression, path, Apply("neg", (node.arguments[1],)))] = None
            if node.operator in ("div", "sub") and not (
                isinstance(node.arguments[0], Number) and node.arguments[0].exact
            ):
                # c/f and c - f with c absorbed elsewhere.
                found[replace_at(expression, path, Apply(node.operator, (ONE, node.arguments[1])))] = None
        elif isinstance(node, Number) and isinstance(node.value, float):
            for exact in _exact(node.value):
                found[replace_at(expression, path, exact)] = None
    found.pop(expression, None)
    return list(found)


def _exact(value: float) -> list[Number]:
    if abs(value) > _MAX_EXPONENT:
        return []
    near: dict[Fraction, None] = {}
    for denominator in _DENOMINATORS:
        fraction = Fraction(round(value * denominator), denominator)
        if fraction and abs(float(fraction) - value) <= 0.1 * abs(value) + 0.02:
            near[fraction] = None
    return [number_expression(fraction) for fraction in near]


def degenerate(expression: Expression, inputs: FloatArray) -> bool:
    """Whether a function acts as a limit of itself: `exp(c*f) - 1` with a tiny c, `1 - tanh(f)` far out.

    Such a formula stands for a simpler one (`f`, `exp(-2*f)`), and would keep it from being looked for.
    """
    for _, node in positions(expression):
        if not isinstance(node, Apply) or node.operator not in ("add", "sub"):
            continue
        for constant, other in (node.arguments, node.arguments[::-1]):
            if isinstance(constant, Number) and isinstance(other, Apply) and len(other.arguments) == 1:
                left, whole = np.abs(evaluate(node, inputs)).max(), np.abs(evaluate(other, inputs)).max()
                if left < _CANCELLED * whole:
                    return True
    return False


def without_rounding(expression: Expression, inputs: FloatArray) -> Expression:
    """The formula without constants that are rounding errors: addends near 0 and factors near 1.

    Parameters
    ----------
    expression
        A fitted formula.
    inputs
        Shape (rows, columns): an addend is compared with what it is added to on these rows.
    """
    if not isinstance(expression, Apply):
        return expression
    arguments = tuple(without_rounding(argument, inputs) for argument in expression.arguments)
    if len(arguments) == 2:
        for constant, other in (arguments, arguments[::-1]):
            if not (isinstance(constant, Number) and isinstance(constant.value, float)):
                continue
            match expression.operator:
                case "add":
                    if _negligible(constant.value, other, inputs):
                        return other
                case "sub":
                    if _negligible(constant.value, other, inputs):
                        return other if other is arguments[0] else Apply("neg", (other,))
                case "mul":
                    if abs(constant.value - 1.0) < _ROUNDING:
                        return other
    return Apply(expression.operator, arguments)


def _negligible(value: float, beside: Expression, inputs: FloatArray) -> bool:
    size = np.median(np.abs(evaluate(beside, inputs)))
    return bool(abs(value) < _ROUNDING * size)
