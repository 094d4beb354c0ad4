"""Products multiplied out, and exact division, on normal forms."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from physdiffuser.expressions.simplification import exact
from physdiffuser.expressions.simplification.algebra import Algebra
from physdiffuser.expressions.simplification.exact import Value
from physdiffuser.expressions.simplification.normal_form import (
    EULER,
    SUM,
    Base,
    Factor,
    Product,
    Sum,
    as_power,
    content,
    number,
    single,
    spread_out,
)

MAX_TERMS = 40
MAX_POWER = 4
_MAX_STEPS = 60


def expand(value: Sum, algebra: Algebra) -> Sum | None:
    """The value with products and small powers of sums multiplied out; None if that is too long.

    Roots, denominators and arguments of functions stay as they are.
    """
    terms = expanded_terms(value, algebra)
    return None if terms is None else algebra.add([Sum((term,)) for term in terms])


def expanded_terms(value: Sum, algebra: Algebra) -> list[Product] | None:
    """Terms of a value after multiplying out; like terms are not merged."""
    result: list[Product] = []
    for term in value.terms:
        parts: list[Product] = [Product(term.coefficient, tuple(f for f in term.factors if not _opens(f)))]
        for base, power in term.factors:
            if not _opens((base, power)):
                continue
            assert isinstance(power, int)
            for _ in range(power):
                parts = [
                    piece
                    for left in parts
                    for right in base.sum.terms
                    for piece in algebra.multiply((Sum((left,)), Sum((right,)))).terms
                ]
                if len(parts) > MAX_TERMS:
                    return None
        result.extend(parts)
        if len(result) > MAX_TERMS:
            return None
    return result


def _opens(factor: Factor) -> bool:
    base, power = factor
    return base.kind == SUM and isinstance(power, int) and 0 < power <= MAX_POWER


def opens(value: Sum) -> bool:
    """Whether there is anything to multiply out beyond a monomial times a sum."""
    for term in value.terms:
        powers = [power for base, power in term.factors if _opens((base, power)) and isinstance(power, int)]
        if sum(powers) > 1:
            return True
    return False


# ---- exact division ----

# A monomial as exponents by atom: keys of bases, and for exp the key of its primitive exponent.
_Monomial = dict[str, Fraction]


def divide(top: Sum, bottom: Sum, algebra: Algebra) -> Sum | None:
    """`top/bottom` where both are sums and the quotient is a polynomial, else None."""
    atoms: dict[str, Sum] = {}
    dividend = _polynomial(spread_out(top), atoms)
    divisor = _polynomial(spread_out(bottom), atoms)
    if dividend is None or divisor is None or len(divisor) < 2:
        return None
    names = sorted(atoms)
    lead, lead_coefficient = _lead(divisor, names)
    quotient: list[tuple[_Monomial, Value]] = []
    for _ in range(_MAX_STEPS):
        if not dividend:
            return algebra.add(
                [_value(monomial, coefficient, atoms, algebra) for monomial, coefficient in quotient]
            )
        first, coefficient = _lead(dividend, names)
        ratio = {name: first.get(name, Fraction(0)) - lead.get(name, Fraction(0)) for name in names}
        if any(power < 0 for power in ratio.values()):
            return None
        factor = exact.multiply(coefficient, _inverse(lead_coefficient))
        quotient.append((ratio, factor))
        for key, (monomial, part) in divisor.items():
            product = {name: ratio[name] + monomial.get(name, Fraction(0)) for name in names}
            name = _key(product)
            old = dividend.get(name, (product, 0))[1]
            new = exact.add(old, exact.multiply(part, exact.multiply(factor, -1)))
            if key == _key(lead) or new == 0:
                dividend.pop(name, None)
            else:
                dividend[name] = (product, new)
        if len(dividend) > MAX_TERMS:
            return None
    return None


def _inverse(value: Value) -> Value:
    return 1.0 / value if isinstance(value, float) else exact.tidy(1 / Fraction(value))


def _polynomial(terms: Sequence[Product], atoms: dict[str, Sum]) -> dict[str, tuple[_Monomial, Value]] | None:
    result: dict[str, tuple[_Monomial, Value]] = {}
    for term in terms:
        monomial: _Monomial = {}
        for base, power in term.factors:
            atom = _atom(base, power)
            if atom is None:
                return None
            name, exponent, value = atom
            atoms[name] = value
            monomial[name] = monomial.get(name, Fraction(0)) + exponent
        result[_key(monomial)] = (monomial, term.coefficient)
    return result


def _atom(base: Base, power: object) -> tuple[str, Fraction, Sum] | None:
    if isinstance(power, int | Fraction):
        return base.key, Fraction(power), single(base)
    if isinstance(power, Sum) and base.kind == EULER:
        # exp(2*x) is the square of exp(x).
        terms = spread_out(power)
        scale = Fraction(content([term.coefficient for term in terms]))
        if terms[0].coefficient < 0:
            scale = -scale
        unit = Sum(
            tuple(Product(exact.multiply(term.coefficient, 1 / scale), term.factors) for term in terms)
        )
        return f"{base.key}^{unit.key}", scale, single(base, as_power(unit))
    return None


def _key(monomial: _Monomial) -> str:
    return "*".join(f"{name}^{power}" for name, power in sorted(monomial.items()) if power)


def _lead(polynomial: dict[str, tuple[_Monomial, Value]], names: list[str]) -> tuple[_Monomial, Value]:
    return max(polynomial.values(), key=lambda item: [item[0].get(name, Fraction(0)) for name in names])


def _value(monomial: _Monomial, coefficient: Value, atoms: dict[str, Sum], algebra: Algebra) -> Sum:
    return algebra.multiply(
        [
            number(coefficient),
            *(
                algebra.power(atoms[name], number(exact.tidy(power)))
                for name, power in monomial.items()
                if power
            ),
        ]
    )
