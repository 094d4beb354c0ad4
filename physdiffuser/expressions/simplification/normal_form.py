"""The normal form behind `canonical`: sums of products of powers, built by constructors that simplify.

    Sum      terms with different monomials, in a fixed order
    Product  coefficient * base**exponent * base**exponent ...
    Base     a prime number, a named constant, a variable, e (for `exp`), a function call or a Sum

Every value is a Sum. One with a single term stands for a product. One with several terms is
primitive: no factor is common to all terms (`m*a + m*b` is the product `m*(a + b)`), the
coefficients are whole without a common divisor when they are exact, and the first one is positive.

Signs decide which rules of powers and roots hold: `sqrt(x**2)` is `x` only where x cannot be
negative, so an `Algebra` is given what is known of the columns. Values mean what real arithmetic
makes of them: a root of a negative number is undefined, and a rule may define more than its left
side did (`sqrt(x)**2` becomes `x`), never change a value that was defined.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import gcd, lcm
from typing import TypeAlias

from physdiffuser.expressions.simplification import exact
from physdiffuser.expressions.simplification.exact import Value
from physdiffuser.expressions.tree import PI, Expression, Number, Parameter, Symbol, Variable

NUMBER, LEAF, EULER, CALL, SUM = range(5)


class Base:
    """What is raised to a power: compared by `key`."""

    __slots__ = ("arguments", "constant", "key", "kind", "leaf", "name", "sign")

    def __init__(
        self,
        kind: int,
        key: str,
        *,
        leaf: Expression | None = None,
        name: str = "",
        arguments: tuple[Sum, ...] = (),
        constant: bool = False,
    ) -> None:
        self.kind = kind
        self.key = key
        self.leaf = leaf
        self.name = name
        self.arguments = arguments
        self.constant = constant
        self.sign: int | None = None

    @property
    def sum(self) -> Sum:
        """The sum that a SUM base stands for."""
        return self.arguments[0]


class Product:
    """`coefficient * base**exponent * ...`, the bases in the order of their keys."""

    __slots__ = ("coefficient", "factors", "key")

    def __init__(self, coefficient: Value, factors: tuple[Factor, ...]) -> None:
        self.coefficient = coefficient
        self.factors = factors
        # The key of the monomial; the constant sorts last.
        self.key = (
            "*".join(
                [base.key if power == 1 else f"{base.key}^{_power_key(power)}" for base, power in factors]
            )
            or "~"
        )


class Sum:
    """Terms with different monomials, ordered by key; no terms is zero."""

    __slots__ = ("key", "terms")

    def __init__(self, terms: tuple[Product, ...]) -> None:
        self.terms = terms
        self.key = "+".join([f"{term.coefficient}:{term.key}" for term in terms])

    @property
    def number(self) -> Value | None:
        """The value of a plain number, else None."""
        if not self.terms:
            return 0
        if len(self.terms) == 1 and not self.terms[0].factors:
            return self.terms[0].coefficient
        return None


Power: TypeAlias = int | Fraction | float | Sum
Factor: TypeAlias = tuple[Base, Power]

ZERO = Sum(())
ONE = Sum((Product(1, ()),))
EULER_BASE = Base(EULER, "f", constant=True)
EULER_BASE.sign = 1


def _power_key(power: Power) -> str:
    return f"[{power.key}]" if isinstance(power, Sum) else str(power)


def number(value: Value) -> Sum:
    """A plain number as a value."""
    value = exact.tidy(value)
    return Sum((Product(value, ()),)) if value != 0 else ZERO


def single(base: Base, power: Power = 1) -> Sum:
    """`base ** power`."""
    return Sum((Product(1, ((base, power),)),))


def leaf_base(node: Expression) -> Base:
    """The base of a variable, parameter or named constant."""
    match node:
        case Variable(index=index):
            return Base(LEAF, f"e{index:03d}", leaf=node)
        case Parameter(index=index):
            return Base(LEAF, f"d{index:03d}", leaf=node)
        case Symbol(name=name):
            key = "b" if node == PI else f"c{name}"
            return Base(LEAF, key, leaf=node, constant=node == PI)
        case _:
            raise TypeError(f"{node!r} is no leaf with a name")


def number_base(value: int) -> Base:
    """An integer as the base of a power that is not worked out."""
    return Base(NUMBER, f"a{value}", leaf=Number(value), constant=True)


def lone_number(base: Base) -> Value | None:
    """The number in brackets that is a base, as `folding.unfolded_power` leaves fitted numbers."""
    if base.kind != SUM or len(base.sum.terms) != 1 or base.sum.terms[0].factors:
        return None
    return base.sum.terms[0].coefficient


def sum_base(value: Sum) -> Base:
    """A sum as the base of a power."""
    return Base(SUM, f"h({value.key})", arguments=(value,), constant=is_constant(value))


def call_base(name: str, arguments: tuple[Sum, ...]) -> Base:
    """A function call that no rule has simplified."""
    inner = ",".join([argument.key for argument in arguments])
    return Base(
        CALL,
        f"g{name}({inner})",
        name=name,
        arguments=arguments,
        constant=all(is_constant(argument) for argument in arguments),
    )


def is_constant(value: Sum) -> bool:
    """Whether the value is a pure number: no columns, parameters or user's constants."""
    return all(
        base.constant and (not isinstance(power, Sum) or is_constant(power))
        for term in value.terms
        for base, power in term.factors
    )


def has_float(value: Sum) -> bool:
    """Whether a coefficient of the sum is a float."""
    return any(type(term.coefficient) is float for term in value.terms)


def spread_out(value: Sum) -> Sequence[Product]:
    """The terms of a value, those of `3*(a + b)` being `3*a` and `3*b` (numbers only)."""
    if len(value.terms) == 1:
        term = value.terms[0]
        if len(term.factors) == 1:
            base, power = term.factors[0]
            if base.kind == SUM and power == 1:
                return [
                    Product(exact.multiply(term.coefficient, inner.coefficient), inner.factors)
                    for inner in base.sum.terms
                ]
    return value.terms


def content(coefficients: Iterable[Value]) -> int | Fraction:
    """The largest positive number that divides all coefficients to whole numbers; 1 if any is a float."""
    numerator, denominator = 0, 1
    for coefficient in coefficients:
        if isinstance(coefficient, float):
            return 1
        numerator = gcd(numerator, coefficient.numerator)
        denominator = lcm(denominator, coefficient.denominator)
    result = Fraction(numerator or 1, denominator)
    return int(result) if result.denominator == 1 else result


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
