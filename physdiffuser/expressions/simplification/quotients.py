"""Products and quotients of trees: what goes above the line, what below, and what shares a power."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TypeAlias

from physdiffuser.expressions.simplification import exact
from physdiffuser.expressions.simplification.exact import Value, magnitude
from physdiffuser.expressions.tree import Apply, Expression, Number, Variable, chain, walk

HALF = Fraction(1, 2)
Item: TypeAlias = tuple[Expression, Value | Expression]


def grouped(coefficient: Value, items: list[Item]) -> Iterator[tuple[Value, list[Item]]]:
    """The items as they are, and with a power they share outside a bracket: `(a*b/2)**2`."""
    yield coefficient, items
    sizes = {magnitude(power) for _, power in items if isinstance(power, int | float | Fraction)}
    for size in sorted(sizes - {1}):
        group: list[Item] = []
        rest: list[Item] = []
        for tree, power in items:
            inner = _quotient_of(power, size)
            if inner is None:
                rest.append((tree, power))
            else:
                group.append((tree, inner))
        if len(group) < 2:
            continue
        if all(isinstance(power, int) and power < 0 for _, power in group):
            flipped: list[Item] = [(tree, -power) for tree, power in group if isinstance(power, int)]
            yield coefficient, [*rest, (quotient(1, flipped), -size)]
            continue
        yield coefficient, [*rest, (quotient(1, group), size)]
        if isinstance(size, int) and not isinstance(coefficient, float) and coefficient not in (1, -1):
            inside = exact.whole_root(coefficient if coefficient > 0 else -coefficient, size)
            if inside is not None:
                yield (1 if coefficient > 0 else -1), [*rest, (quotient(inside, group), size)]


def numbers_first(items: list[Item]) -> list[Item]:
    """Roots of numbers stand before the variables: sqrt(2)*x."""
    return sorted(items, key=lambda item: any(isinstance(node, Variable) for node in walk(item[0])))


def _decimal(value: Fraction) -> bool:
    """Whether a coefficient reads better as 3.7 than as 37/10: not so 3/2, 3/20, 32/5."""
    if 10_000 % value.denominator:
        return False
    if value.numerator == 1 and value.denominator <= 1000:
        return False
    smooth = value.numerator
    for prime in (2, 3):
        while smooth % prime == 0:
            smooth //= prime
    return not (
        (value.denominator <= 50 and smooth == 1 and value.numerator <= 64)
        or (value.denominator in (2, 4) and value.numerator <= 12)
    )


def _quotient_of(power: Value | Expression, size: Value) -> int | None:
    """`power/size` where that is whole and not zero."""
    if isinstance(power, int | Fraction) and not isinstance(size, float):
        ratio = Fraction(power) / size
        return int(ratio) if ratio.denominator == 1 else None
    if isinstance(power, float) and abs(power) == size:
        return 1 if power > 0 else -1
    return None


def quotient(coefficient: Value, items: Sequence[Item]) -> Expression:
    """`coefficient * item * item ...` with negative powers in the denominator."""
    top: list[Expression] = []
    bottom: list[Expression] = []
    for tree, power in items:
        if isinstance(power, int | float | Fraction):
            (top if power > 0 else bottom).append(_power(tree, magnitude(power)))
        else:
            top.append(Apply("pow", (tree, power)))
    negative = coefficient < 0
    coefficient = exact.tidy(magnitude(coefficient))
    if isinstance(coefficient, Fraction) and (top or bottom) and not _decimal(coefficient):
        bottom.insert(0, Number(coefficient.denominator))
        coefficient = coefficient.numerator
    if coefficient != 1 or not top:
        top.insert(0, Number(coefficient))
    if negative:
        first = top[0]
        top[0] = Number(-first.value) if isinstance(first, Number) else Apply("neg", (first,))
    return _fraction(top, bottom)


def _fraction(top: Sequence[Expression], bottom: Sequence[Expression]) -> Expression:
    above = chain("mul", top) if top else Number(1)
    return Apply("div", (above, chain("mul", bottom))) if bottom else above


def _power(tree: Expression, power: Value) -> Expression:
    if power == 1:
        return tree
    if power == HALF:
        return Apply("sqrt", (tree,))
    return Apply("pow", (tree, Number(power)))
