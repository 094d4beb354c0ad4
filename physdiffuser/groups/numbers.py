"""Numbers in place of fitted constants, in the skeleton of a law of groups."""

from __future__ import annotations

from collections.abc import Callable

from physdiffuser.expressions import Expression, Number, Parameter
from physdiffuser.expressions.simplification.textbook.arrange import arrange
from physdiffuser.expressions.tree import free_constants, substitute
from physdiffuser.groups.joint_fit import JointFit

Placed = tuple[Expression, list[int]]
"""A skeleton, and which of the constants before are left."""
PutNumber = Callable[[JointFit, int, Number], Placed | None]
"""Puts a number in place of a constant of a law; None where the constant has to stay."""


def with_number(fit: JointFit, position: int, number: Number) -> Placed:
    """The skeleton with a number in place of a constant, simplified, and which constants are left."""
    # Distinct numbers mark the constants while the formula is simplified, which knows no parameters.
    marks = {index: 1.0 + index * 1e-3 + 1e-7 for index in range(len(fit.shared)) if index != position}

    def mark(node: Expression) -> Expression | None:
        if isinstance(node, Parameter):
            return number if node.index == position else Number(marks[node.index])
        return None

    marked = substitute(fit.skeleton, mark)
    simplified = arrange(marked)
    found = _unmarked(simplified, marks)
    return (_put(fit.skeleton, position, number), list(marks)) if found is None else found


def _put(skeleton: Expression, position: int, number: Number) -> Expression:
    """The skeleton with a number in place of a parameter, not simplified; the others keep their order."""

    def put(node: Expression) -> Expression | None:
        if not isinstance(node, Parameter):
            return None
        return number if node.index == position else Parameter(node.index - (node.index > position))

    return substitute(skeleton, put)


def _unmarked(expression: Expression, marks: dict[int, float]) -> tuple[Expression, list[int]] | None:
    """The skeleton and the constants of the marks; None where a simplification has changed one."""
    skeleton, found = free_constants(expression)
    of_mark = {value: index for index, value in marks.items()}
    if any(value not in of_mark for value in found) or len(set(found)) < len(found):
        return None
    return skeleton, [of_mark[value] for value in found]
