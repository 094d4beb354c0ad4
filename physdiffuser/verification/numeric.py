"""Values of formulas to many digits, at random points.

A point where two formulas differ by more than rounding can explain proves them different. Agreement
to 40 digits at a dozen random points is strong evidence of equality, though no proof.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import mpmath

from physdiffuser.expressions import Apply, Expression, Number, Parameter, Symbol, Variable
from physdiffuser.expressions.tree import PI

DIGITS = 60
# Agreement asked for, relative to the largest number met on the way.
AGREEMENT = mpmath.mpf(10) ** -40
_HUGE = mpmath.mpf(10) ** 9

Range = tuple[float, float]
Real = Any


class Undefined(ArithmeticError):
    """The formula has no real value at the point, or none that can be computed."""


def _power(base: Real, exponent: Real) -> Real:
    if base == 0:
        if exponent > 0:
            return mpmath.mpf(0)
        if exponent == 0:
            return mpmath.mpf(1)
        raise Undefined
    if base > 0:
        size = exponent * mpmath.log(base)
        if abs(size) > _HUGE:
            raise Undefined
        # Whole powers by multiplication: mpmath's general power would shift by the exponent.
        if exponent == int(exponent) and abs(exponent) < 10**6:
            return base ** int(exponent)
        return mpmath.exp(size)
    if abs(exponent) < 10**6 and exponent == int(exponent):
        return base ** int(exponent)
    raise Undefined


def _divide(left: Real, right: Real) -> Real:
    if right == 0:
        raise Undefined
    return left / right


def _bounded(function: Callable[[Real], Real], low: Real, high: Real) -> Callable[[Real], Real]:
    def apply(argument: Real) -> Real:
        if not low <= argument <= high:
            raise Undefined
        return function(argument)

    return apply


def _log(argument: Real) -> Real:
    if argument <= 0:
        raise Undefined
    return mpmath.log(argument)


def _tan(argument: Real) -> Real:
    cosine = mpmath.cos(argument)
    if cosine == 0:
        raise Undefined
    return mpmath.sin(argument) / cosine


_INFINITY = mpmath.inf
_TRIG = 10**12
_FUNCTIONS: Mapping[str, Callable[..., Real]] = {
    "add": lambda left, right: left + right,
    "sub": lambda left, right: left - right,
    "mul": lambda left, right: left * right,
    "div": _divide,
    "pow": _power,
    "neg": lambda argument: -argument,
    "abs": abs,
    "sqrt": _bounded(mpmath.sqrt, 0, _INFINITY),
    "exp": _bounded(mpmath.exp, -_HUGE, _HUGE),
    "log": _log,
    "sin": _bounded(mpmath.sin, -_TRIG, _TRIG),
    "cos": _bounded(mpmath.cos, -_TRIG, _TRIG),
    "tan": _bounded(_tan, -_TRIG, _TRIG),
    "asin": _bounded(mpmath.asin, -1, 1),
    "acos": _bounded(mpmath.acos, -1, 1),
    "atan": mpmath.atan,
    "sinh": _bounded(mpmath.sinh, -_HUGE, _HUGE),
    "cosh": _bounded(mpmath.cosh, -_HUGE, _HUGE),
    "tanh": _bounded(mpmath.tanh, -_HUGE, _HUGE),
}


def value_at(
    expression: Expression, point: Sequence[Real], parameters: Sequence[Real] = ()
) -> tuple[Real, Real]:
    """Value at one point to `mpmath.mp.dps` digits, and the largest magnitude met on the way.

    Raises
    ------
    Undefined
        Outside the real domain, for magnitudes that would take forever, and for operators of
        plugins, which have no form of many digits.
    """
    largest = mpmath.mpf(0)
    seen: dict[Expression, Real] = {}

    def visit(node: Expression) -> Real:
        nonlocal largest
        known = seen.get(node)
        if known is not None:
            return known
        match node:
            case Number(value=value):
                result = (
                    mpmath.mpf(value.numerator) / value.denominator
                    if not isinstance(value, float)
                    else mpmath.mpf(value)
                )
            case Symbol(value=value):
                result = +mpmath.pi if node == PI else mpmath.mpf(value)
            case Variable(index=index):
                result = point[index]
            case Parameter(index=index):
                result = parameters[index]
            case Apply(operator=operator, arguments=arguments):
                function = _FUNCTIONS.get(operator)
                if function is None:
                    raise Undefined
                result = function(*[visit(argument) for argument in arguments])
        if not mpmath.isfinite(result):
            raise Undefined
        if abs(result) > largest:
            largest = abs(result)
        seen[node] = result
        return result

    try:
        return visit(expression), largest
    except (ValueError, ZeroDivisionError, OverflowError) as error:
        raise Undefined from error


def random_point(ranges: Sequence[Range], rng: random.Random, *, outside: bool = False) -> list[Real]:
    """A point inside the ranges, or in their neighbourhood of the same signs."""
    point = []
    for low, high in ranges:
        if outside:
            low, high = _widened(low, high)
        share = mpmath.mpf(rng.getrandbits(160)) / (1 << 160)
        point.append(low + (mpmath.mpf(high) - low) * share)
    return point


def _widened(low: float, high: float) -> Range:
    span = high - low
    if low >= 0.0:
        return low / 3.0, high + 2.0 * span
    if high <= 0.0:
        return low - 2.0 * span, high / 3.0
    return low - span, high + span


def agree(left: Expression, right: Expression, point: Sequence[Real]) -> bool | None:
    """Whether two formulas have the same value at a point; None where neither has one.

    One formula being defined where the other is not counts as a difference.
    """
    try:
        first, left_size = value_at(left, point)
    except Undefined:
        first = None
    try:
        second, right_size = value_at(right, point)
    except Undefined:
        second = None
    if first is None and second is None:
        return None
    if first is None or second is None:
        return False
    return bool(abs(first - second) <= AGREEMENT * max(left_size, right_size))
