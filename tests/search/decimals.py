"""Formulas with fitted constants, as tests write them."""

from __future__ import annotations

from collections.abc import Sequence

from physdiffuser.expressions import Expression, Number, parse
from physdiffuser.expressions.tree import substitute


def to_be_fitted(text: str, names: Sequence[str]) -> Expression:
    """The formula with its decimal numbers as fitted constants."""

    def replace(node: Expression) -> Expression | None:
        decimal = isinstance(node, Number) and not float(node.value).is_integer()
        return Number(float(node.value)) if decimal else None  # type: ignore[union-attr]

    return substitute(parse(text, names), replace)
