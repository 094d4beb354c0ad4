"""From the normal form to a tree as a physicist writes it.

Of several ways to write the same normal form the cheapest is taken. The cost is the project's
complexity with two exceptions of style: a small power of a name (`v**2`) costs as much as a product,
so that `v**2/c**2` is not folded to `(v/c)**2`, and a fraction `p/q` costs as much as the division
it is read as. Ties go to the way that names fewer variables, then to `1 - x` before `x - 1`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import gcd

from physdiffuser.expressions.operators import OPERATORS
from physdiffuser.expressions.simplification import exact
from physdiffuser.expressions.simplification.algebra import Algebra
from physdiffuser.expressions.simplification.equivalent_forms import (
    joined_quotients,
    opened,
    raw_sum,
    required_saving,
    scaled,
    with_logs_joined,
)
from physdiffuser.expressions.simplification.exact import Value, magnitude
from physdiffuser.expressions.simplification.normal_form import (
    CALL,
    EULER,
    NUMBER,
    SUM,
    Base,
    Factor,
    Product,
    Sum,
    number,
    single,
    sum_base,
)
from physdiffuser.expressions.simplification.quotients import Item, grouped, numbers_first, quotient
from physdiffuser.expressions.simplification.reduce import size
from physdiffuser.expressions.tree import ONE, Apply, Expression, Number, Variable

_MAX_OPTIONS = 16
# Longer sums are not divided by their terms, and options this much larger are not written out.
_MAX_DIVIDED = 4
_LARGER = 4
# What gathering only some terms of a sum must save to be worth it: x**2 + y**2 - 2*x*y stays.
_GATHERING = 2
# Products written for one formula; after so many, sums beside others are left as they stand. Most need
# a few dozen, nested exponents with many constants would need tens of thousands.
_MAX_WRITTEN = 500


class Layout:
    """Writes the normal forms of one algebra; remembers what it has written."""

    def __init__(self, algebra: Algebra) -> None:
        self.algebra = algebra
        self._sums: dict[str, Expression] = {}
        self._products: dict[str, Expression] = {}
        self._plain_products: dict[str, Expression] = {}
        self._costs: dict[Expression, tuple[int, int, int]] = {}

    # ---- cost ----

    def cost(self, tree: Expression) -> tuple[int, int, int]:
        """Cost of a tree and, for ties, the variables and signs in it and the 1s that something is less."""
        known = self._costs.get(tree)
        if known is None:
            known = self._cost(tree)
            self._costs[tree] = known
        return known

    def _cost(self, tree: Expression) -> tuple[int, int, int]:
        if isinstance(tree, Apply):
            total, names, behind = OPERATORS[tree.operator].complexity, 0, 0
            for part in tree.arguments:
                cost, count, ones = self.cost(part)
                total, names, behind = total + cost, names + count, behind + ones
            # 1 - v**2/c**2 rather than c**2/v**2 - 1.
            behind += tree.operator == "sub" and tree.arguments[1] == ONE
            if tree.operator == "pow" and isinstance(tree.arguments[1], Number):
                exponent = tree.arguments[1].value
                if isinstance(exponent, Fraction) and 10_000 % exponent.denominator:
                    total -= 2
                elif exponent in (2, 3, 4, 5, 6) and not isinstance(tree.arguments[0], Apply | Number):
                    total -= 1
            return total, names + (tree.operator == "neg"), behind
        if isinstance(tree, Number) and isinstance(tree.value, Fraction) and 10_000 % tree.value.denominator:
            return 3, 0, 0
        return 1, int(isinstance(tree, Variable) or (isinstance(tree, Number) and tree.value < 0)), 0

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
            known = self._plain_sum(value)
            for other in with_logs_joined(self.algebra, value):
                known = self.best([known, self.sum(other)])
            if len(value.terms) > 2:
                for other, margin in self._with_common_factor(value):
                    tree = self.sum(other)
                    old, new = self.cost(known), self.cost(tree)
                    if new[0] + margin < old[0] or (not margin and new < old):
                        known = tree
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
                continue
            # -b*(cos(x) - 1) is better added as b*(1 - cos(x)).
            turned, part = self.product(term), self.product(scaled(term, -1))
            if self.cost(turned) <= self.cost(part):
                tree = Apply("add", (tree, turned))
            else:
                tree = Apply("sub", (tree, part))
        assert tree is not None
        return tree

    def _with_common_factor(self, value: Sum) -> Iterator[tuple[Sum, int]]:
        """`a*x + a*y + b` as `a*(x + y) + b`, with what that must save; a polynomial in x stays as it is."""
        if len({base.key for term in value.terms for base, _ in term.factors}) == 1:
            return
        counts: dict[str, list[int]] = {}
        for position, term in enumerate(value.terms):
            for base, power in term.factors:
                kind = "+" if not isinstance(power, Sum) and power > 0 else "-"
                counts.setdefault(base.key + kind, []).append(position)
        seen: set[tuple[int, ...]] = set()
        # Long sums have many groupings: only the most promising are tried.
        most = {3: 8, 4: 6, 5: 3, 6: 2}.get(len(value.terms), 1)
        for key in sorted(counts, key=lambda key: (-len(counts[key]), key))[:most]:
            positions = tuple(counts[key])
            if 1 < len(positions) < len(value.terms) and positions not in seen:
                seen.add(positions)
                chosen = [Sum((value.terms[position],)) for position in positions]
                gathered = self.algebra.add(chosen)
                if len(gathered.terms) == 1:
                    rest = [term for position, term in enumerate(value.terms) if position not in positions]
                    # b - b*cos(x) is always b*(1 - cos(x)).
                    with_number = any(
                        base.kind == SUM and not base.sum.terms[-1].factors
                        for base, _ in gathered.terms[0].factors
                    )
                    yield raw_sum([*rest, gathered.terms[0]]), 0 if with_number else _GATHERING

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
        """The best of the product as it is, and with its sums divided by some of their parts.

        `c**2 - v**2` beside powers of c is `1 - v**2/c**2`; with two sums, both may have to change
        for the formula to become shorter, so the choices for one are tried on top of the other's.
        """
        product = Product(product.coefficient, tuple(opened(factor) for factor in product.factors))
        choices: list[tuple[Expression, int]] = [(self._written(product), 0)]
        stage: list[Product] = [product]
        sums = [base.key for base, power in product.factors if base.kind == SUM and len(base.sum.terms) > 1]
        for key in sums[:2]:
            found: list[Product] = []
            largest = size(Sum((product,))) + _LARGER
            for current in stage:
                for option, margin in self._divided(current, key):
                    if len(self._plain_products) > _MAX_WRITTEN:
                        break
                    if size(option) > largest:
                        continue
                    if len(option.terms) == 1:
                        if len(found) < _MAX_OPTIONS:
                            found.append(option.terms[0])
                        choices.append((self._written(option.terms[0]), margin))
                    else:
                        choices.append((self.sum(option), margin))
            stage += found
        best, _ = choices[0]
        for tree, margin in choices[1:]:
            old, new = self.cost(best), self.cost(tree)
            if new[0] + margin < old[0] or (not margin and new < old):
                best = tree
        return best

    def _divided(self, product: Product, key: str) -> Iterator[tuple[Sum, int]]:
        """The product with one of its sums divided by a factor that then stands outside.

        With each comes what it must save; 0 lets it win a tie by naming fewer variables.
        """
        place = next((place for place, (base, _) in enumerate(product.factors) if base.key == key), None)
        if place is None:
            return
        base, power = product.factors[place]
        if isinstance(power, Sum):
            return
        inner = base.sum
        others = product.factors[:place] + product.factors[place + 1 :]
        rest = Sum((Product(product.coefficient, others),))
        if power == 1:
            for joined in with_logs_joined(self.algebra, inner):
                if len(joined.terms) == 1:
                    yield self.algebra.multiply((rest, joined)), 0
            # Everything multiplied into the sum.
            parts = [self.algebra.multiply((rest, Sum((part,)))) for part in inner.terms]
            if all(len(part.terms) == 1 for part in parts):
                yield raw_sum([part.terms[0] for part in parts]), 0
        if isinstance(power, int) and power % 2 and any(part.coefficient < 0 for part in inner.terms):
            turned = raw_sum([scaled(part, -1) for part in inner.terms])
            yield self.algebra.multiply((rest, number(-1), single(sum_base(turned), power))), 0
        for divisor in self._divisors(inner, others, power):
            if not isinstance(power, int) and not self.algebra.signs.of_product(divisor) > 0:
                continue
            inverse = self.algebra.power(Sum((divisor,)), number(-1))
            left = [self.algebra.multiply((Sum((part,)), inverse)) for part in inner.terms]
            if any(len(part.terms) != 1 for part in left):
                continue
            raw = raw_sum([part.terms[0] for part in left])
            outside = self.algebra.power(Sum((divisor,)), number(power))
            margin = required_saving(left, divisor, power)
            yield self.algebra.multiply((rest, outside, single(sum_base(raw), power))), margin
            if isinstance(power, int) and power % 2 and product.coefficient < 0:
                turned = raw_sum([scaled(part.terms[0], -1) for part in left])
                yield (
                    self.algebra.multiply((rest, outside, number(-1), single(sum_base(turned), power))),
                    margin,
                )

    def _divisors(self, inner: Sum, others: tuple[Factor, ...], power: Value) -> Iterator[Product]:
        """What a sum may be divided by: its terms, their numbers, and what stands beside it."""
        inverse = exact.tidy(-1 / Fraction(power)) if not isinstance(power, float) else 0
        names = {base.key for term in inner.terms for base, _ in term.factors}
        beside = tuple(
            (base, self.algebra.times_power(outer, inverse))
            for base, outer in others
            if base.key in names and not isinstance(outer, Sum) and outer * inverse > 0
        )
        options: list[Product] = []
        if inverse and beside:
            options.append(Product(1, beside))
            if len(beside) > 1:
                options += [Product(1, (factor,)) for factor in beside]
        for term in inner.terms if len(inner.terms) <= _MAX_DIVIDED else ():
            options += [
                Product(1, term.factors),
                term,
                Product(magnitude(term.coefficient), ()),
            ]
        seen = {"1:~"}
        for option in options:
            name = f"{option.coefficient}:{option.key}"
            if name not in seen:
                seen.add(name)
                yield option

    def _written(self, product: Product) -> Expression:
        """A product with its sums as they stand."""
        if product.coefficient == 1 and len(product.factors) == 1:
            base, power = product.factors[0]
            if base.kind == SUM and power == 1 and len(base.sum.terms) > 1:
                return self.sum(base.sum)
        key = f"{product.coefficient}:{product.key}"
        known = self._plain_products.get(key)
        if known is None:
            known = self._plain_products[key] = self._write(product)
        return known

    def _write(self, product: Product) -> Expression:
        exps: list[Item] = []
        rooted: dict[int, list[tuple[Base, Fraction]]] = {}
        items: list[Item] = []
        for base, power in joined_quotients(product.factors):
            if base.kind == EULER:
                argument = self.sum(power) if isinstance(power, Sum) else Number(power)
                exps.append((Apply("exp", (argument,)), 1))
            elif isinstance(power, Fraction):
                rooted.setdefault(power.denominator, []).append((base, power))
            else:
                items.append((self.base(base), self.sum(power) if isinstance(power, Sum) else power))
        choices: list[tuple[Value, list[Item]]] = [(product.coefficient, [])]
        for degree in sorted(rooted):
            choices = [
                (left, [*done, *roots])
                for coefficient, done in choices
                for left, roots in self._roots(coefficient, degree, rooted[degree])
            ]
        return self.best(
            [
                quotient(left, numbers_first([*plain, *roots, *exps]))
                for coefficient, roots in choices
                for left, plain in grouped(coefficient, items)
            ]
        )

    def base(self, base: Base) -> Expression:
        """A base on its own."""
        if base.kind == CALL:
            return Apply(base.name, tuple(self.sum(argument) for argument in base.arguments))
        if base.kind == SUM:
            return self.sum(base.sum)
        assert base.leaf is not None
        return base.leaf

    def _roots(
        self, coefficient: Value, degree: int, rooted: list[tuple[Base, Fraction]]
    ) -> Iterator[tuple[Value, list[Item]]]:
        """Ways to write powers with one denominator, each with the coefficient that is left."""
        yield coefficient, [(self.base(base), power) for base, power in rooted]
        unit = Fraction(1, degree)
        if len(rooted) > 1:
            yield coefficient, [self._under_root(1, rooted, unit)]
            if any(abs(power) > 1 for _, power in rooted):
                # Whole powers in front: a*sqrt(a/b).
                front: list[Item] = []
                inside: list[tuple[Base, Fraction]] = []
                for base, power in rooted:
                    left = power % 1 if power > 0 else -(-power % 1)
                    inside.append((base, left))
                    if left != power:
                        front.append((self.base(base), int(power - left)))
                yield coefficient, [*front, self._under_root(1, inside, unit)]
        # The number under the root as well, which may also be one to a higher power: (2*a/b)**1.5.
        numeric = [(base, power) for base, power in rooted if base.kind == NUMBER]
        symbolic = [(base, power) for base, power in rooted if base.kind != NUMBER]
        if isinstance(coefficient, float):
            return
        primes: Value | None = 1
        for base, power in numeric:
            assert isinstance(base.leaf, Number)
            part = exact.whole_power(base.leaf.value, int(power * degree))
            primes = None if primes is None or part is None else exact.multiply(primes, part)
        raised = exact.whole_power(magnitude(coefficient), degree)
        if primes is None or raised is None:
            return
        sign = 1 if coefficient > 0 else -1
        if not symbolic:
            # x/sqrt(2), not x*sqrt(2)/2
            squared = Fraction(exact.multiply(primes, raised))
            if squared <= 0:
                return
            parts = ((squared.numerator, unit), (squared.denominator, -unit))
            yield sign, [(Number(value), power) for value, power in parts if value != 1]
            return
        shared = gcd(*[int(power * degree) for _, power in symbolic])
        for outside, radicand in ((sign, exact.multiply(primes, raised)), (coefficient, primes)):
            for degree_inside in sorted({1, shared}):
                inner = exact.whole_root(radicand, degree_inside)
                if inner is not None:
                    yield outside, [self._under_root(inner, symbolic, unit * degree_inside)]

    def _under_root(self, scale: int | Fraction, rooted: list[tuple[Base, Fraction]], unit: Fraction) -> Item:
        """One root of a product; a root of only a denominator stands in the denominator."""
        flip = -1 if Fraction(scale).numerator == 1 and all(power < 0 for _, power in rooted) else 1
        parts = [number(scale if flip > 0 else 1 / Fraction(scale))]
        parts += [
            self.algebra.power(base.sum if base.kind == SUM else single(base), number(flip * power / unit))
            for base, power in rooted
        ]
        return self.sum(self.algebra.multiply(parts)), flip * unit
