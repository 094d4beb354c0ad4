"""The canonical form: equal formulas, as far as cheap rules go, become the same tree.

Sums and products are flat and ordered, numbers folded exactly, like terms and like factors merged;
`-`, `/`, a sign, `sqrt` and `tan` are written with `+ * **`, `sin` and `cos`. What two formulas have in
common beyond that (an expanded square, a trigonometric identity) is for `verification.equivalent`.

The form is for comparing. It may define a formula where it was not defined (`sqrt(x)**2` is `x`) and
may cost digits (`log(1 + y/x)` is `log(x + y) - log(x)`): `arrange` is what users see.
"""

from __future__ import annotations

from collections.abc import Sequence

from physdiffuser.expressions.simplification.algebra import Algebra
from physdiffuser.expressions.simplification.functions import apply
from physdiffuser.expressions.simplification.normal_form import (
    CALL,
    EULER,
    SUM,
    Base,
    Power,
    Product,
    Sum,
    leaf_base,
    number,
    single,
)
from physdiffuser.expressions.simplification.signs import Interval, Signs
from physdiffuser.expressions.tree import Apply, Expression, Number, chain

_MINUS_ONE = number(-1)


def canonical(
    expression: Expression,
    *,
    positive: frozenset[int] = frozenset(),
    ranges: Sequence[Interval] | None = None,
) -> Expression:
    """The canonical form of an expression.

    Parameters
    ----------
    positive
        Columns that are never negative: `sqrt(x**2)` is then `x`, and roots and logarithms of
        products come apart.
    ranges
        Lowest and highest value of each column. Signs of whole sums then follow too:
        `abs(c - v)` is `c - v` where the ranges say so.

    Returns
    -------
    A tree of the same value wherever the expression is defined. The form of a canonical form is
    itself.
    """
    return to_tree(to_normal(expression, Algebra(Signs(positive, ranges))))


def to_normal(expression: Expression, algebra: Algebra) -> Sum:
    """The normal form of a tree."""
    return _Reader(algebra).read(expression)


class _Reader:
    def __init__(self, algebra: Algebra) -> None:
        self.algebra = algebra
        self.seen: dict[Expression, Sum] = {}

    def read(self, node: Expression) -> Sum:
        if isinstance(node, Number):
            # Not kept: 0.5 and 1/2 are equal as keys, but only one is exact.
            return number(node.value)
        known = self.seen.get(node)
        if known is None:
            known = self._apply(node) if isinstance(node, Apply) else single(leaf_base(node))
            self.seen[node] = known
        return known

    def _apply(self, node: Apply) -> Sum:
        algebra = self.algebra
        match node.operator:
            case "add" | "sub" | "neg":
                return algebra.add(self._addends(node))
            case "mul" | "div":
                return algebra.multiply(self._factors(node))
            case "pow":
                return algebra.power(self.read(node.arguments[0]), self.read(node.arguments[1]))
            case _:
                return apply(algebra, node.operator, tuple(self.read(part) for part in node.arguments))

    def _addends(self, node: Expression) -> list[Sum]:
        """Values of the terms of a nest of sums, differences and signs."""
        found: list[Sum] = []
        stack: list[tuple[Expression, int]] = [(node, 1)]
        while stack:
            part, sign = stack.pop()
            if isinstance(part, Apply) and part.operator in ("add", "sub", "neg"):
                last = -sign if part.operator != "add" else sign
                stack.append((part.arguments[-1], last))
                if len(part.arguments) == 2:
                    stack.append((part.arguments[0], sign))
            else:
                value = self.read(part)
                found.append(value if sign > 0 else self.algebra.multiply((_MINUS_ONE, value)))
        return found

    def _factors(self, node: Expression) -> list[Sum]:
        """Values of the factors of a nest of products and quotients."""
        found: list[Sum] = []
        stack: list[tuple[Expression, int]] = [(node, 1)]
        while stack:
            part, sign = stack.pop()
            if isinstance(part, Apply) and part.operator in ("mul", "div"):
                stack.append((part.arguments[1], -sign if part.operator == "div" else sign))
                stack.append((part.arguments[0], sign))
            else:
                value = self.read(part)
                found.append(value if sign > 0 else self.algebra.power(value, _MINUS_ONE))
        return found


def to_tree(value: Sum) -> Expression:
    """A normal form as a tree of `+ * **` and functions, nested to the left."""
    if not value.terms:
        return Number(0)
    return chain("add", [_product_tree(term) for term in value.terms])


def _product_tree(product: Product) -> Expression:
    parts = [_factor_tree(base, power) for base, power in product.factors]
    if product.coefficient != 1 or not parts:
        parts.insert(0, Number(product.coefficient))
    return chain("mul", parts)


def _factor_tree(base: Base, power: Power) -> Expression:
    exponent: Expression = to_tree(power) if isinstance(power, Sum) else Number(power)
    if base.kind == EULER:
        return Apply("exp", (exponent,))
    tree = base_tree(base)
    return tree if power == 1 else Apply("pow", (tree, exponent))


def base_tree(base: Base) -> Expression:
    """The tree of a base on its own."""
    if base.kind == SUM:
        return to_tree(base.sum)
    if base.kind == CALL:
        return Apply(base.name, tuple(to_tree(argument) for argument in base.arguments))
    if base.kind == EULER:
        return Apply("exp", (Number(1),))
    assert base.leaf is not None
    return base.leaf
