"""Numbers beside constants: what is worked out, what a fitted number takes in, what stays as written."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from physdiffuser.expressions.operators import OPERATORS
from physdiffuser.expressions.simplification import exact
from physdiffuser.expressions.simplification.exact import Value
from physdiffuser.expressions.simplification.normal_form import (
    CALL,
    EULER,
    SUM,
    Base,
    Factor,
    Power,
    Product,
    Sum,
    is_constant,
    number,
    number_base,
    single,
)
from physdiffuser.expressions.tree import Number, Symbol


def scaled_term(term: Product, scale: Value) -> Product:
    """A term times a number, which takes in the term's constants when it is a fitted one."""
    coefficient, factors = exact.multiply(term.coefficient, scale), term.factors
    if type(coefficient) is float and any(base.constant for base, _ in factors):
        coefficient, kept = absorb_constant_factors(coefficient, list(factors))
        factors = tuple(kept)
    return Product(coefficient, factors)


def constant_value(value: Sum) -> float | None:
    """The number that a constant value is, or None when it has none."""
    total = 0.0
    for term in value.terms:
        part = float(term.coefficient)
        for base, power in term.factors:
            factor = _power_value(base, power)
            if factor is None:
                return None
            part *= factor
        total += part
    return total if math.isfinite(total) else None


def _power_value(base: Base, power: Power) -> float | None:
    """A constant base to a constant power as a finite number, if it is one."""
    number_ = _base_value(base)
    exponent = constant_value(power) if isinstance(power, Sum) else float(power)
    if number_ is None or exponent is None:
        return None
    try:
        result = math.pow(number_, exponent)
    except (OverflowError, ValueError):
        return None
    return result if math.isfinite(result) and result != 0.0 else None


def _base_value(base: Base) -> float | None:
    if base.kind == EULER:
        return math.e
    if base.kind == SUM:
        return constant_value(base.sum)
    if base.kind == CALL:
        arguments = [constant_value(argument) for argument in base.arguments]
        if any(argument is None for argument in arguments):
            return None
        with np.errstate(all="ignore"):
            result = float(OPERATORS[base.name].evaluate(*[np.float64(value) for value in arguments]))
        return result if math.isfinite(result) else None
    if isinstance(base.leaf, Number | Symbol):
        return float(base.leaf.value)
    return None


def factor_key(factor: Factor) -> str:
    return factor[0].key


def number_power(base: Base, power: Value) -> tuple[Value, list[Factor]]:
    """An integer to a numeric power as a number times what cannot be worked out."""
    assert isinstance(base.leaf, Number)
    value = base.leaf.value
    assert isinstance(value, int)
    if isinstance(power, int):
        worked_out = exact.whole_power(value, power)
        return (1, [(base, power)]) if worked_out is None else (worked_out, [])
    if isinstance(power, float) and value > 1:
        try:
            return float(value) ** power, []
        except OverflowError:
            return 1, [(base, power)]
    if isinstance(power, Fraction) and value > 1:
        scale, roots = exact.rational_power(value, power)
        return scale, [(number_base(prime), root) for prime, root in roots.items()]
    return 1, [(base, power)]


def finite_exp(value: float) -> float | None:
    return math.exp(value) if -700.0 < value < 700.0 else None


def unfolded_power(value: Value, power: Value) -> Sum:
    """A numeric power that is too large, too small or undefined, left as it is written."""
    if isinstance(value, int):
        return single(number_base(value), power)
    if isinstance(value, Fraction):
        parts = [number_base(value.numerator), number_base(value.denominator)]
        pair: list[Factor] = [(parts[0], power), (parts[1], -power)]
        factors = tuple(sorted((factor for factor in pair if factor[0].key != "a1"), key=factor_key))
        return Sum((Product(1, factors),))
    base = Base(0, f"a{value!r}", leaf=Number(value), constant=True)
    return single(Base(SUM, f"h({base.key})", arguments=(number(value),), constant=True), power)


def absorb_constant_factors(coefficient: float, factors: list[Factor]) -> tuple[Value, list[Factor]]:
    """A fitted number takes in the constants beside it: pi, roots of numbers, exp(2)."""
    kept: list[Factor] = []
    total = coefficient
    for base, power in factors:
        constant = base.constant and (not isinstance(power, Sum) or is_constant(power))
        value = _power_value(base, power) if constant else None
        if value is not None:
            scaled = total * value
            if math.isfinite(scaled) and scaled != 0.0:
                total = scaled
                continue
        kept.append((base, power))
    return exact.tidy(total), kept


def absorb_constant_terms(terms: list[Product]) -> list[Product]:
    """A fitted number takes in the constants added to it, such as pi or sqrt(2)."""
    fitted = [term for term in terms if not term.factors and type(term.coefficient) is float]
    if not fitted:
        return terms
    total = float(fitted[0].coefficient)
    kept: list[Product] = []
    for term in terms:
        if term is fitted[0]:
            continue
        part = absorb_constant_factors(float(term.coefficient), list(term.factors))
        if part[1]:
            kept.append(term)
        else:
            total += float(part[0])
    value = exact.tidy(total)
    if value != 0:
        kept.append(Product(value, ()))
    return kept
