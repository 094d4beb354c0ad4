"""A formula with one fitted constant in the place of two that are nearly equal.

With a near b `a/sqrt(1 - x) - b` is `a*(1/sqrt(1 - x) - 1)`, and `a/(b + exp(x))` is `1/(1 + exp(x)/b)`. A
fit of the first form leaves two constants that differ by less than their errors.
"""

from __future__ import annotations

from collections.abc import Iterator

from physdiffuser.expressions import ONE, Apply, Expression, Number
from physdiffuser.expressions.tree import add, div, mul, positions, replace_at, sub

# Constants whose ratio differs from 1 or -1 by at most this are tried as one; a fit decides.
NEAR = 0.1


def ties(expression: Expression) -> list[Expression]:
    """All formulas in which two fitted constants of this become one, without repetition."""
    found: dict[Expression, None] = {}
    for path, node in positions(expression):
        if isinstance(node, Apply):
            for tied in (*_in_sum(node), *_in_quotient(node)):
                found[replace_at(expression, path, tied)] = None
    return list(found)


def _in_sum(node: Apply) -> Iterator[Expression]:
    """`a*(A - B)` for `a*A - b*B`."""
    if node.operator not in ("add", "sub"):
        return
    left, right = (_factor(argument) for argument in node.arguments)
    if left is not None and right is not None and _near(left[0], right[0]):
        alike = (left[0] * right[0] > 0) == (node.operator == "add")
        yield mul(Number(left[0]), (add if alike else sub)(left[1], right[1]))


def _in_quotient(node: Apply) -> Iterator[Expression]:
    """`A/(1 + B/b)` for `a*A/(b + B)`."""
    if node.operator != "div":
        return
    above, below = _factor(node.arguments[0]), node.arguments[1]
    if above is None or not isinstance(below, Apply) or below.operator not in ("add", "sub"):
        return
    for place, argument in enumerate(below.arguments):
        if isinstance(argument, Number) and not argument.exact and _near(above[0], float(argument.value)):
            sign = -1.0 if below.operator == "sub" else 1.0
            scale = Number(sign / float(argument.value))
            quotient = div(above[1], add(ONE, mul(scale, below.arguments[1 - place])))
            outer = above[0] * float(argument.value) * (sign if place else 1.0)
            yield quotient if outer > 0 else Apply("neg", (quotient,))


def _near(one: float, other: float) -> bool:
    return one != 0 and other != 0 and abs(abs(one / other) - 1.0) <= NEAR


def _factor(node: Expression) -> tuple[float, Expression] | None:
    """The fitted number that a term is a multiple of, and the rest; None without one."""
    match node:
        case Number() if not node.exact:
            return float(node.value), ONE
        case Apply("neg", (inner,)):
            found = _factor(inner)
            return None if found is None else (-found[0], found[1])
        case Apply("div", (above, below)):
            found = _factor(above)
            return None if found is None else (found[0], div(found[1], below))
        case Apply("mul", (left, right)):
            first, second = _factor(left), _factor(right)
            if first is not None:
                return first[0], right if first[1] == ONE else mul(first[1], right)
            if second is not None:
                return second[0], left if second[1] == ONE else mul(left, second[1])
    return None
