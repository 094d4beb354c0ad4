"""The form of a formula that a physicist would write."""

from __future__ import annotations

from physdiffuser.expressions.algebra import Algebra
from physdiffuser.expressions.canonical import to_normal
from physdiffuser.expressions.layout import Layout
from physdiffuser.expressions.signs import Signs
from physdiffuser.expressions.tree import Expression


def arrange(expression: Expression, *, positive: frozenset[int] = frozenset()) -> Expression:
    """Write an expression as briefly as its canonical form allows, in the customary order.

    Parameters
    ----------
    expression
        The tree.
    positive
        Columns that are never negative.
    """
    algebra = Algebra(Signs(positive))
    return Layout(algebra).sum(to_normal(expression, algebra))
