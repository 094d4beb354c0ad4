"""Functions that only act as a limit of themselves: `exp(c*u) - 1` with a tiny c, `atan(c*u) - pi/2` far out,
`tanh(c*u)/c` with a tiny c, `1/(1 + c*exp(u))` with a large one, and two values of one function that nearly
cancel, `c*log(u + a) - c*log(u + b)`.

Fits drive constants there when a formula can take the shape of another only in the limit: `1/u` as
`c*(pi/2 - atan(c*u))` with c growing without end. What stands for the limit is the other formula.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.expressions import ONE, Apply, Expression, Number, evaluate
from physdiffuser.expressions.tree import add, call, div, mul, power, sub, variables


@dataclass(frozen=True)
class LimitingFormPolicy:
    """When a function is replaced by the first term of its series.

    Set by hand.
    """

    cancelled: float = 0.02
    """Share that a constant leaves of the function beside it, where they cancel."""
    far: float = 10.0
    far_exponent: float = 2.0
    near: float = 0.1
    """Arguments from which on, or up to which, the first term of the series is the function."""
    straight: float = 1e-3
    negligible: float = 1e-6
    """Changes of an argument within which a function is a line, and the share of a sum that a constant must
    have."""
    rounding: float = 1e-9
    """A constant left over that is below this share of the rest is rounding."""


POLICY = LimitingFormPolicy()

# Functions that a line takes the place of; at a point where they are level they are left alone.
_SMOOTH = ("sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "atan")


def limiting_form(expression: Expression, inputs: FloatArray) -> Expression | None:
    """The formula with such functions replaced by their limits; None if it has none.

    Constants are those of the series, so that a fit has to follow.
    """
    if not isinstance(expression, Apply):
        return None
    arguments = tuple(limiting_form(argument, inputs) or argument for argument in expression.arguments)
    node = Apply(expression.operator, arguments)
    if node.operator in ("add", "sub"):
        taken = _cancelled(node, inputs) or _difference(node, inputs) or _larger_part(node, inputs)
        if taken is not None:
            return taken
    if node.operator == "log" and variables(node):
        with np.errstate(all="ignore"):
            near = np.abs(evaluate(node, inputs)).max() < POLICY.cancelled
        if near:
            return sub(node.arguments[0], ONE)
    if node.operator in ("sinh", "cosh"):
        far = _exponential(node, inputs)
        if far is not None:
            return far
    if node.operator in _SMOOTH:
        line = _line(node, inputs)
        if line is not None:
            return line
    return node if arguments != expression.arguments else None


def _exponential(node: Apply, inputs: FloatArray) -> Expression | None:
    """`sinh(u)` and `cosh(u)` far out, as `exp(u)/2` or what that is for negative arguments."""
    argument = evaluate(node.arguments[0], inputs)
    side = math.copysign(1.0, float(argument[0]))
    if not (argument * side > POLICY.far).all():
        return None
    sign = side if node.operator == "sinh" else 1.0
    tail = node.arguments[0] if side > 0 else call("neg", node.arguments[0])
    return mul(Number(0.5 * sign), call("exp", tail))


def _larger_part(node: Apply, inputs: FloatArray) -> Expression | None:
    """`constant ± u` without the constant, where u is much larger on all rows."""
    for place, constant in enumerate(node.arguments):
        other = node.arguments[1 - place]
        if isinstance(constant, Number) and variables(other):
            with np.errstate(all="ignore"):
                least = np.abs(evaluate(other, inputs)).min()
            if abs(float(constant.value)) < POLICY.negligible * least:
                return call("neg", other) if node.operator == "sub" and place == 0 else other
    return None


def _line(node: Apply, inputs: FloatArray) -> Expression | None:
    """`f(p + u)` with a small u as `f(p) + f'(p)*u`."""
    moving, at = _without_constant(node.arguments[0])
    with np.errstate(all="ignore"):
        if not variables(moving) or not np.abs(evaluate(moving, inputs)).max() < POLICY.straight:
            return None
        near = [
            evaluate(Apply(node.operator, (Number(at + step),)), inputs[:1]) for step in (-1e-5, 0.0, 1e-5)
        ]
    below, value, above = (float(np.ravel(one)[0]) for one in near)
    slope = (above - below) / 2e-5
    if not (math.isfinite(value) and abs(slope) > POLICY.straight):
        return None
    line = moving if at == 0 else mul(Number(slope), moving)
    return line if value == 0 else add(line, Number(value))


def _without_constant(node: Expression) -> tuple[Expression, float]:
    """A sum without its constant, and the constant."""
    if isinstance(node, Apply) and node.operator in ("add", "sub"):
        left, right = node.arguments
        if isinstance(right, Number):
            return left, float(right.value) * (1.0 if node.operator == "add" else -1.0)
        if isinstance(left, Number) and node.operator == "add":
            return right, float(left.value)
    return node, 0.0


def _cancelled(node: Apply, inputs: FloatArray) -> Expression | None:
    """`constant ± c*f(u)`, in any order, where most of it cancels, as `constant' ± c*tail(u)`."""
    sign = 1.0 if node.operator == "add" else -1.0
    for place, other in enumerate(node.arguments):
        constant = node.arguments[1 - place]
        factor, function = _factor(other)
        if not isinstance(constant, Number) or function is None:
            continue
        before, beside = (sign, 1.0) if place == 0 else (1.0, sign)
        with np.errstate(all="ignore"):
            left, whole = np.abs(evaluate(node, inputs)).max(), np.abs(evaluate(other, inputs)).max()
            argument = evaluate(function.arguments[0], inputs)
        if not left < POLICY.cancelled * whole:
            return None
        found = _series(function.operator, function.arguments[0], argument)
        if found is None:
            return None
        limit, scale, tail = found
        rest = before * float(constant.value) + beside * factor * limit
        term = _times(beside * factor * scale, tail)
        return term if abs(rest) <= POLICY.rounding * left else add(term, Number(rest))
    return None


def _difference(node: Apply, inputs: FloatArray) -> Expression | None:
    """`a*f(u) - b*f(v)` with u near v, where most of it cancels, as `a*f'(v)*(u - v) + (a - b)*f(v)`."""
    (left, first), (right, second) = (_scaled(argument) for argument in node.arguments)
    if node.operator == "add":
        right = -right
    if first is None or second is None or first == second or _kind(first) != _kind(second):
        return None
    with np.errstate(all="ignore"):
        rest = np.abs(evaluate(node, inputs)).max()
        whole = np.abs(left * evaluate(second, inputs)).max()
    if not rest < POLICY.cancelled * whole:
        return None
    near = second.arguments[0]
    slope = _slope(second, near)
    if slope is None:
        return None
    term = mul(Number(left), mul(slope, sub(first.arguments[0], near)))
    with np.errstate(over="ignore"):
        equal = abs(left - right) * whole <= POLICY.rounding * rest * abs(left)
    return term if equal else add(term, mul(Number(left - right), second))


def _scaled(node: Expression) -> tuple[float, Apply | None]:
    """A number and the function or power that it multiplies."""
    if isinstance(node, Apply) and node.operator == "neg":
        factor, function = _scaled(node.arguments[0])
        return -factor, function
    if isinstance(node, Apply) and node.operator == "mul":
        left, right = node.arguments
        if isinstance(right, Number):
            left, right = right, left
        if isinstance(left, Number):
            factor, function = _scaled(right)
            return float(left.value) * factor, function
    taken = isinstance(node, Apply) and (len(node.arguments) == 1 or _exponent(node) is not None)
    return 1.0, node if taken and isinstance(node, Apply) and variables(node) else None


def _exponent(node: Expression) -> Number | None:
    match node:
        case Apply(operator="pow", arguments=(_, Number() as exponent)):
            return exponent
    return None


def _kind(node: Apply) -> tuple[str, Number | None]:
    return node.operator, _exponent(node)


def _whole(value: int | Fraction | float) -> int | Fraction | float:
    return int(value) if isinstance(value, Fraction) and value.denominator == 1 else value


def _slope(function: Apply, at: Expression) -> Expression | None:
    """The derivative of a function or power by its argument."""
    exponent = _exponent(function)
    if exponent is not None:
        return mul(exponent, power(at, Number(_whole(exponent.value - 1))))
    square = power(at, Number(2))
    match function.operator:
        case "log":
            return div(ONE, at)
        case "exp":
            return function
        case "sqrt":
            return div(Number(0.5), function)
        case "sin":
            return call("cos", at)
        case "cos":
            return mul(Number(-1), call("sin", at))
        case "atan":
            return div(ONE, add(ONE, square))
        case "tanh":
            return sub(ONE, power(function, Number(2)))
    return None


def _factor(node: Expression) -> tuple[float, Apply | None]:
    """A number and the function of one argument that it multiplies; a power as an exponential."""
    if not isinstance(node, Apply):
        return 1.0, None
    if node.operator != "mul":
        return 1.0, _function(node)
    left, right = node.arguments
    if isinstance(right, Number):
        left, right = right, left
    return (float(left.value), _function(right)) if isinstance(left, Number) else (1.0, None)


def _function(node: Expression) -> Apply | None:
    if not isinstance(node, Apply):
        return None
    if node.operator == "pow" and isinstance(node.arguments[1], Number):
        return call("exp", mul(node.arguments[1], call("log", node.arguments[0])))
    return node if len(node.arguments) == 1 else None


def _times(factor: float, node: Expression) -> Expression:
    return node if factor == 1.0 else mul(Number(factor), node)


def _series(operator: str, tree: Expression, values: FloatArray) -> tuple[float, float, Expression] | None:
    """`f(u)` as `limit + scale*tail`, where u is far out or near zero on all rows."""
    least, most = float(np.abs(values).min()), float(np.abs(values).max())
    side = math.copysign(1.0, float(values[0]))
    if not math.isfinite(most):
        return None
    aside = bool((values * side >= 0).all())
    match operator:
        case "atan" if aside and least > POLICY.far:
            return side * math.pi / 2, -1.0, div(ONE, tree)
        case "tanh" if aside and least > POLICY.far_exponent:
            return side, -2.0 * side, call("exp", mul(Number(int(-2 * side)), tree))
        case "exp" if most < POLICY.near:
            return 1.0, 1.0, tree
        case "cos" if most < POLICY.near:
            return 1.0, -0.5, power(tree, Number(2))
    return None
