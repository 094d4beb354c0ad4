"""Equivalent forms of sums and products that the layout chooses between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from physdiffuser.expressions.simplification import exact
from physdiffuser.expressions.simplification.algebra import Algebra
from physdiffuser.expressions.simplification.exact import Value, magnitude
from physdiffuser.expressions.simplification.normal_form import (
    CALL,
    SUM,
    Base,
    Factor,
    Product,
    Sum,
    call_base,
    number,
    sum_base,
)


def scaled(term: Product, factor: Value) -> Product:
    return Product(exact.multiply(term.coefficient, factor), term.factors)


def raw_sum(terms: Sequence[Product]) -> Sum:
    """A sum that is not primitive, only ordered."""
    return Sum(tuple(sorted(terms, key=lambda term: term.key)))


def opened(factor: Factor) -> Factor:
    """A negated sum under a power as a sum of negated terms."""
    base, power = factor
    if base.kind == SUM and len(base.sum.terms) == 1:
        outer = base.sum.terms[0]
        if len(outer.factors) == 1 and outer.factors[0][0].kind == SUM and outer.factors[0][1] == 1:
            inner = outer.factors[0][0].sum
            return sum_base(raw_sum([scaled(part, outer.coefficient) for part in inner.terms])), power
    return factor


def required_saving(parts: Sequence[Sum], divisor: Product, power: Value) -> int:
    """What dividing a sum must save to be natural."""
    powers = [[power for _, power in part.terms[0].factors] for part in parts]
    reciprocal = [bool(found) and all(not isinstance(e, Sum) and e < 0 for e in found) for found in powers]
    whole = [all(isinstance(e, Sum) or e > 0 for e in found) for found in powers]
    if any(reciprocal) and any(whole):
        # 1 - 3/(a*b) is nobody's first choice.
        return 2
    if all(reciprocal) and not isinstance(power, int):
        # v/sqrt(1 - v**2/c**2) rather than 1/sqrt(1/v**2 - 1/c**2).
        return 1
    linear = len(divisor.factors) == 1 and divisor.factors[0][1] == 1
    # a/(a + b) is not to be turned over to 1/(1 + b/a).
    return 1 if linear else 0


def joined_quotients(factors: tuple[Factor, ...]) -> list[Factor]:
    """`sin(u)/cos(u)` as `tan(u)`, `sinh(u)/cosh(u)` as `tanh(u)`."""
    powers = {
        (base.name, base.arguments[0].key): (base, power)
        for base, power in factors
        if base.kind == CALL and isinstance(power, int)
    }
    result = list(factors)
    for (name, argument), (base, power) in powers.items():
        if name not in ("sin", "sinh"):
            continue
        other = powers.get(("cos" if name == "sin" else "cosh", argument))
        if other is None or not isinstance(power, int) or not isinstance(other[1], int):
            continue
        if power * other[1] >= 0:
            continue
        shared = min(abs(power), abs(other[1])) * (1 if power > 0 else -1)
        result = [factor for factor in result if factor[0] not in (base, other[0])]
        left = ((base, power - shared), (other[0], other[1] + shared))
        result += [(one, rest) for one, rest in left if rest]
        result.append((call_base("tan" if name == "sin" else "tanh", base.arguments), shared))
    return result


def with_logs_joined(algebra: Algebra, value: Sum) -> Iterator[Sum]:
    """`k*log(a) - k*log(b)` as `k*log(a/b)`."""
    groups: dict[str, list[tuple[Product, Base, tuple[Factor, ...]]]] = {}
    for term in value.terms:
        for position, (base, power) in enumerate(term.factors):
            if base.kind == CALL and base.name == "log" and power == 1:
                rest = term.factors[:position] + term.factors[position + 1 :]
                groups.setdefault(Product(1, rest).key, []).append((term, base, rest))
                break
    for group in groups.values():
        if len(group) < 2:
            continue
        # The most positive multiple leads: log(a/b), not -log(b/a).
        smallest: Value = min(magnitude(term.coefficient) for term, _, _ in group)
        parts: list[Sum] = []
        for term, base, _ in group:
            if isinstance(term.coefficient, float) or isinstance(smallest, float):
                break
            ratio = Fraction(term.coefficient) / smallest
            if (2 * ratio).denominator != 1 or abs(ratio) > 6:
                break
            parts.append(algebra.power(base.arguments[0], number(ratio)))
        else:
            inner = algebra.multiply(parts)
            if not inner.terms:
                continue
            joined = Product(
                smallest,
                tuple(
                    sorted((*group[0][2], (call_base("log", (inner,)), 1)), key=lambda factor: factor[0].key)
                ),
            )
            gone = {id(term) for term, _, _ in group}
            yield raw_sum([*(term for term in value.terms if id(term) not in gone), joined])
