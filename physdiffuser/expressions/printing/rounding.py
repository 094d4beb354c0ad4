"""How large the terms of a formula are, and thus how far rounding may move its value."""

from __future__ import annotations

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.expressions.evaluate import evaluate
from physdiffuser.expressions.operators import OPERATORS
from physdiffuser.expressions.tree import Apply, Expression, Number


def term_size(expression: Expression, inputs: FloatArray) -> FloatArray:
    """Size of the terms that a formula adds up, by row; much larger than the value where they cancel.

    The value of any order of evaluation, multiplied out or not, is off by a few units in the last place of
    this number: `(x - y)**2` gives `(|x| + |y|)**2`. Functions pass on the size of their argument by their
    slope, so `sin(x)` gives `|sin(x)| + |x*cos(x)|`.

    Parameters
    ----------
    expression
        The formula, without parameters.
    inputs
        Shape (rows, columns).

    Returns
    -------
    Shape (rows,); nan or inf outside the domain.

    References
    ----------
    Running error analysis: Higham, *Accuracy and Stability of Numerical Algorithms* (2002), section 3.3.
    """
    with np.errstate(all="ignore"):
        return np.array(np.broadcast_to(_sizes(expression, inputs, {})[1], inputs.shape[:1]))


_Pair = tuple[FloatArray, FloatArray]


def _sizes(node: Expression, inputs: FloatArray, known: dict[Expression, _Pair]) -> _Pair:
    """Value and size of terms."""
    if not isinstance(node, Apply):
        value = evaluate(node, inputs)
        return value, np.abs(value)
    if node not in known:
        pairs = [_sizes(argument, inputs, known) for argument in node.arguments]
        value = OPERATORS[node.operator].evaluate(*(value for value, _ in pairs))
        known[node] = value, _combined(node, pairs, value)
    return known[node]


def _combined(node: Apply, pairs: list[_Pair], value: FloatArray) -> FloatArray:
    sizes = [size for _, size in pairs]
    match node:
        case Apply(operator="mul"):
            return sizes[0] * sizes[1]
        case Apply(operator="div"):
            return sizes[0] * sizes[1] / np.square(pairs[1][0])
        case Apply(operator="pow", arguments=(_, Number(value=int(exponent)))) if exponent > 0:
            return np.asarray(sizes[0] ** float(exponent))
    arguments = [argument for argument, _ in pairs]
    total = np.zeros(()) if node.operator in ("add", "sub", "neg") else np.abs(value)
    for size, derivative in zip(sizes, OPERATORS[node.operator].derivatives, strict=True):
        passed = np.abs(derivative(*arguments, value)) * size
        # 0**2.5 has the slope 0 by its base and nan by its exponent, which is not rounded.
        total = total + np.where(np.isnan(passed), 0.0, passed)
    return np.asarray(total)
