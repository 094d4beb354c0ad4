"""Forbidden nestings: `sin(sin)` says that no sine stands anywhere inside the argument of a sine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from physdiffuser.expressions.definitions import expanded
from physdiffuser.expressions.tree import Apply, Expression, walk


def nesting_test(forbidden: Iterable[tuple[str, str]]) -> Callable[[Expression], bool]:
    """Whether a formula has none of the nestings, as written and with definitions expanded."""
    inside: dict[str, set[str]] = defaultdict(set)
    for outer, inner in forbidden:
        inside[outer].add(inner)
    if not inside:
        return lambda expression: True

    def free(expression: Expression) -> bool:
        for node in walk(expression):
            if isinstance(node, Apply) and node.operator in inside:
                below = (part for argument in node.arguments for part in walk(argument))
                if any(isinstance(part, Apply) and part.operator in inside[node.operator] for part in below):
                    return False
        return True

    def test(expression: Expression) -> bool:
        if not free(expression):
            return False
        plain = expanded(expression)
        return plain is expression or free(plain)

    return test
