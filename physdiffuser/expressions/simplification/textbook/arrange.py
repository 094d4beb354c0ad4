"""The form of a formula that a physicist would write."""

from __future__ import annotations

from physdiffuser.expressions.simplification.algebra import Algebra
from physdiffuser.expressions.simplification.canonical import to_normal
from physdiffuser.expressions.simplification.reduce import Reducer, size
from physdiffuser.expressions.simplification.signs import Signs
from physdiffuser.expressions.simplification.textbook.layout import Layout
from physdiffuser.expressions.tree import Expression

# A reduction to less than this share is not questioned by laying out both.
_MUCH_SMALLER = 0.75


def arrange(expression: Expression, *, positive: frozenset[int] = frozenset()) -> Expression:
    """Write an expression briefly and in the customary order.

    Of the canonical form and the form after `reduce`, each laid out by `layout`, the one of lower
    cost is taken; the same input gives the same output.

    Parameters
    ----------
    positive
        Columns that are never negative.

    Returns
    -------
    A tree of the same value wherever the expression is defined.
    """
    algebra = Algebra(Signs(positive))
    layout = Layout(algebra)
    value = to_normal(expression, algebra)
    reduced = Reducer(algebra).value(value)
    trees = [layout.sum(reduced)]
    if reduced.key != value.key and size(reduced) > _MUCH_SMALLER * size(value):
        trees.append(layout.sum(value))
    return layout.best(trees)
