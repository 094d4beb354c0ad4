"""Formulas as text to skeletons, for the tests of fitting."""

from __future__ import annotations

from collections.abc import Sequence

from physdiffuser.expressions import Expression, Number, Parameter, Symbol, Variable, parse
from physdiffuser.expressions.tree import substitute


def skeleton_of(text: str, columns: Sequence[str] = ("x", "y"), parameters: Sequence[str] = ()) -> Expression:
    """Parse a formula; names `c1`, `c2`, ... (or those given) are its parameters."""
    names = list(parameters) or [f"c{index + 1}" for index in range(9)]
    parsed = parse(text, [*columns, *names])

    def replace(node: Expression) -> Expression | None:
        if isinstance(node, Variable) and node.index >= len(columns):
            return Parameter(node.index - len(columns))
        return None

    return substitute(parsed, replace)


def as_fitted(text: str, columns: Sequence[str] = ("x", "y")) -> Expression:
    """Parse a formula and forget that its numbers are exact, as a fit would give it."""

    def replace(node: Expression) -> Expression | None:
        return Number(float(node.value)) if isinstance(node, Number | Symbol) else None

    return substitute(parse(text, columns), replace)
