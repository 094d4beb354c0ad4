"""Proofs of constraints by interval arithmetic and by sympy.

A formula is evaluated on boxes with intervals that contain every value (`mpmath.iv`); a box on which the
bounds do not decide is halved, until all boxes are decided or too many have been looked at.

References
----------
Moore, Kearfott and Cloud, *Introduction to Interval Analysis*, SIAM (2009).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.expressions import PI, Apply, Expression, Number, Symbol, Variable
from physdiffuser.expressions.definitions import expanded
from physdiffuser.verification.calculus import limit

# Boxes that are looked at for one proof.
MAX_BOXES = 1_500


class _Undecided(ArithmeticError):
    """No bounds are known."""


def is_at_least(expression: Expression, bound: float, low: FloatArray, high: FloatArray) -> bool:
    """Whether interval arithmetic shows that a formula is at least a bound in a box.

    Parameters
    ----------
    expression
        The formula.
    bound
        Lower bound; values above it by rounding alone count as equal.
    low, high
        Shape (columns,).
    """
    return _holds(expression, lambda value: bool(value.a >= bound), low, high)


def is_finite(expression: Expression, low: FloatArray, high: FloatArray) -> bool:
    """Whether interval arithmetic shows that a formula has a value everywhere in a box."""

    def bounded(value: Any) -> bool:
        return bool(np.isfinite(float(value.a)) and np.isfinite(float(value.b)))

    return _holds(expression, bounded, low, high)


def has_limit(expression: Expression, column: int, towards: float, wanted: float) -> bool:
    """Whether sympy finds this limit."""
    found = limit(expression, column, towards)
    if not isinstance(found, Number):
        return False
    return abs(float(found.value) - wanted) <= 1e-12 * max(1.0, abs(wanted))


def _holds(expression: Expression, test: Callable[[Any], bool], low: FloatArray, high: FloatArray) -> bool:
    from mpmath import iv

    expression = expanded(expression)
    boxes = deque([(low.astype(np.float64), high.astype(np.float64))])
    width = np.where(high > low, high - low, 1.0)
    for _ in range(MAX_BOXES):
        if not boxes:
            return True
        start, end = boxes.popleft()
        try:
            if test(_value(expression, [iv.mpf([a, b]) for a, b in zip(start, end, strict=True)], {})):
                continue
        except (ArithmeticError, ValueError, NotImplementedError, TypeError):
            pass  # undecided on this box: its halves may be decided
        longest = int(np.argmax((end - start) / width))
        middle = (start[longest] + end[longest]) / 2
        if not start[longest] < middle < end[longest]:
            return False
        for half in (0, 1):
            a, b = start.copy(), end.copy()
            (b if half == 0 else a)[longest] = middle
            boxes.append((a, b))
    return not boxes


def _value(node: Expression, box: list[Any], seen: dict[Expression, Any]) -> Any:
    """An interval that contains all values in a box."""
    known = seen.get(node)
    if known is None:
        known = seen[node] = _built(node, box, seen)
    return known


def _built(node: Expression, box: list[Any], seen: dict[Expression, Any]) -> Any:
    from mpmath import iv

    match node:
        case Variable(index=index):
            return box[index]
        case Number(value=Fraction() as value):
            return iv.mpf(value.numerator) / value.denominator
        case Number(value=value):
            return iv.mpf(value)
        case Symbol(value=value):
            return iv.pi if node == PI else iv.mpf(value)
        case Apply(operator="pow", arguments=(base, Number(value=int() | Fraction() as exponent))):
            return _power(_value(base, box, seen), Fraction(exponent))
        case Apply(operator=operator, arguments=arguments):
            rule = _RULES.get(operator)
            if rule is None:
                raise _Undecided(operator)
            return rule(*(_value(argument, box, seen) for argument in arguments))
    raise _Undecided


def _power(base: Any, exponent: Fraction) -> Any:
    from mpmath import iv

    if exponent < 0:
        return _divided(iv.mpf(1), _power(base, -exponent))
    if exponent.denominator == 1:
        return base ** int(exponent)
    if base.a < 0:
        raise _Undecided
    root = iv.sqrt(base) if exponent.denominator == 2 else None
    if root is not None:
        return root ** int(exponent.numerator)
    if base.a == 0:
        raise _Undecided
    return iv.exp(iv.log(base) * exponent.numerator / exponent.denominator)


def _divided(above: Any, below: Any) -> Any:
    if below.a <= 0 <= below.b:
        raise _Undecided
    return above / below


def _positive(function: str, argument: Any, strictly: bool) -> Any:
    from mpmath import iv

    if argument.a < 0 or (strictly and argument.a <= 0):
        raise _Undecided
    return getattr(iv, function)(argument)


def _called(function: str) -> Callable[[Any], Any]:
    def call(argument: Any) -> Any:
        from mpmath import iv

        return getattr(iv, function)(argument)

    return call


def _hyperbolic(sign: int) -> Callable[[Any], Any]:
    def call(argument: Any) -> Any:
        from mpmath import iv

        return (iv.exp(argument) + sign * iv.exp(-argument)) / 2

    return call


def _tanh(argument: Any) -> Any:
    from mpmath import iv

    return 1 - 2 / (iv.exp(2 * argument) + 1)


def _general_power(base: Any, exponent: Any) -> Any:
    from mpmath import iv

    return iv.exp(exponent * _positive("log", base, True))


_RULES: dict[str, Callable[..., Any]] = {
    "add": lambda left, right: left + right,
    "sub": lambda left, right: left - right,
    "mul": lambda left, right: left * right,
    "div": _divided,
    "neg": lambda argument: -argument,
    "abs": lambda argument: abs(argument),
    "pow": _general_power,
    "exp": _called("exp"),
    "sin": _called("sin"),
    "cos": _called("cos"),
    "sqrt": lambda argument: _positive("sqrt", argument, False),
    "log": lambda argument: _positive("log", argument, True),
    "cosh": _hyperbolic(1),
    "sinh": _hyperbolic(-1),
    "tanh": _tanh,
}
