"""Values of one expression on a table, and derivatives with respect to its parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.expressions.operators import OPERATORS
from physdiffuser.expressions.tree import Apply, Expression, Number, Parameter, Symbol, Variable


def evaluate(
    expression: Expression, inputs: FloatArray, parameters: Sequence[float] | FloatArray | None = None
) -> FloatArray:
    """Value on every row.

    Parameters
    ----------
    inputs
        Shape (rows, columns).
    parameters
        Shape (parameters,), or (parameters, starts) for many parameter vectors at once. Needed only
        when the expression has parameters.

    Returns
    -------
    Shape (rows,), or (starts, rows) for many parameter vectors. nan or inf outside the domain.
    """
    rows = inputs.shape[0]
    vector = None if parameters is None else np.asarray(parameters, dtype=np.float64)
    shape = (rows,) if vector is None or vector.ndim == 1 else (vector.shape[1], rows)
    with np.errstate(all="ignore"):
        value = _value(expression, inputs, vector, {})
    return np.array(np.broadcast_to(value, shape))


def _value(
    node: Expression, inputs: FloatArray, parameters: FloatArray | None, seen: dict[Expression, FloatArray]
) -> FloatArray:
    match node:
        case Variable(index=index):
            return inputs[:, index]
        case Number(value=constant) | Symbol(value=constant):
            return _scalar(constant)
        case Parameter(index=index):
            if parameters is None:
                raise ValueError("the expression has parameters, but no values were given")
            chosen: FloatArray = parameters[index]
            return chosen if np.ndim(chosen) == 0 else chosen[:, None]
        case Apply(operator=operator, arguments=arguments):
            known = seen.get(node)
            if known is None:
                children = [_value(argument, inputs, parameters, seen) for argument in arguments]
                known = seen[node] = OPERATORS[operator].evaluate(*children)
            return known


def _scalar(value: int | Fraction | float) -> FloatArray:
    try:
        number = float(value)
    except OverflowError:
        # An exact integer beyond the largest double.
        number = math.inf if value > 0 else -math.inf
    return np.float64(number)  # type: ignore[return-value]  # a 0-d array broadcasts


def value_and_jacobian(
    expression: Expression, inputs: FloatArray, parameters: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Value, and derivative by each parameter (forward mode, exact).

    Parameters
    ----------
    inputs
        Shape (rows, columns).
    parameters
        Shape (parameters,) or (parameters, starts).

    Returns
    -------
    value
        Shape (rows,) or (starts, rows).
    jacobian
        Shape (parameters, rows) or (parameters, starts, rows).
    """
    rows = inputs.shape[0]
    count = parameters.shape[0]
    shape = (rows,) if parameters.ndim == 1 else (parameters.shape[1], rows)
    with np.errstate(all="ignore"):
        value, slopes = _dual(expression, inputs, parameters, {})
    jacobian = np.zeros((count, *shape))
    for index, slope in slopes.items():
        jacobian[index] = slope
    return np.array(np.broadcast_to(value, shape)), jacobian


_Dual = tuple[FloatArray, dict[int, FloatArray]]


def _dual(
    node: Expression, inputs: FloatArray, parameters: FloatArray, seen: dict[Expression, _Dual]
) -> _Dual:
    if isinstance(node, Parameter):
        return _value(node, inputs, parameters, {}), {node.index: np.float64(1.0)}  # type: ignore[dict-item]
    if not isinstance(node, Apply):
        return _value(node, inputs, parameters, {}), {}
    known = seen.get(node)
    if known is not None:
        return known
    children = [_dual(argument, inputs, parameters, seen) for argument in node.arguments]
    spec = OPERATORS[node.operator]
    values = [value for value, _ in children]
    value = spec.evaluate(*values)
    slopes: dict[int, FloatArray] = {}
    for (_, child), derivative in zip(children, spec.derivatives, strict=True):
        if not child:
            continue
        outer = derivative(*values, value)
        for index, slope in child.items():
            term = outer * slope
            slopes[index] = slopes[index] + term if index in slopes else term
    seen[node] = (value, slopes)
    return value, slopes
