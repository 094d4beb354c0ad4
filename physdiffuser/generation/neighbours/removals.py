"""A formula with a part of it left out, or with a fitted constant that is nearly neutral made so."""

from __future__ import annotations

from fractions import Fraction

from physdiffuser.expressions import ONE, Apply, Expression, Number
from physdiffuser.expressions.places import positions, replace_at

# What a fitted constant is tried as: factors that say little, and exponents that laws have. Other exact
# numbers are for the end, when uncertainties are known.
_EXPONENTS = ((-3, 1), (-2, 1), (-1, 1), (-1, 2), (1, 2), (3, 2), (2, 1), (3, 1), (4, 1))
FACTORS = (-2, -1, 1, 2)
EXPONENTS = tuple(
    Fraction(*pair) for pair in ((-3, 1), (-2, 1), (-1, 1), (-1, 2), (1, 2), (3, 2), (2, 1), (3, 1), (4, 1))
)
NEAR = 0.1


def removals(expression: Expression) -> list[Expression]:
    """All formulas that this leaves when one thing is taken out, without repetition."""
    found: dict[Expression, None] = {}
    for path, node in positions(expression):
        if isinstance(node, Number) and not node.exact:
            exponent = bool(path) and _is_power(expression, path)
            for exact in EXPONENTS if exponent else FACTORS:
                if abs(float(exact) - float(node.value)) <= NEAR * abs(float(exact)):
                    found[replace_at(expression, path, _number(exact))] = None
        if not isinstance(node, Apply):
            continue
        for argument in node.arguments:
            found[replace_at(expression, path, argument)] = None
        if node.operator == "sub":
            found[replace_at(expression, path, Apply("neg", (node.arguments[1],)))] = None
        if node.operator == "div":
            found[replace_at(expression, path, Apply("div", (ONE, node.arguments[1])))] = None
    found.pop(expression, None)
    return list(found)


def _is_power(expression: Expression, path: tuple[int, ...]) -> bool:
    """Whether what is at a path is an exponent."""
    node = expression
    for place in path[:-1]:
        assert isinstance(node, Apply)
        node = node.arguments[place]
    return isinstance(node, Apply) and node.operator == "pow" and path[-1] == 1


def _number(value: int | Fraction) -> Number:
    value = Fraction(value)
    return Number(int(value) if value.denominator == 1 else value)
