"""Sums, products and powers of normal forms; the rules for functions are in `functions`.

The rules are those of real arithmetic. None expands a product of two sums or a power of a sum, so
the work is linear in the size of the formula.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

from physdiffuser.expressions.simplification import exact
from physdiffuser.expressions.simplification.exact import Value
from physdiffuser.expressions.simplification.folding import (
    absorb_constant_factors,
    absorb_constant_terms,
    factor_key,
    finite_exp,
    number_power,
    scaled_term,
    unfolded_power,
)
from physdiffuser.expressions.simplification.normal_form import (
    CALL,
    EULER,
    EULER_BASE,
    NUMBER,
    ONE,
    SUM,
    UNDEFINED,
    ZERO,
    ZERO_BASE,
    Base,
    Factor,
    Power,
    Product,
    Sum,
    as_power,
    as_value,
    common_factors,
    content,
    gcd_of,
    has_float,
    is_undefined,
    lone_number,
    number,
    number_base,
    opens,
    order_key,
    single,
    spread_out,
    sum_base,
)
from physdiffuser.expressions.simplification.signs import Signs


class Algebra:
    """Arithmetic on normal forms under what is known of the signs of the columns.

    Bases remember their sign, so values of two algebras must not be mixed.
    """

    def __init__(self, signs: Signs | None = None) -> None:
        self.signs = signs or Signs()

    # ---- sums ----

    def add(self, values: Iterable[Sum]) -> Sum:
        """The sum of the values."""
        merged: dict[str, tuple[Value, tuple[Factor, ...]]] = {}
        for value in values:
            for term in value.terms:
                if term.factors and term.factors[0][0].key == ZERO_BASE.key and is_undefined(term):
                    return UNDEFINED
                for part in self._distribute(term):
                    known = merged.get(part.key)
                    merged[part.key] = (
                        (part.coefficient, part.factors)
                        if known is None
                        else (exact.add(known[0], part.coefficient), part.factors)
                    )
        terms = [
            Product(coefficient, factors) for coefficient, factors in merged.values() if coefficient != 0
        ]
        if len(terms) > 1 and any(type(term.coefficient) is float for term in terms):
            terms = absorb_constant_terms(terms)
        if not terms:
            return ZERO
        if len(terms) == 1:
            return self._unwrap(terms[0])
        return self._primitive(terms)

    def _unwrap(self, term: Product) -> Sum:
        """A single term as a value, after merging may have left it with coefficient 1."""
        if term.coefficient == 1 and len(term.factors) == 1:
            base, power = term.factors[0]
            if base.kind == SUM and power == 1:
                return base.sum
        return Sum((term,))

    def _distribute(self, term: Product) -> Sequence[Product]:
        """`m*(a + b)` as `m*a, m*b`; a term with no sum or with several stays whole."""
        found = [
            position for position, (base, power) in enumerate(term.factors) if base.kind == SUM and power == 1
        ]
        if len(found) != 1:
            return (term,)
        position = found[0]
        inner = term.factors[position][0].sum
        rest = term.factors[:position] + term.factors[position + 1 :]
        if not rest:
            return [scaled_term(part, term.coefficient) for part in inner.terms]
        outer = Sum((Product(term.coefficient, rest),))
        return [part for piece in inner.terms for part in self.multiply((outer, Sum((piece,)))).terms]

    def _primitive(self, terms: list[Product]) -> Sum:
        """Terms as a product of what they have in common and a primitive sum."""
        common = common_factors(terms)
        if common:
            inverse = Sum((Product(1, tuple((base, self.times_power(power, -1)) for base, power in common)),))
            divided = [self.multiply((Sum((term,)), inverse)) for term in terms]
            inner = self.add(divided)
            outer = Sum((Product(1, common),))
            return self.multiply((outer, inner))
        terms.sort(key=order_key)
        divisor: Value = content([term.coefficient for term in terms])
        if terms[0].coefficient < 0:
            divisor = -divisor
        if divisor == 1:
            return Sum(tuple(terms))
        scale = 1.0 / divisor if isinstance(divisor, float) else exact.tidy(Fraction(1) / divisor)
        inner = Sum(tuple(Product(exact.multiply(term.coefficient, scale), term.factors) for term in terms))
        return Sum((Product(divisor, ((sum_base(inner), 1),)),))

    # ---- products ----

    def multiply(self, values: Iterable[Sum]) -> Sum:
        """The product of the values."""
        coefficient: Value = 1
        merged: dict[str, Factor] = {}
        for value in values:
            if not value.terms:
                return ZERO
            factors: tuple[Factor, ...]
            if len(value.terms) == 1:
                coefficient = exact.multiply(coefficient, value.terms[0].coefficient)
                factors = value.terms[0].factors
            else:
                factors = ((sum_base(value), 1),)
            for base, power in factors:
                known = merged.get(base.key)
                merged[base.key] = (base, power if known is None else self._add_powers(known[1], power))
        return self._product(coefficient, merged)

    def _euler_constant(self, power: Power) -> tuple[Value, Power]:
        """`exp(power)` as a number times exp of a power without a fitted constant."""
        if not isinstance(power, Sum):
            if isinstance(power, float):
                scale = finite_exp(power)
                if scale is not None:
                    return scale, 0
            return 1, power
        terms = spread_out(power)
        if any(type(term.coefficient) is float for term in terms):
            terms = spread_out(self.add([Sum((scaled_term(term, 1),)) for term in terms]))
        for position, term in enumerate(terms):
            if not term.factors and isinstance(term.coefficient, float):
                scale = finite_exp(term.coefficient)
                if scale is not None:
                    rest = [*terms[:position], *terms[position + 1 :]]
                    return scale, as_power(self.add([Sum((part,)) for part in rest]))
        return 1, power

    def _add_powers(self, left: Power, right: Power) -> Power:
        if not isinstance(left, Sum) and not isinstance(right, Sum):
            return exact.tidy_exponent(left + right)
        return as_power(self.add((as_value(left), as_value(right))))

    def _product(self, coefficient: Value, merged: dict[str, Factor]) -> Sum:
        factors: list[Factor] = []
        again: list[Sum] = []
        for key in sorted(merged):
            base, power = merged[key]
            if power == 0:
                continue
            if base.key == ZERO_BASE.key:
                sign = self.signs.of_sum(as_value(power))
                if sign:
                    # Division by zero takes in all that it is multiplied with.
                    return ZERO if sign > 0 else UNDEFINED
            if base.kind == NUMBER and not isinstance(power, Sum):
                scale, left = number_power(base, power)
                coefficient = exact.multiply(coefficient, scale)
                factors.extend(left)
            elif base.kind == EULER:
                scale, left_power = self._euler_constant(power)
                coefficient = exact.multiply(coefficient, scale)
                if left_power != 0:
                    factors.append((base, left_power))
            elif isinstance(power, int) and opens(base, power):
                inner = base.arguments[0]
                again.append(self.power(inner, number(power)))
            else:
                factors.append((base, power))
        if coefficient == 0:
            return ZERO
        if type(coefficient) is float:
            coefficient, factors = absorb_constant_factors(coefficient, factors)
        if again:
            return self.multiply((Sum((Product(coefficient, tuple(factors)),)), *again))
        if len(factors) > 1:
            factors.sort(key=factor_key)
        return self._scaled(Product(coefficient, tuple(factors)))

    def _scaled(self, product: Product) -> Sum:
        """The product as a value; a number is multiplied into a sum that has fitted constants anyway."""
        if product.coefficient == 1:
            return self._unwrap(product)
        if product.coefficient != -1:
            sums = [
                position
                for position, (base, power) in enumerate(product.factors)
                if base.kind == SUM and power == 1
            ]
            if len(sums) == 1 and has_float(product.factors[sums[0]][0].sum):
                inner = product.factors[sums[0]][0].sum
                size = exact.magnitude(product.coefficient)
                scaled = self.add([Sum((scaled_term(term, size),)) for term in inner.terms])
                sign = 1 if product.coefficient > 0 else -1
                rest = product.factors[: sums[0]] + product.factors[sums[0] + 1 :]
                return self.multiply((Sum((Product(sign, rest),)), scaled))
        return Sum((product,))

    # ---- powers ----

    def power(self, value: Sum, exponent: Sum) -> Sum:
        """`value ** exponent`."""
        power = as_power(exponent)
        if power == 1:
            return value
        if power == 0:
            return ONE
        if not value.terms:
            # 0**2 is 0; 0**-1 is nothing.
            positive = self.signs.of_sum(exponent) > 0 and power != 0
            if isinstance(power, Sum):
                return ZERO if positive else single(ZERO_BASE, power)
            return ZERO if positive else UNDEFINED
        if len(value.terms) > 1:
            return self._fractional(1, ((sum_base(value), 1),), power)
        term = value.terms[0]
        if isinstance(power, int):
            return self._whole(term, power)
        return self._fractional(term.coefficient, term.factors, power)

    def _whole(self, term: Product, power: int) -> Sum:
        coefficient = exact.whole_power(term.coefficient, power)
        parts: list[Sum] = []
        if coefficient is None:
            coefficient = 1
            parts.append(unfolded_power(term.coefficient, power))
        merged: dict[str, Factor] = {}
        for base, inner in term.factors:
            merged[base.key] = (base, self.times_power(inner, power))
        result = self._product(coefficient, merged)
        return self.multiply((result, *parts)) if parts else result

    def times_power(self, left: Power, right: Power) -> Power:
        """The product of two exponents."""
        if not isinstance(left, Sum) and not isinstance(right, Sum):
            return exact.tidy_exponent(left * right)
        return as_power(self.multiply((as_value(left), as_value(right))))

    def _fractional(self, coefficient: Value, factors: tuple[Factor, ...], power: Power) -> Sum:
        """A product to a power that may not be whole: only what cannot be negative leaves the bracket."""
        parts: list[Sum] = []
        inside: list[tuple[Base, int]] = []
        whole = isinstance(power, int)
        for base, inner in factors:
            sign = self.signs.of_base(base)
            if base.kind == EULER:
                parts.append(self.exponential(as_value(self.times_power(inner, power))))
            elif sign > 0 and isinstance(power, Sum) and (value := lone_number(base)) is not None:
                # A power that was too large to fold: its variable power is written as that of its number.
                parts.append(self._positive_number_power(value, self.times_power(inner, power)))
            elif whole or sign > 0 or (not isinstance(inner, Sum) and not isinstance(inner, int)):
                parts.append(single(base, self.times_power(inner, power)))
            elif isinstance(inner, int) and inner % 2 == 0:
                size = self.size_of(base, sign)
                parts.append(self.power(size, as_value(self.times_power(inner, power))))
            elif isinstance(inner, int):
                inside.append((base, inner))
            else:
                # The sign of a negative base to a variable power is not known.
                nested = sum_base(Sum((Product(1, ((base, inner),)),)))
                parts.append(single(nested, power))
        sign = 1
        if coefficient != 1:
            if coefficient < 0 and not whole:
                sign, coefficient = -1, exact.tidy(-coefficient)
            parts.append(self._positive_number_power(coefficient, power))
        if inside or sign < 0:
            parts.append(self._inside(sign, inside, power))
        return self.multiply(parts)

    def exponential(self, argument: Sum) -> Sum:
        """`exp` of a value; an exponent `k*log(f)` becomes the power `f**k`."""
        if not argument.terms:
            return ONE
        parts: list[Sum] = []
        rest: list[Sum] = []
        for term in spread_out(argument):
            found = [
                position
                for position, (base, power) in enumerate(term.factors)
                if base.kind == CALL and base.name == "log" and power == 1
            ]
            if len(found) == 1:
                # exp(k*log(f)) is f**k: where the logarithm is defined, f is positive.
                position = found[0]
                others = term.factors[:position] + term.factors[position + 1 :]
                inner = term.factors[position][0].arguments[0]
                outer = self.multiply((Sum((Product(term.coefficient, others),)),))
                parts.append(self.power(inner, outer))
            else:
                rest.append(Sum((term,)))
        if not parts:
            return self.multiply((single(EULER_BASE, as_power(argument)),))
        if rest:
            remaining = self.add(rest)
            if remaining.terms:
                parts.append(single(EULER_BASE, as_power(remaining)))
        return self.multiply(parts)

    def size_of(self, base: Base, sign: int) -> Sum:
        """`abs(base)`, resolved where the sign is known."""
        if sign:
            return single(base) if sign > 0 else Sum((Product(-1, ((base, 1),)),))
        return single(Base(CALL, f"gabs({single(base).key})", name="abs", arguments=(single(base),)))

    def _positive_number_power(self, value: Value, power: Power) -> Sum:
        if isinstance(value, float) or isinstance(power, float):
            if not isinstance(power, Sum):
                try:
                    result = float(value) ** float(power)
                except OverflowError:
                    return unfolded_power(value, power)
                if math.isfinite(result) and result != 0.0:
                    return number(result)
                return unfolded_power(value, power)
            return self.exponential(as_value(self.times_power(math.log(value), power)))
        if isinstance(power, Sum):
            return self.multiply(
                single(number_base(prime), self.times_power(count * sign, power))
                for part, sign in ((value.numerator, 1), (value.denominator, -1))
                for prime, count in exact.prime_factors(part)
            )
        scale, roots = exact.rational_power(value, Fraction(power))
        parts = [number(scale), *(single(number_base(prime), root) for prime, root in roots.items())]
        return self.multiply(parts)

    def _inside(self, sign: int, inside: list[tuple[Base, int]], power: Power) -> Sum:
        """What stays in the bracket: factors whose sign is not known, to odd powers."""
        if not inside:
            return single(number_base(-1), power)
        divisor = gcd_of([inner for _, inner in inside])
        if inside[0][1] < 0:
            divisor = -divisor
        inside = [(base, inner // divisor) for base, inner in inside]
        power = self.times_power(power, divisor)
        if sign > 0 and len(inside) == 1:
            return single(inside[0][0], power)
        return single(sum_base(Sum((Product(sign, tuple(inside)),))), power)
