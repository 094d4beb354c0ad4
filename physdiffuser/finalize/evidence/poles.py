"""Poles of a formula between the rows of a table, and forms of it that have none."""

from __future__ import annotations

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.expressions import Expression, evaluate
from physdiffuser.expressions.poles import has_pole
from physdiffuser.expressions.simplification.regular import divided_forms

_POINTS, _LINES, _STEPS = 1_000, 12, 64
_SAME = 1e-7


def box_points(inputs: FloatArray) -> FloatArray:
    """Points of the bounding box of the rows: rows, random points, and lines across it from end to end.

    Parameters
    ----------
    inputs
        Shape (rows, columns).

    Returns
    -------
    Shape (points, columns); equal for equal inputs.
    """
    random = np.random.default_rng(0)
    low, high = inputs.min(axis=0), inputs.max(axis=0)
    some = inputs[np.linspace(0, len(inputs) - 1, min(len(inputs), _POINTS)).astype(np.intp)]
    columns = inputs.shape[1]
    place = np.linspace(0.0, 1.0, _STEPS)[:, None]
    ends = random.integers(0, 2, (_LINES, columns)).astype(np.float64)
    lines = [place * end + (1.0 - place) * (1.0 - end) for end in ends]
    share = np.concatenate([random.uniform(size=(_POINTS, columns)), *lines])
    return np.concatenate([some, (1.0 - share) * low + share * high])


def regular_form(
    expression: Expression, inputs: FloatArray, *, positive: frozenset[int] = frozenset()
) -> Expression | None:
    """The same formula without a pole in the bounding box of the rows, if dividing out gives one.

    Parameters
    ----------
    expression
        The formula.
    inputs
        Shape (rows, columns).
    positive
        Columns that are never negative.

    Returns
    -------
    None if the formula has no pole there, or keeps one in all forms that were found.
    """
    points = box_points(inputs)
    if not has_pole(expression, points):
        return None
    before = evaluate(expression, inputs)
    for form in divided_forms(expression, positive=positive):
        after = evaluate(form, inputs)
        same = np.allclose(after, before, rtol=_SAME, atol=_SAME * float(np.abs(before).max(initial=0.0)))
        if same and not has_pole(form, points):
            return form
    return None
