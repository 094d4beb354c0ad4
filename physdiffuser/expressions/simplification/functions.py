"""Rules for the functions of the operator table, on normal forms.

An operator without a rule (a plugin's, say) keeps its canonical arguments.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from physdiffuser.expressions.operators import OPERATORS
from physdiffuser.expressions.simplification import exact
from physdiffuser.expressions.simplification.algebra import Algebra
from physdiffuser.expressions.simplification.normal_form import (
    CALL,
    EULER,
    ONE,
    SUM,
    ZERO,
    Base,
    Power,
    Product,
    Sum,
    as_value,
    call_base,
    leaf_base,
    number,
    number_base,
    single,
    spread_out,
    sum_base,
)
from physdiffuser.expressions.tree import PI

_ODD = frozenset({"sin", "tan", "asin", "atan", "sinh", "tanh"})
_EVEN = frozenset({"cos", "cosh"})
_HALF = Fraction(1, 2)
PI_BASE = leaf_base(PI)
_MINUS_ONE = number_base(-1)


def apply(algebra: Algebra, name: str, arguments: tuple[Sum, ...]) -> Sum:
    """A function of normal forms as a normal form."""
    folded = _fold_floats(name, arguments)
    if folded is not None:
        return folded
    rule = _RULES.get(name)
    definition = OPERATORS[name].definition if name in OPERATORS else None
    if definition is not None and definition.parity and _leads_with_minus(arguments[0]):
        mirrored = single(call_base(name, (negated(algebra, arguments[0]),)))
        return algebra.multiply((number(definition.parity), mirrored))
    if rule is None or len(arguments) != 1:
        return single(call_base(name, arguments))
    return rule(algebra, name, arguments[0])


def _fold_floats(name: str, arguments: tuple[Sum, ...]) -> Sum | None:
    """The value of a function of numbers of which one is a fitted constant."""
    values = [argument.number for argument in arguments]
    if not any(isinstance(value, float) for value in values) or None in values:
        return None
    with np.errstate(all="ignore"):
        result = float(OPERATORS[name].evaluate(*[np.float64(value) for value in values]))
    # exp(-1000) is not zero, only too small.
    return number(result) if math.isfinite(result) and (result != 0.0 or name != "exp") else None


def negated(algebra: Algebra, value: Sum) -> Sum:
    """`-value`."""
    return algebra.multiply((number(-1), value))


def _leads_with_minus(value: Sum) -> bool:
    return bool(value.terms) and value.terms[0].coefficient < 0


def _exp(algebra: Algebra, name: str, argument: Sum) -> Sum:
    return algebra.exponential(argument)


def _log(algebra: Algebra, name: str, argument: Sum) -> Sum:
    if len(argument.terms) != 1:
        return single(call_base("log", (argument,)))
    term = argument.terms[0]
    parts: list[Sum] = []
    inside: list[tuple[Base, int]] = []
    sign = 1
    coefficient = term.coefficient
    if coefficient < 0:
        sign, coefficient = -1, exact.tidy(-coefficient)
    if isinstance(coefficient, float):
        parts.append(number(math.log(coefficient)))
    elif coefficient != 1:
        parts.extend(
            _times_log(algebra, number_base(prime), count * direction)
            for part, direction in ((coefficient.numerator, 1), (coefficient.denominator, -1))
            for prime, count in exact.prime_factors(part)
        )
    for base, power in term.factors:
        base_sign = algebra.signs.of_base(base)
        if base.kind == EULER:
            parts.append(as_value(power))
        elif base_sign > 0 or (not isinstance(power, Sum) and not isinstance(power, int)):
            parts.append(_times_log(algebra, base, power))
        elif isinstance(power, int) and power % 2 == 0:
            size = apply(algebra, "log", (algebra.size_of(base, base_sign),))
            parts.append(algebra.multiply((number(power), size)))
        elif isinstance(power, int):
            inside.append((base, power))
        else:
            nested = Sum((Product(1, ((base, power),)),))
            parts.append(single(call_base("log", (nested,))))
    if inside or sign < 0:
        parts.append(_log_inside(algebra, sign, inside))
    return algebra.add(parts)


def _times_log(algebra: Algebra, base: Base, power: Power) -> Sum:
    value = base.sum if base.kind == SUM else single(base)
    if base.key == _MINUS_ONE.key:
        value = number(-1)
    return algebra.multiply((as_value(power), single(call_base("log", (value,)))))


def _log_inside(algebra: Algebra, sign: int, inside: list[tuple[Base, int]]) -> Sum:
    """The logarithm of factors whose sign is not known: odd powers, the first one positive."""
    if not inside:
        return single(call_base("log", (number(-1),)))
    divisor = math.gcd(*[power for _, power in inside])
    if inside[0][1] < 0:
        divisor = -divisor
    factors = tuple((base, power // divisor) for base, power in inside)
    value = algebra.multiply((Sum((Product(sign, factors),)),))
    return algebra.multiply((number(divisor), single(call_base("log", (value,)))))


def _abs(algebra: Algebra, name: str, argument: Sum) -> Sum:
    sign = algebra.signs.of_sum(argument)
    if sign:
        return argument if sign > 0 else negated(algebra, argument)
    if len(argument.terms) != 1:
        return algebra.size_of(sum_base(argument), 0) if argument.terms else ZERO
    term = argument.terms[0]
    parts = [number(exact.magnitude(term.coefficient))]
    for base, power in term.factors:
        base_sign = algebra.signs.of_base(base)
        if (
            base_sign > 0
            or (isinstance(power, int) and power % 2 == 0)
            or (not isinstance(power, Sum) and not isinstance(power, int))
        ):
            parts.append(single(base, power))
        elif isinstance(power, int):
            parts.append(algebra.power(algebra.size_of(base, base_sign), number(power)))
        else:
            value = Sum((Product(1, ((base, power),)),))
            parts.append(single(call_base("abs", (value,))))
    return algebra.multiply(parts)


def _turns(argument: Sum) -> tuple[Fraction, list[Product]]:
    """The exact multiple of pi in a sum, and the other terms."""
    quotient = Fraction(0)
    rest: list[Product] = []
    for term in spread_out(argument):
        coefficient = term.coefficient
        if (
            len(term.factors) == 1
            and term.factors[0][0].key == PI_BASE.key
            and term.factors[0][1] == 1
            and not isinstance(coefficient, float)
        ):
            quotient += coefficient
        else:
            rest.append(term)
    return quotient, rest


# sin(k*pi/12) where it is short: twelfths of pi and the squares of the sines, all positive.
_SINES = {0: Fraction(0), 2: Fraction(1, 4), 3: Fraction(1, 2), 4: Fraction(3, 4), 6: Fraction(1)}


def _sine_of_turn(algebra: Algebra, quotient: Fraction) -> Sum | None:
    """`sin(quotient*pi)` for multiples of pi/6 and pi/4."""
    twelfths = quotient * 12
    if twelfths.denominator != 1:
        return None
    step = int(twelfths) % 24
    sign = -1 if step > 12 else 1
    step %= 12
    square = _SINES.get(min(step, 12 - step))
    if square is None:
        return None
    return algebra.multiply((number(sign), algebra.power(number(square), number(_HALF))))


def _sin_cos(algebra: Algebra, name: str, argument: Sum) -> Sum:
    quotient, rest = _turns(argument)
    sign = 1
    if quotient:
        if not rest:
            shifted = quotient if name == "sin" else quotient + _HALF
            known = _sine_of_turn(algebra, shifted)
            if known is not None:
                return known
        # sin(u + pi) = -sin(u), sin(u + pi/2) = cos(u): what is left of the shift is in [0, pi/2).
        halves = math.floor(quotient * 2)
        if halves % 4 and (rest or quotient * 2 != halves):
            quotient -= Fraction(halves, 2)
            turned = halves % 4
            if name == "sin":
                name, sign = (("cos", 1), ("sin", -1), ("cos", -1))[turned - 1]
            else:
                name, sign = (("sin", -1), ("cos", -1), ("sin", 1))[turned - 1]
        elif halves % 4 == 0:
            quotient -= Fraction(halves, 2)
        pieces = [Sum((term,)) for term in rest]
        if quotient:
            pieces.append(Sum((Product(exact.tidy(quotient), ((PI_BASE, 1),)),)))
        argument = algebra.add(pieces)
    if not argument.terms:
        return ONE if name == "cos" else ZERO
    if _leads_with_minus(argument):
        argument = negated(algebra, argument)
        sign = -sign if name == "sin" else sign
    return algebra.multiply((number(sign), _undo_inverse(algebra, name, argument)))


def _undo_inverse(algebra: Algebra, name: str, argument: Sum) -> Sum:
    """`sin(asin(u))` and its like without the functions."""
    base = _lone_call(argument)
    if base is not None:
        inner = base.arguments[0]
        if {name, base.name} in ({"sin", "asin"}, {"cos", "acos"}):
            return inner
        if base.name in ("asin", "acos"):
            square = algebra.power(inner, number(2))
            return algebra.power(algebra.add((ONE, negated(algebra, square))), number(_HALF))
        if base.name == "atan":
            square = algebra.power(inner, number(2))
            root = algebra.power(algebra.add((ONE, square)), number(-_HALF))
            return root if name == "cos" else algebra.multiply((inner, root))
    return single(call_base(name, (argument,)))


def _lone_call(argument: Sum) -> Base | None:
    """The function call that a value consists of, else None."""
    if len(argument.terms) == 1:
        term = argument.terms[0]
        if term.coefficient == 1 and len(term.factors) == 1 and term.factors[0][1] == 1:
            base = term.factors[0][0]
            if base.kind == CALL and len(base.arguments) == 1:
                return base
    return None


def _tan(algebra: Algebra, name: str, argument: Sum) -> Sum:
    cosine = _sin_cos(algebra, "cos", argument)
    if not cosine.terms:
        return single(call_base("tan", (argument,)))
    sine = _sin_cos(algebra, "sin", argument)
    return algebra.multiply((sine, algebra.power(cosine, number(-1))))


# Exact values at exact arguments, as multiples of pi.
_ASIN: dict[int | Fraction, Fraction] = {0: Fraction(0), 1: _HALF, _HALF: Fraction(1, 6)}
_ACOS: dict[int | Fraction, Fraction] = {
    0: _HALF,
    1: Fraction(0),
    -1: Fraction(1),
    _HALF: Fraction(1, 3),
    -_HALF: Fraction(2, 3),
}
_ATAN: dict[int | Fraction, Fraction] = {0: Fraction(0), 1: Fraction(1, 4)}
_ANGLES: dict[str, dict[int | Fraction, Fraction]] = {"asin": _ASIN, "acos": _ACOS, "atan": _ATAN}


def _odd_or_even(algebra: Algebra, name: str, argument: Sum) -> Sum:
    sign = 1
    if name != "acos" and _leads_with_minus(argument):
        argument = negated(algebra, argument)
        sign = -1 if name in _ODD else 1
    value = argument.number
    if value is not None and not isinstance(value, float):
        known = _ANGLES.get(name, {}).get(value)
        if known is not None:
            return algebra.multiply((number(sign * known), single(PI_BASE)))
        if value == 0:
            return ONE if name in _EVEN else ZERO
    return algebra.multiply((number(sign), single(call_base(name, (argument,)))))


def _sqrt(algebra: Algebra, name: str, argument: Sum) -> Sum:
    return algebra.power(argument, number(_HALF))


_RULES: dict[str, Callable[[Algebra, str, Sum], Sum]] = {
    "exp": _exp,
    "log": _log,
    "abs": _abs,
    "sqrt": _sqrt,
    "sin": _sin_cos,
    "cos": _sin_cos,
    "tan": _tan,
    "asin": _odd_or_even,
    "acos": _odd_or_even,
    "atan": _odd_or_even,
    "sinh": _odd_or_even,
    "cosh": _odd_or_even,
    "tanh": _odd_or_even,
}
