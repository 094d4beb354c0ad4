"""Identities that make a normal form smaller: what canonical forms leave to be found.

Each rule proposes an equal value; the smallest is kept, from the inside out. The rules: products
multiplied out, sums over one denominator, common factors of numerator and denominator divided out,
perfect squares, `sin(u)**2 + cos(u)**2`, double angles, exponentials that make up sinh, cosh and tanh,
and hyperbolic functions of logarithms, which are powers.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from physdiffuser.expressions.simplification import exact
from physdiffuser.expressions.simplification.algebra import Algebra
from physdiffuser.expressions.simplification.functions import apply, negated
from physdiffuser.expressions.simplification.normal_form import (
    CALL,
    EULER,
    ONE,
    SUM,
    Base,
    Factor,
    Power,
    Product,
    Sum,
    as_power,
    as_value,
    call_base,
    number,
    single,
)
from physdiffuser.expressions.simplification.polynomials import divide, expand, opens

_MAX_ROUNDS = 8
_HALF = Fraction(1, 2)
_PAIRS = (("sin", "cos", 1), ("sinh", "cosh", -1))


class Reducer:
    """Applies the rules to values of one algebra."""

    def __init__(self, algebra: Algebra) -> None:
        self.algebra = algebra
        self._seen: dict[str, Sum] = {}

    def value(self, value: Sum) -> Sum:
        """The smallest equal value that the rules lead to."""
        known = self._seen.get(value.key)
        if known is None:
            best = self.algebra.add([self._term(term) for term in value.terms])
            for _ in range(_MAX_ROUNDS):
                smaller = min(self._proposals(best), key=size, default=best)
                if size(smaller) >= size(best):
                    break
                best = smaller
            known = self._seen[value.key] = self._seen[best.key] = best
        return known

    def _term(self, term: Product) -> Sum:
        return self.algebra.multiply(
            [number(term.coefficient), *(self._factor(base, power) for base, power in term.factors)]
        )

    def _factor(self, base: Base, power: Power) -> Sum:
        if isinstance(power, Sum):
            power = as_power(self.value(power))
        if base.kind == EULER:
            return apply(self.algebra, "exp", (as_value(power),))
        if base.kind == SUM:
            return self.algebra.power(self.value(base.sum), as_value(power))
        if base.kind == CALL:
            call = apply(self.algebra, base.name, tuple(self.value(part) for part in base.arguments))
            return self.algebra.power(call, as_value(power))
        return single(base, power)

    def _proposals(self, value: Sum) -> Iterator[Sum]:
        yield from self._without_log_arguments(value)
        if len(value.terms) == 1:
            term = value.terms[0]
            yield from self._merged_powers(term)
            yield from self.divided_out(term)
            yield from self._double_angle(term)
            yield from self._hyperbolic(term)
        else:
            yield from self._squares(value)
            yield from self._pythagoras(value)
            yield from self.together(value)
            yield from self._pair_of_exponentials(value)
        if opens(value):
            expanded = expand(value, self.algebra)
            if expanded is not None:
                yield expanded

    # ---- products ----

    def _merged_powers(self, term: Product) -> Iterator[Sum]:
        """`sqrt(c - v)*sqrt(c + v)` as `sqrt(c**2 - v**2)`."""
        for place, (base, power) in enumerate(term.factors):
            if base.kind != SUM or isinstance(power, Sum):
                continue
            for later in range(place + 1, len(term.factors)):
                other, other_power = term.factors[later]
                if other.kind != SUM or other_power != power:
                    continue
                product = Sum((Product(1, ((base, 1), (other, 1))),))
                merged = expand(product, self.algebra)
                if merged is not None:
                    rest = term.factors[:place] + term.factors[place + 1 : later] + term.factors[later + 1 :]
                    yield self.algebra.multiply(
                        (Sum((Product(term.coefficient, rest),)), self.algebra.power(merged, number(power)))
                    )

    def divided_out(self, term: Product) -> Iterator[Sum]:
        """`(c**2 - v**2)/(c - v)` as `c + v`; the same inside powers."""
        sums = [
            (base, power) for base, power in term.factors if base.kind == SUM and not isinstance(power, Sum)
        ]
        for top, power in sums:
            for bottom, other in sums:
                if top is bottom or power * other >= 0:
                    continue
                if not (isinstance(power, int) and isinstance(other, int)) and not (
                    self.algebra.signs.of_base(bottom) > 0
                ):
                    continue
                quotient = divide(top.sum, bottom.sum, self.algebra)
                if quotient is None:
                    continue
                rest = tuple(factor for factor in term.factors if factor[0] is not top)
                yield self.algebra.multiply(
                    (
                        Sum((Product(term.coefficient, rest),)),
                        self.algebra.power(single(bottom), as_value(power)),
                        self.algebra.power(quotient, as_value(power)),
                    )
                )

    def _double_angle(self, term: Product) -> Iterator[Sum]:
        """`sin(u)*cos(u)` as `sin(2*u)/2`; the same for sinh and cosh."""
        for place, (base, power) in enumerate(term.factors):
            if base.kind != CALL or base.name not in ("cos", "cosh") or not isinstance(power, int):
                continue
            partner = "sin" if base.name == "cos" else "sinh"
            for other, other_power in term.factors:
                if (
                    other.kind == CALL
                    and other.name == partner
                    and other_power == power
                    and other.arguments[0].key == base.arguments[0].key
                ):
                    doubled = apply(
                        self.algebra, partner, (self.algebra.multiply((number(2), base.arguments[0])),)
                    )
                    rest = tuple(
                        factor for factor in term.factors if factor[0] not in (term.factors[place][0], other)
                    )
                    half = self.algebra.multiply((number(_HALF), doubled))
                    yield self.algebra.multiply(
                        (Sum((Product(term.coefficient, rest),)), self.algebra.power(half, number(power)))
                    )

    def _hyperbolic(self, term: Product) -> Iterator[Sum]:
        """Sums of two exponentials in a product as cosh and sinh, all at once: their ratio is tanh."""
        parts: list[Sum] = [number(term.coefficient)]
        changed = False
        for base, power in term.factors:
            pair = self._cosh_or_sinh(base.sum) if base.kind == SUM and isinstance(power, int) else None
            changed = changed or pair is not None
            parts.append(single(base, power) if pair is None else self.algebra.power(pair, as_value(power)))
        if changed:
            yield self.algebra.multiply(_with_tanh(self.algebra.multiply(parts)))

    # ---- sums ----

    def _pair_of_exponentials(self, value: Sum) -> Iterator[Sum]:
        pair = self._cosh_or_sinh(value)
        if pair is not None:
            yield pair

    def _cosh_or_sinh(self, value: Sum) -> Sum | None:
        """`c*m*(exp(u) + exp(w))` as `2*c*m*exp((u + w)/2)*cosh((u - w)/2)`, else None."""
        if len(value.terms) != 2:
            return None
        first, second = value.terms
        if exact.magnitude(first.coefficient) != exact.magnitude(second.coefficient):
            return None
        powers: list[Sum] = []
        rests: list[tuple[Factor, ...]] = []
        for term in (first, second):
            powers.append(
                next((as_value(power) for base, power in term.factors if base.kind == EULER), number(0))
            )
            rests.append(tuple(factor for factor in term.factors if factor[0].kind != EULER))
        if Product(1, rests[0]).key != Product(1, rests[1]).key or not (powers[0].terms or powers[1].terms):
            return None
        algebra = self.algebra
        half = number(_HALF)
        mean = algebra.multiply((half, algebra.add(powers)))
        difference = algebra.multiply((half, algebra.add((powers[0], negated(algebra, powers[1])))))
        name = "cosh" if first.coefficient * second.coefficient > 0 else "sinh"
        return algebra.multiply(
            (
                number(exact.multiply(2, first.coefficient)),
                Sum((Product(1, rests[0]),)),
                apply(algebra, "exp", (mean,)),
                apply(algebra, name, (difference,)),
            )
        )

    def _squares(self, value: Sum) -> Iterator[Sum]:
        """`a**2 + 2*a*b + b**2` among the terms as `(a + b)**2`."""
        roots = [(place, root) for place, term in enumerate(value.terms) if (root := _root(term)) is not None]
        by_key = {term.key: place for place, term in enumerate(value.terms)}
        for number_, (place, root) in enumerate(roots):
            for other_place, other in roots[number_ + 1 :]:
                sign = 1 if value.terms[place].coefficient > 0 else -1
                if (value.terms[other_place].coefficient > 0) != (sign > 0):
                    continue
                cross = self.algebra.multiply((number(2), Sum((root,)), Sum((other,))))
                if len(cross.terms) != 1:
                    continue
                found = by_key.get(cross.terms[0].key)
                if found is None or found in (place, other_place):
                    continue
                ratio = value.terms[found].coefficient / cross.terms[0].coefficient
                if ratio not in (1, -1):
                    continue
                inner = self.algebra.add(
                    (Sum((root,)), self.algebra.multiply((number(int(ratio) * sign), Sum((other,)))))
                )
                square = self.algebra.multiply((number(sign), self.algebra.power(inner, number(2))))
                gone = (place, other_place, found)
                rest = [Sum((term,)) for position, term in enumerate(value.terms) if position not in gone]
                yield self.algebra.add([square, *rest])

    def _pythagoras(self, value: Sum) -> Iterator[Sum]:
        """`sin(u)**2 + cos(u)**2` and `1 - sin(u)**2`; `cosh(u)**2 - sinh(u)**2`."""
        for term in value.terms:
            for place, (base, power) in enumerate(term.factors):
                if base.kind != CALL or power != 2:
                    continue
                for odd, even, sign in _PAIRS:
                    if base.name not in (odd, even):
                        continue
                    # even**2 + sign*odd**2 = 1
                    rest = term.factors[:place] + term.factors[place + 1 :]
                    partner = single(call_base(even if base.name == odd else odd, base.arguments), 2)
                    if base.name == odd:
                        replaced = self.algebra.multiply(
                            (number(sign), self.algebra.add((ONE, negated(self.algebra, partner))))
                        )
                    else:
                        replaced = self.algebra.add((ONE, self.algebra.multiply((number(-sign), partner))))
                    outer = Sum((Product(term.coefficient, rest),))
                    parts = [self.algebra.multiply((outer, piece)) for piece in _pieces(replaced)]
                    others = [Sum((other,)) for other in value.terms if other is not term]
                    yield self.algebra.add([*others, *parts])

    def together(self, value: Sum) -> Iterator[Sum]:
        """All terms over one denominator, and what divides out of the fraction."""
        powers: dict[str, tuple[Base, int]] = {}
        for term in value.terms:
            for base, power in term.factors:
                if base.kind == SUM and isinstance(power, int) and power < 0:
                    known = powers.get(base.key)
                    if known is None or power < known[1]:
                        powers[base.key] = (base, power)
        if not powers:
            return
        scale = Sum((Product(1, tuple((base, -power) for _, (base, power) in sorted(powers.items()))),))
        top = self.algebra.add([self.algebra.multiply((Sum((term,)), scale)) for term in value.terms])
        bottom = Sum((Product(1, tuple((base, power) for _, (base, power) in sorted(powers.items()))),))
        for numerator in (top, expand(top, self.algebra)):
            if numerator is None:
                continue
            fraction = self.algebra.multiply((numerator, bottom))
            yield fraction
            if len(fraction.terms) == 1:
                yield from self.divided_out(fraction.terms[0])

    # ---- functions of logarithms ----

    def _without_log_arguments(self, value: Sum) -> Iterator[Sum]:
        """`tanh(log(x))` and its like as exponentials, which are powers of x."""
        found = False

        def visit(part: Sum) -> Sum:
            return self.algebra.add(
                [
                    self.algebra.multiply(
                        [number(term.coefficient), *(factor(*pair) for pair in term.factors)]
                    )
                    for term in part.terms
                ]
            )

        def factor(base: Base, power: Power) -> Sum:
            nonlocal found
            if base.kind == CALL and base.name in ("sinh", "cosh", "tanh") and "glog(" in base.key:
                up = apply(self.algebra, "exp", base.arguments)
                if any(inner.kind == EULER for part in up.terms for inner, _ in part.factors):
                    # The logarithm stays inside, as in cosh(log(x)**2).
                    return single(base, power)
                found = True
                down = self.algebra.power(up, number(-1))
                odd = self.algebra.add((up, negated(self.algebra, down)))
                even = self.algebra.add((up, down))
                if base.name == "tanh":
                    whole = self.algebra.multiply((odd, self.algebra.power(even, number(-1))))
                else:
                    whole = self.algebra.multiply((number(_HALF), odd if base.name == "sinh" else even))
                return self.algebra.power(whole, as_value(power))
            if base.kind == SUM:
                return self.algebra.power(visit(base.sum), as_value(power))
            return single(base, power)

        replaced = visit(value)
        if found:
            # Longer at first: what it is worth shows when it has been reduced itself.
            yield self.value(replaced)


def _pieces(value: Sum) -> list[Sum]:
    """Terms as values, those of `-(a - b)` apart."""
    if len(value.terms) == 1:
        term = value.terms[0]
        if len(term.factors) == 1 and term.factors[0][0].kind == SUM and term.factors[0][1] == 1:
            inner = term.factors[0][0].sum
            return [
                Sum((Product(exact.multiply(term.coefficient, part.coefficient), part.factors),))
                for part in inner.terms
            ]
    return [Sum((term,)) for term in value.terms]


def _root(term: Product) -> Product | None:
    """The square root of the size of a term that is a square, else None."""
    if isinstance(term.coefficient, float):
        return None
    scale = exact.whole_root(exact.magnitude(term.coefficient), 2)
    if scale is None:
        return None
    factors: list[Factor] = []
    for base, power in term.factors:
        if isinstance(power, int) and power % 2 == 0:
            factors.append((base, power // 2))
        else:
            return None
    return Product(scale, tuple(factors))


def _with_tanh(value: Sum) -> list[Sum]:
    """A product with `sinh(u)/cosh(u)` as tanh, in pieces to be multiplied."""
    if len(value.terms) != 1:
        return [value]
    term = value.terms[0]
    factors = {base.key: (base, power) for base, power in term.factors}
    for base, power in term.factors:
        if base.kind == CALL and base.name == "sinh" and isinstance(power, int):
            cosh = call_base("cosh", base.arguments)
            other = factors.get(cosh.key)
            if other is not None and other[1] == -power:
                del factors[base.key], factors[cosh.key]
                tanh = call_base("tanh", base.arguments)
                factors[tanh.key] = (tanh, power)
    return [Sum((Product(term.coefficient, tuple(factors[key] for key in sorted(factors))),))]


def size(value: Sum) -> int:
    """How long a normal form is, roughly in nodes."""
    total = max(0, len(value.terms) - 1)
    for term in value.terms:
        parts = len(term.factors) + (term.coefficient not in (1, -1))
        total += max(0, parts - 1) + (term.coefficient not in (1, -1)) + (not term.factors)
        for base, power in term.factors:
            total += _base_size(base)
            if base.kind == EULER:
                total += 1 + (size(power) if isinstance(power, Sum) else 1)
            elif isinstance(power, Sum):
                total += 1 + size(power)
            elif power not in (1, -1):
                total += 1
    return total


def _base_size(base: Base) -> int:
    if base.kind == SUM:
        return size(base.sum)
    if base.kind == CALL:
        return 2 + sum(size(argument) for argument in base.arguments)
    return 1
