"""Roots of squares, which the search makes by squaring the target, without the root."""

from __future__ import annotations

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.expressions import Apply, Expression, Number, evaluate
from physdiffuser.expressions.tree import call, substitute
from physdiffuser.finalize.evidence.poles import box_points


@np.errstate(all="ignore")
def without_roots_of_squares(expression: Expression, inputs: FloatArray) -> Expression:
    """The formula with `u` for `sqrt(u**2)` and `sqrt(u)**2` where `u` is never negative.

    Where it is never positive, `sqrt(u**2)` is `-u`.

    Parameters
    ----------
    expression
        The formula.
    inputs
        Shape (rows, columns). The sign is looked at in the bounding box of the rows.
    """
    points = box_points(inputs)

    def replace(node: Expression) -> Expression | None:
        inner = _under_root(node)
        if inner is None:
            return None
        inner = substitute(inner, replace)
        values = evaluate(inner, points)
        if (values >= 0.0).all():
            return inner
        return call("neg", inner) if (values <= 0.0).all() else None

    return substitute(expression, replace)


def _under_root(node: Expression) -> Expression | None:
    """The `u` of `sqrt(u**2)` and `sqrt(u)**2`; None of anything else."""
    match node:
        case Apply("sqrt", (Apply("pow", (inner, Number(value=2))),)):
            return inner
        case Apply("pow", (Apply("pow", (inner, Number(value=2))), Number(value=half))) if half == 0.5:
            return inner
        case Apply("pow", (Apply("sqrt", (inner,)), Number(value=2))):
            return inner
    return None
