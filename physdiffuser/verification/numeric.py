"""Values of formulas to many digits, at random points.

A point where two formulas differ by more than rounding can explain proves them different. Agreement
to 40 digits at a dozen random points is strong evidence of equality, though no proof.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import mpmath
import numpy as np

from physdiffuser.expressions import OPERATORS, Apply, Expression, Number, Parameter, Symbol, Variable
from physdiffuser.expressions.tree import PI

DIGITS = 60
# Agreement asked for, relative to the largest number met on the way.
AGREEMENT = mpmath.mpf(10) ** -40
_HUGE = mpmath.mpf(10) ** 9

Range = tuple[float, float]
Real = Any


class Undefined(ArithmeticError):
    """The formula has no real value at the point."""


class TooLarge(Undefined):
    """Whether there is a value cannot be decided: a magnitude would take forever, or a plugin's operator."""


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
            raise TooLarge
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


def _inside(function: Callable[[Real], Real], low: Real, high: Real) -> Callable[[Real], Real]:
    def apply(argument: Real) -> Real:
        if not low <= argument <= high:
            raise Undefined
        return function(argument)

    return apply


def _up_to(function: Callable[[Real], Real], limit: Real) -> Callable[[Real], Real]:
    def apply(argument: Real) -> Real:
        if not abs(argument) <= limit:
            raise TooLarge
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
    "sqrt": _inside(mpmath.sqrt, 0, _INFINITY),
    "exp": _up_to(mpmath.exp, _HUGE),
    "log": _log,
    "sin": _up_to(mpmath.sin, _TRIG),
    "cos": _up_to(mpmath.cos, _TRIG),
    "tan": _up_to(_tan, _TRIG),
    "asin": _inside(mpmath.asin, -1, 1),
    "acos": _inside(mpmath.acos, -1, 1),
    "atan": mpmath.atan,
    "sinh": _up_to(mpmath.sinh, _HUGE),
    "cosh": _up_to(mpmath.cosh, _HUGE),
    "tanh": _up_to(mpmath.tanh, _HUGE),
}


def _of_plugin(operator: str) -> Callable[..., Real]:
    """An operator that a plugin registered, by its sympy form."""
    spec = OPERATORS.get(operator)
    if spec is None:
        raise TooLarge

    def function(*values: Real) -> Real:
        import sympy

        try:
            digits = mpmath.mp.dps
            result = sympy.N(spec.sympy(*(sympy.Float(value, digits) for value in values)), digits)
            number = result._to_mpmath(mpmath.mp.prec) if result.is_Float or result.is_Rational else None
            with np.errstate(all="ignore"):
                expected = float(spec.evaluate(*(np.array([float(value)]) for value in values))[0])
        except Exception as error:  # the code is not ours
            raise TooLarge from error
        if number is None and not math.isfinite(expected):
            raise Undefined
        # Two forms that disagree prove nothing.
        if number is None or not abs(number - expected) <= 1e-6 * max(abs(expected), 1e-300):
            raise TooLarge
        return number

    return function


_CANCELLING = frozenset({"sin", "cos", "tan"})


def value_at(
    expression: Expression, point: Sequence[Real], parameters: Sequence[Real] = ()
) -> tuple[Real, Real]:
    """Value at one point to `mpmath.mp.dps` digits, and the largest magnitude met on the way.

    Raises
    ------
    Undefined
        Outside the real domain, for magnitudes that would take forever, and for operators of plugins whose
        sympy form has no value of many digits.
    """
    largest = mpmath.mpf(0)
    rounding = mpmath.mpf(10) ** (8 - mpmath.mp.dps)
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
                function = _FUNCTIONS.get(operator) or _of_plugin(operator)
                values = [visit(argument) for argument in arguments]
                result = function(*values)
                if operator in _CANCELLING and abs(result) < rounding * max(1, *map(abs, values)):
                    # sin(pi), or x - x by another way: zero to all digits is zero.
                    result = mpmath.mpf(0)
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


def random_point(ranges: Sequence[Range], rng: random.Random) -> list[Real]:
    """A point inside the ranges."""
    point = []
    for low, high in ranges:
        share = mpmath.mpf(rng.getrandbits(160)) / (1 << 160)
        point.append(low + (mpmath.mpf(high) - low) * share)
    return point


def agree(left: Expression, right: Expression, point: Sequence[Real]) -> bool | None:
    """Whether two formulas have the same value at a point.

    The right one is the reference: None where it has no value, or where the left one's cannot be
    computed; False where only the reference has a value.
    """
    try:
        second, right_size = value_at(right, point)
        first, left_size = value_at(left, point)
    except TooLarge:
        return None
    except Undefined:
        return None if not _defined(right, point) else False
    return bool(abs(first - second) <= AGREEMENT * max(left_size, right_size))


def _defined(expression: Expression, point: Sequence[Real]) -> bool:
    try:
        value_at(expression, point)
    except Undefined:
        return False
    return True


def sample_outcomes(
    left: Expression, right: Expression, ranges: Sequence[Range], *, wanted: int
) -> tuple[int, int]:
    """Random points of the ranges where the formulas agree, and where they differ.

    Stops at the first difference and at the wanted number of agreements.
    """
    rng = random.Random(0)
    agreed = 0
    with mpmath.workdps(DIGITS):
        for _ in range(20 * wanted):
            outcome = agree(left, right, random_point(ranges, rng))
            if outcome is False:
                return agreed, 1
            if outcome:
                agreed += 1
                if agreed == wanted:
                    break
    return agreed, 0
