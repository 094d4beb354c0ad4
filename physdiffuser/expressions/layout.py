"""From the normal form to a tree as a physicist writes it.

Of several ways to write the same normal form the cheapest is taken. The cost is the project's
complexity with two exceptions of style: a small power of a name (`v**2`) costs as much as a product,
so that `v**2/c**2` is not folded to `(v/c)**2`, and a fraction `p/q` costs as much as the division
it is read as. Ties go to the way that names fewer variables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from physdiffuser.expressions import exact
from physdiffuser.expressions.algebra import Algebra
from physdiffuser.expressions.exact import Value, magnitude
from physdiffuser.expressions.normal import (
    CALL,
    EULER,
    ONE,
    SUM,
    Base,
    Factor,
    Power,
    Product,
    Sum,
    call_base,
    number,
    single,
    sum_base,
)
from physdiffuser.expressions.operators import OPERATORS
from physdiffuser.expressions.tree import Apply, Expression, Number, Variable

_HALF = Fraction(1, 2)
Item = tuple[Expression, Value | Expression]


class Layout:
    """Writes the normal forms of one algebra; remembers what it has written."""

    def __init__(self, algebra: Algebra) -> None:
        self.algebra = algebra
        self._sums: dict[str, Expression] = {}
        self._products: dict[str, Expression] = {}
        self._costs: dict[Expression, tuple[int, int]] = {}

    # ---- cost ----

    def cost(self, tree: Expression) -> tuple[int, int]:
        """Cost and number of variables of a tree."""
        known = self._costs.get(tree)
        if known is None:
            known = self._cost(tree)
            self._costs[tree] = known
        return known

    def _cost(self, tree: Expression) -> tuple[int, int]:
        if isinstance(tree, Apply):
            total, names = OPERATORS[tree.operator].complexity, 0
            for part in tree.arguments:
                cost, count = self.cost(part)
                total, names = total + cost, names + count
            if tree.operator == "pow" and not isinstance(tree.arguments[0], Apply | Number):
                exponent = tree.arguments[1]
                if isinstance(exponent, Number) and exponent.value in (2, 3, 4):
                    total -= 1
            return total, names
        if isinstance(tree, Number) and isinstance(tree.value, Fraction):
            return 3, 0
        return 1, int(isinstance(tree, Variable))

    def best(self, trees: Iterator[Expression] | Sequence[Expression]) -> Expression:
        """The cheapest tree, the first of equals."""
        return min(trees, key=self.cost)

    # ---- sums ----

    def sum(self, value: Sum) -> Expression:
        """A normal form as a tree."""
        if not value.terms:
            return Number(0)
        if len(value.terms) == 1:
            return self.product(value.terms[0])
        known = self._sums.get(value.key)
        if known is None:
            options = [self._plain_sum(value)]
            options += [self.sum(other) for other in self._regrouped(value)]
            known = self.best(options)
            self._sums[value.key] = known
        return known

    def _plain_sum(self, value: Sum) -> Expression:
        positive = [term for term in value.terms if term.coefficient > 0]
        negative = [term for term in value.terms if not term.coefficient > 0]
        if positive and not positive[-1].factors and exact.is_integer(positive[-1].coefficient):
            # 1 - v**2/c**2, 1 + chi: a whole number leads.
            positive.insert(0, positive.pop())
        tree: Expression | None = None
        for term in positive:
            part = self.product(term)
            tree = part if tree is None else Apply("add", (tree, part))
        for term in negative:
            if tree is None:
                tree = self.product(term)
            else:
                tree = Apply("sub", (tree, self.product(_scaled(term, -1))))
        assert tree is not None
        return tree

    def _regrouped(self, value: Sum) -> Iterator[Sum]:
        """The same sum with some of its terms gathered into one."""
        if len(value.terms) > 2:
            yield from self._with_common_factor(value)
        yield from self._with_logs_joined(value)

    def _with_common_factor(self, value: Sum) -> Iterator[Sum]:
        """`a*x + a*y + b` as `a*(x + y) + b`."""
        counts: dict[str, list[int]] = {}
        for position, term in enumerate(value.terms):
            for base, power in term.factors:
                kind = "+" if not isinstance(power, Sum) and power > 0 else "-"
                counts.setdefault(base.key + kind, []).append(position)
        seen: set[tuple[int, ...]] = set()
        for key in sorted(counts, key=lambda key: (-len(counts[key]), key))[:8]:
            positions = tuple(counts[key])
            if 1 < len(positions) < len(value.terms) and positions not in seen:
                seen.add(positions)
                chosen = [Sum((value.terms[position],)) for position in positions]
                gathered = self.algebra.add(chosen)
                if len(gathered.terms) == 1:
                    rest = [term for position, term in enumerate(value.terms) if position not in positions]
                    yield _raw_sum([*rest, gathered.terms[0]])

    def _with_logs_joined(self, value: Sum) -> Iterator[Sum]:
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
                parts.append(self.algebra.power(base.arguments[0], number(ratio)))
            else:
                inner = self.algebra.multiply(parts)
                if not inner.terms:
                    continue
                joined = Product(
                    smallest,
                    tuple(
                        sorted(
                            (*group[0][2], (call_base("log", (inner,)), 1)), key=lambda factor: factor[0].key
                        )
                    ),
                )
                gone = {id(term) for term, _, _ in group}
                yield _raw_sum([*(term for term in value.terms if id(term) not in gone), joined])

    # ---- products ----

    def product(self, product: Product) -> Expression:
        """A product of the normal form as a tree."""
        key = f"{product.coefficient}:{product.key}"
        known = self._products.get(key)
        if known is None:
            known = self._product(product)
            self._products[key] = known
        return known

    def _product(self, product: Product) -> Expression:
        best = self._written(product)
        # Each sum may be written with one of its terms, or a number, taken out: 1 - v**2/c**2
        # for c**2 - v**2. One sum at a time, the best choice kept.
        current = product
        for place in range(len(product.factors)):
            if place >= len(current.factors) or current.factors[place][0].kind != SUM:
                continue
            for option in self._divided(current, place):
                tree = self.sum(option) if len(option.terms) > 1 else self._written(option.terms[0])
                if self.cost(tree) < self.cost(best):
                    best = tree
                    if len(option.terms) == 1:
                        current = option.terms[0]
        return best

    def _divided(self, product: Product, place: int) -> Iterator[Sum]:
        base, power = product.factors[place]
        inner = base.sum
        if isinstance(power, Sum) or len(inner.terms) < 2:
            return
        rest = Sum((Product(product.coefficient, product.factors[:place] + product.factors[place + 1 :]),))
        if power == 1:
            # Everything multiplied into the sum.
            yield _raw_sum(
                [term for part in inner.terms for term in self.algebra.multiply((rest, Sum((part,)))).terms]
            )
        seen: set[str] = set()
        for term in inner.terms:
            for divisor in (
                Product(1, term.factors),
                term,
                Product(magnitude(term.coefficient), ()),
            ):
                if divisor.coefficient == 1 and not divisor.factors:
                    continue
                name = f"{divisor.coefficient}:{divisor.key}"
                whole = isinstance(power, int)
                if name in seen or not (whole or self.algebra.signs.of_product(divisor) > 0):
                    continue
                seen.add(name)
                inverse = self.algebra.power(Sum((divisor,)), number(-1))
                left = [self.algebra.multiply((Sum((part,)), inverse)) for part in inner.terms]
                if any(len(part.terms) != 1 for part in left):
                    continue
                raw = _raw_sum([part.terms[0] for part in left])
                outside = self.algebra.power(Sum((divisor,)), number(power))
                yield self.algebra.multiply((rest, outside, single(sum_base(raw), power)))
        if isinstance(power, int) and power % 2 and product.coefficient < 0:
            raw = _raw_sum([_scaled(part, -1) for part in inner.terms])
            yield self.algebra.multiply((rest, number(-1), single(sum_base(raw), power)))

    def _written(self, product: Product) -> Expression:
        """A product with its sums as they stand."""
        if product.coefficient == 1 and len(product.factors) == 1:
            base, power = product.factors[0]
            if base.kind == SUM and power == 1 and len(base.sum.terms) > 1:
                return self.sum(base.sum)
        factors = _joined_quotients(product.factors)
        exps = [self._exp(power) for base, power in factors if base.kind == EULER]
        rooted: list[tuple[Base, Fraction]] = []
        items: list[Item] = []
        for base, power in factors:
            if base.kind == EULER:
                continue
            if isinstance(power, Fraction) and power.denominator == 2:
                rooted.append((base, power))
            else:
                items.append((self.base(base), self.sum(power) if isinstance(power, Sum) else power))
        options = [
            self._quotient(coefficient, choice, [*roots, *exps])
            for coefficient, roots in self._roots(product.coefficient, rooted)
            for choice in self._grouped(items)
        ]
        return self.best(options)

    def _exp(self, power: Power) -> Item:
        argument = self.sum(power) if isinstance(power, Sum) else Number(power)
        return Apply("exp", (argument,)), 1

    def base(self, base: Base) -> Expression:
        """A base on its own."""
        match base.kind:
            case 3:
                return Apply(base.name, tuple(self.sum(argument) for argument in base.arguments))
            case 4:
                return self.sum(base.sum)
            case _:
                assert base.leaf is not None
                return base.leaf

    def _roots(
        self, coefficient: Value, rooted: list[tuple[Base, Fraction]]
    ) -> Iterator[tuple[Value, list[Item]]]:
        """Ways to write the half-integer powers, with the coefficient that is left."""
        if not rooted:
            yield coefficient, []
            return
        yield coefficient, [(self.base(base), power) for base, power in rooted]
        # Under one root, the number outside or inside.
        squared = exact.whole_power(coefficient, 2)
        sign = 1 if coefficient > 0 else -1
        scales: list[tuple[Value, Value]] = [(coefficient, 1)]
        if squared is not None and exact.is_exact(coefficient) and coefficient not in (1, -1):
            scales.append((sign, squared))
        if len(rooted) == 1 and len(scales) == 1:
            return
        for outside, inside in scales:
            if all(power < 0 for _, power in rooted):
                # 1/sqrt(a*b)
                flipped = exact.whole_power(inside, -1)
                if flipped is None:
                    continue
                radicand = self._radicand(flipped, [(base, -power) for base, power in rooted])
                yield outside, [(radicand, -_HALF)]
            else:
                yield outside, [(self._radicand(inside, rooted), _HALF)]
            # Whole powers in front: a*sqrt(a/b).
            if any(abs(power) > _HALF for _, power in rooted):
                signs = [_HALF if power > 0 else -_HALF for _, power in rooted]
                left = [(base, half) for (base, _), half in zip(rooted, signs, strict=True)]
                front: list[Item] = [
                    (self.base(base), int(power - half))
                    for (base, power), half in zip(rooted, signs, strict=True)
                    if power != half
                ]
                yield outside, [*front, (self._radicand(inside, left), _HALF)]

    def _radicand(self, coefficient: Value, rooted: list[tuple[Base, Fraction]]) -> Expression:
        doubled = self.algebra.multiply(
            (
                number(coefficient),
                *(self.algebra.power(_base_value(base), number(2 * power)) for base, power in rooted),
            )
        )
        return self.sum(doubled)

    def _grouped(self, items: list[Item]) -> Iterator[list[Item]]:
        """The items as they are, and with equal powers under one bracket: `(a*b)**2`."""
        yield items
        groups: dict[Value, list[Item]] = {}
        for tree, power in items:
            if isinstance(power, int | float | Fraction) and power not in (1, -1):
                groups.setdefault(magnitude(power), []).append((tree, power))
        for size, group in groups.items():
            if len(group) < 2:
                continue
            top = [tree for tree, power in group if not isinstance(power, Expression) and power > 0]
            bottom = [tree for tree, power in group if not isinstance(power, Expression) and power < 0]
            flip = not top
            inner = _fraction(bottom if flip else top, [] if flip else bottom)
            rest = [item for item in items if item not in group]
            yield [*rest, (inner, -size if flip else size)]

    def _quotient(self, coefficient: Value, items: list[Item], last: list[Item]) -> Expression:
        top: list[Expression] = []
        bottom: list[Expression] = []
        for tree, power in [*items, *last]:
            if isinstance(power, int | float | Fraction):
                (top if power > 0 else bottom).append(_power(tree, magnitude(power)))
            else:
                top.append(Apply("pow", (tree, power)))
        sign = 1
        if coefficient < 0:
            sign, coefficient = -1, exact.tidy(-coefficient)
        if isinstance(coefficient, Fraction) and (top or bottom):
            bottom.insert(0, Number(coefficient.denominator))
            coefficient = coefficient.numerator
        if coefficient != 1 or not top:
            top.insert(0, Number(coefficient))
        if sign < 0:
            first = top[0]
            top[0] = Number(-first.value) if isinstance(first, Number) else Apply("neg", (first,))
        return _fraction(top, bottom)


def _fraction(top: Sequence[Expression], bottom: Sequence[Expression]) -> Expression:
    above = _chain(top) if top else Number(1)
    return Apply("div", (above, _chain(bottom))) if bottom else above


def _chain(parts: Sequence[Expression]) -> Expression:
    tree = parts[0]
    for part in parts[1:]:
        tree = Apply("mul", (tree, part))
    return tree


def _power(tree: Expression, power: Value) -> Expression:
    if power == 1:
        return tree
    if power == _HALF:
        return Apply("sqrt", (tree,))
    return Apply("pow", (tree, Number(power)))


def _scaled(term: Product, factor: Value) -> Product:
    return Product(exact.multiply(term.coefficient, factor), term.factors)


def _raw_sum(terms: Sequence[Product]) -> Sum:
    """A sum that is not primitive, only ordered."""
    return Sum(tuple(sorted(terms, key=lambda term: term.key)))


def _base_value(base: Base) -> Sum:
    return base.sum if base.kind == SUM else single(base)


def _joined_quotients(factors: tuple[Factor, ...]) -> list[Factor]:
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


__all__ = ["ONE", "Layout"]
