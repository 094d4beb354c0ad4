"""Factors and exponents of normal forms: common factors, powers that undo a base, division by zero."""

from __future__ import annotations

import math
from collections.abc import Sequence

from physdiffuser.expressions.simplification import exact
from physdiffuser.expressions.simplification.normal.polynomial import (
    CALL,
    SUM,
    Base,
    Factor,
    Power,
    Product,
    Sum,
    number,
    number_base,
    single,
)

ZERO_BASE = number_base(0)
# What a division by zero leads to: inf or nan when it is evaluated.
UNDEFINED = single(ZERO_BASE, -1)


def is_undefined(term: Product) -> bool:
    power = term.factors[0][1]
    return not isinstance(power, Sum) and power < 0


def gcd_of(powers: Sequence[int]) -> int:
    """Greatest common divisor of odd exponents, at least 1."""
    return math.gcd(*powers) or 1


def as_value(power: Power) -> Sum:
    """An exponent as a value."""
    return power if isinstance(power, Sum) else number(power)


def as_power(value: Sum) -> Power:
    """A value as an exponent: a plain number where it is one."""
    plain = value.number
    return value if plain is None else exact.tidy_exponent(plain)


def order_key(term: Product) -> str:
    return term.key


def opens(base: Base, power: int) -> bool:
    """Whether a whole power undoes the base: `abs(x)**2`, `sqrt(a*b)**2`."""
    if base.kind == CALL:
        return base.name == "abs" and power % 2 == 0
    # A lone number is a power too large to be worked out.
    return base.kind == SUM and len(base.sum.terms) == 1 and bool(base.sum.terms[0].factors)


def common_factors(terms: list[Product]) -> tuple[Factor, ...]:
    """What every term can be divided by: the least power of each base, sums only where all have them."""
    common: list[Factor] = []
    powers: dict[str, list[Factor]] = {}
    for term in terms:
        for factor in term.factors:
            powers.setdefault(factor[0].key, []).append(factor)
    for key in sorted(powers):
        found = powers[key]
        base = found[0][0]
        numeric = [power for _, power in found if not isinstance(power, Sum)]
        if len(numeric) < len(found):
            # exp(-x)*a + exp(-x)*b: a power that is no number is common only where it is the same.
            symbolic = {power.key for _, power in found if isinstance(power, Sum)}
            if not numeric and len(symbolic) == 1 and len(found) == len(terms):
                common.append(found[0])
            continue
        least = min(numeric)
        if len(found) < len(terms) and (least > 0 or base.kind == SUM):
            continue
        if least != 0:
            common.append((base, least))
    return tuple(common)
