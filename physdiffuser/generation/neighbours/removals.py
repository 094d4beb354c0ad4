"""A formula with a part of it left out, or with a fitted constant that is nearly neutral made so."""

from __future__ import annotations

from fractions import Fraction

from physdiffuser.expressions import ONE, Apply, Expression, Number
from physdiffuser.expressions.tree import Path, number_expression, positions, replace_at, substitute

# What a fitted constant is tried as: factors that say little, and exponents that laws have. Other exact
# numbers are for the end, when uncertainties are known.
FACTORS = tuple(map(Fraction, (-2, -1, 1, 2)))
EXPONENTS = tuple(map(Fraction, ("-3", "-2", "-1", "-1/2", "1/2", "3/2", "2", "3", "4")))
NEAR = 0.1


# Constants that are nearer to an integer than this share of it are taken to be meant as that.
MEANT, MAX_MEANT = 0.03, 4


def as_meant(expression: Expression) -> Expression:
    """The formula with all constants that are nearly small integers as these.

    Where one part of a formula is not right yet, fitted constants elsewhere make up for it.
    """

    def meant(node: Expression) -> Expression | None:
        if not isinstance(node, Number) or node.exact:
            return None
        value = float(node.value)
        whole = round(value) if abs(value) < MAX_MEANT + 0.5 else 0
        return Number(whole) if whole and abs(value - whole) <= MEANT * abs(whole) else None

    return substitute(expression, meant)


def removals(expression: Expression) -> list[Expression]:
    """All formulas that this leaves when one thing is taken out, without repetition."""
    found: dict[Expression, None] = {}
    exponents: set[Path] = set()
    for path, node in positions(expression):
        if isinstance(node, Number) and not node.exact:
            for exact in EXPONENTS if path in exponents else FACTORS:
                if abs(float(exact) - float(node.value)) <= NEAR * abs(float(exact)):
                    found[replace_at(expression, path, number_expression(exact))] = None
        if not isinstance(node, Apply):
            continue
        if node.operator == "pow":
            exponents.add((*path, 1))
        for argument in node.arguments:
            found[replace_at(expression, path, argument)] = None
        if node.operator == "sub":
            found[replace_at(expression, path, Apply("neg", (node.arguments[1],)))] = None
        if node.operator == "div":
            found[replace_at(expression, path, Apply("div", (ONE, node.arguments[1])))] = None
    found.pop(expression, None)
    return list(found)
