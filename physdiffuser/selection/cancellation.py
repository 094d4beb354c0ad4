"""Large terms that cancel: sums whose constants the rows do not determine.

`A*log(p + b) - A*log(p + c)` approaches `A*(b - c)/(p + c)` as b approaches c and A grows. A fit drives the
constants towards this limit without end. The difference between such a formula and its limit is as small,
relative to its value, as the value is relative to the terms; errors larger than that hide it, and then the
formula is no candidate.
"""

from __future__ import annotations

import numpy as np

from physdiffuser.arrays import FloatArray, spread_places
from physdiffuser.expressions import Apply, Expression, Number, evaluate
from physdiffuser.expressions.tree import variables, walk
from physdiffuser.fitting.losses import root_mean_square

# Terms so many times larger than their sum are looked at.
MIN_RATIO = 300.0
_ROWS = 300


def cancels(expression: Expression, inputs: FloatArray, loss: float) -> bool:
    """Whether terms with fitted constants cancel so far that the rows do not determine the constants.

    Columns far from 0 for their width make terms cancel by themselves, as `a + b*year` shows; so much is
    allowed.

    Parameters
    ----------
    inputs
        Shape (rows, columns).
    loss
        Mean squared residual relative to the constant model's.
    """
    some = inputs[spread_places(len(inputs), _ROWS)]
    ratio = largest_cancellation(expression, some)
    if ratio * min(1.0, np.sqrt(loss)) <= 1.0 or ratio <= MIN_RATIO:
        return False
    own = _of_columns(some[:, sorted(variables(expression))])
    return ratio > MIN_RATIO * own and ratio * min(1.0, np.sqrt(loss)) > own


def largest_cancellation(expression: Expression, inputs: FloatArray) -> float:
    """How many times larger than a sum with fitted constants its terms are; the largest such ratio.

    A logarithm near 0 counts as a difference: `log((p + b)/(p + c))` is `log(p + b) - log(p + c)`.
    """
    largest = 1.0
    with np.errstate(all="ignore"):
        for node in walk(expression):
            if not (isinstance(node, Apply) and variables(node) and _has_fitted(node)):
                continue
            if node.operator in ("add", "sub"):
                terms = sum(np.abs(evaluate(part, inputs)) for part in node.arguments)
            elif node.operator == "log":
                terms = np.ones(len(inputs))
            else:
                continue
            left, whole = root_mean_square(evaluate(node, inputs)), root_mean_square(np.asarray(terms))
            # Terms that cancel on all rows to the last digit leave no value.
            ratio = whole / left if left > 0.0 else (np.inf if whole > 0.0 else 1.0)
            if np.isfinite(whole):
                largest = max(largest, ratio)
    return largest


def _has_fitted(expression: Expression) -> bool:
    return any(isinstance(node, Number) and not node.exact for node in walk(expression))


def _of_columns(columns: FloatArray) -> float:
    """By how much a sum of a constant and multiples of the columns may cancel: their condition number."""
    sizes = np.abs(columns).max(axis=0)
    design = np.column_stack([np.ones(len(columns)), columns / np.where(sizes > 0.0, sizes, 1.0)])
    design = design / np.sqrt(np.square(design).sum(axis=0))
    values = np.linalg.svd(design, compute_uv=False)
    return float(values[0] / max(values[-1], 1e-300)) if len(columns) > columns.shape[1] else np.inf
