"""Forms of a formula without the poles that only its way of writing has."""

from __future__ import annotations

from collections.abc import Iterator

from physdiffuser.expressions.simplification.algebra import Algebra
from physdiffuser.expressions.simplification.canonical import to_normal
from physdiffuser.expressions.simplification.normal_form import Sum
from physdiffuser.expressions.simplification.reduce import Reducer
from physdiffuser.expressions.simplification.signs import Signs
from physdiffuser.expressions.simplification.textbook.layout import Layout
from physdiffuser.expressions.tree import Apply, Expression, substitute


def divided_forms(expression: Expression, *, positive: frozenset[int] = frozenset()) -> list[Expression]:
    """The formula with quotients of sums divided out, also where that makes it longer.

    `x*(1 - x**5)/(1 - x)` gives `x + x**2 + x**3 + x**4 + x**5`, which has a value at 1.

    Parameters
    ----------
    positive
        Columns that are never negative.

    Returns
    -------
    Other forms of the same value, in no order; empty where nothing divides out.
    """
    algebra = Algebra(Signs(positive))
    reducer, layout = Reducer(algebra), Layout(algebra)

    def divided(node: Expression) -> Expression | None:
        if not isinstance(node, Apply):
            return None
        found = next(_quotients(to_normal(node, algebra), reducer), None)
        return None if found is None else layout.sum(found)

    whole = divided(expression)
    inside = substitute(expression, divided) if whole is None else expression
    return [form for form in (whole, inside) if form is not None and form != expression]


def _quotients(value: Sum, reducer: Reducer) -> Iterator[Sum]:
    """Equal values in which a sum has been divided by another one."""
    for form in (value, *reducer.together(value)):
        for place, term in enumerate(form.terms):
            others = [Sum((other,)) for at, other in enumerate(form.terms) if at != place]
            for quotient in reducer.divided_out(term):
                yield reducer.algebra.add([*others, quotient])
