"""How far a formula is off: the largest relative error, and whether rounding explains all errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from physdiffuser.arrays import CHECK_ARRAYS, BoolArray, FloatArray, IndexArray, checked, spread_places
from physdiffuser.expressions import Expression, evaluate
from physdiffuser.expressions.evaluate import value_and_jacobian
from physdiffuser.expressions.operators import OPERATORS
from physdiffuser.expressions.tree import Apply, Number, distinct_constants, variables
from physdiffuser.fitting.losses import root_mean_square

if TYPE_CHECKING or CHECK_ARRAYS:
    from jaxtyping import Bool, Float64

EXACT = 1e-9
"""A row agrees with a formula if it is off by no more than this share of its value."""
MIN_DIGITS = 10
"""Numbers with fewer significant digits are taken as exact inputs (0.1, 0.2, ...), not as rounded ones."""

_UNIT = float(np.finfo(np.float64).eps) / 2
_OPERATIONS = 100.0
"""Units in the last place of the terms that evaluation and fitted constants may be off by."""
_MAX_DIGITS = 17
_LOOKED_AT = 200


@checked
def max_relative_error(
    target: Float64[np.ndarray, " rows"], prediction: Float64[np.ndarray, " rows"]
) -> float:
    """Largest error as a share of the target's value, over the rows whose target is not 0.

    A row whose target is 0 has no relative error and does not count. The result is inf if a prediction is
    not finite.

    Parameters
    ----------
    target, prediction
        Shape (rows,).

    Examples
    --------
    >>> max_relative_error(np.array([0.5, 0.0, 2.0]), np.array([1.5, 0.1, 2.0]))
    2.0
    """
    if not np.isfinite(prediction).all():
        return float("inf")
    counts = target != 0
    with np.errstate(all="ignore"):
        error = np.abs(prediction[counts] / target[counts] - 1.0)
        near = np.abs(prediction[counts] - target[counts]) / np.abs(target[counts])
    # The first overflows for no pair of doubles that are near each other, the second has all digits.
    return float(np.where(np.isfinite(near), near, error).max(initial=0.0))


@checked
def rounding_error(
    expression: Expression,
    inputs: Float64[np.ndarray, "rows columns"],
    target: Float64[np.ndarray, " rows"],
    rows: IndexArray | None = None,
) -> Float64[np.ndarray, " some"]:
    """How far rounding alone may separate the target from the right formula, by row.

    It has three sources: arithmetic in double precision, which acts on the terms of the formula; the last
    digit with which the target was written; and the last digits of the inputs, if they have at least ten.

    Parameters
    ----------
    inputs, target
        Shapes (rows, columns) and (rows,).
    rows
        Positions of the rows that are asked for; all if None.

    Returns
    -------
    Shape (rows,), for the rows asked for.
    """
    rows = np.arange(len(target)) if rows is None else rows
    last = _half_units(target, rows)
    halves = {column: _half_units(inputs[:, column], rows) for column in sorted(variables(expression))}
    inputs, target = inputs[rows], target[rows]
    value = evaluate(expression, inputs)
    with np.errstate(all="ignore"):
        total = _OPERATIONS * _UNIT * np.maximum(term_size(expression, inputs), np.abs(target))
        for column, half in halves.items():
            if half.any():
                moved = inputs.copy()
                moved[:, column] += half
                total = total + np.abs(evaluate(expression, moved) - value)
        total = total + last
    return np.where(np.isfinite(total), total, 0.0)


def _half_units(values: FloatArray, rows: IndexArray) -> FloatArray:
    """Half a unit of the last written digit of a column's numbers, on some rows.

    It is 0 for numbers with all digits of a double, or with fewer than ten digits. Numbers are written with
    so many significant digits or with so many decimal places.
    """
    sample = values[spread_places(len(values), _LOOKED_AT)]
    largest, values = float(_magnitude(sample).max()), values[rows]
    for digits in range(1, _MAX_DIGITS):
        enough = MIN_DIGITS <= digits < _MAX_DIGITS - 1
        places = digits - 1 - int(largest)
        # Numbers with so many decimal places may all have so many significant digits too, not the reverse.
        if 0 <= places <= 300 and all(float(f"{value:.{places}f}") == value for value in sample):
            return np.full(len(values), 0.5 * 10.0**-places if enough else 0.0)
        if all(float(f"{value:.{digits - 1}e}") == value for value in sample):
            return 0.5 * 10.0 ** (_magnitude(values) + 1 - digits) if enough else np.zeros(len(values))
    return np.zeros(len(values))


def _magnitude(values: FloatArray) -> FloatArray:
    """Powers of ten of the first digits; that of 0 is the smallest of a double."""
    with np.errstate(all="ignore"):
        return np.maximum(np.floor(np.log10(np.abs(values))), -308.0)


@checked
def agrees(
    expression: Expression,
    inputs: Float64[np.ndarray, "rows columns"],
    target: Float64[np.ndarray, " rows"],
    prediction: Float64[np.ndarray, " rows"],
    tolerance: float = EXACT,
    *,
    law: Expression | None = None,
) -> Bool[np.ndarray, " rows"]:
    """Which rows a formula meets: to `tolerance` of the row's value, or to what rounding explains.

    Where the target passes 0 a formula that is right has any relative error, because the rounding of its
    terms stays. That counts up to `tolerance` times the root mean square of the target.

    Parameters
    ----------
    inputs, target, prediction
        Shapes (rows, columns), (rows,) and (rows,).
    tolerance
        Share of the value.
    law
        The formula that the target was computed by, where it is known: its rounding counts as well.
    """
    with np.errstate(all="ignore"):
        error: FloatArray = np.abs(target - prediction)
        met: BoolArray = error <= tolerance * np.abs(target)
        # A product with tolerance underflows for targets of 1e-310; equal is equal.
        met |= prediction == target
    left = np.flatnonzero(~met & np.isfinite(prediction))
    if left.size:
        most = tolerance * root_mean_square(target)
        allowed = rounding_error(expression, inputs, target, left)
        if law is not None:
            allowed = allowed + rounding_error(law, inputs, target, left)
        met[left] = error[left] <= np.minimum(allowed, most)
    return met


@checked
def beyond_rounding(
    expression: Expression,
    inputs: Float64[np.ndarray, "rows columns"],
    target: Float64[np.ndarray, " rows"],
    prediction: Float64[np.ndarray, " rows"],
) -> Float64[np.ndarray, " rows"] | None:
    """Residuals of a formula that no change of its fitted constants removes, if rounding is smaller.

    To first order: the residuals without their part in the space of the derivatives by the constants. A
    law leaves rounding; an interpolation leaves the error of its approximation, which is larger.

    Returns
    -------
    Shape (rows,); None if rounding explains it.
    """
    left = target - prediction
    scale = float(np.abs(left).max(initial=0.0))
    if scale == 0.0:
        return None
    left = left / scale
    skeleton, values = distinct_constants(expression)
    if values:
        _, jacobian = value_and_jacobian(skeleton, inputs, np.array(values))
        with np.errstate(all="ignore"):
            unit = jacobian / np.abs(jacobian).max(axis=1, keepdims=True)
        unit = unit[np.isfinite(unit).all(axis=1)]
        left = left - unit.T @ np.linalg.lstsq(unit.T, left, rcond=None)[0]
    allowed = rounding_error(expression, inputs, target) / scale
    small = float(np.square(left).mean()) <= float(np.square(allowed).mean())
    return None if small else left * scale


@checked
def term_size(
    expression: Expression, inputs: Float64[np.ndarray, "rows columns"]
) -> Float64[np.ndarray, " rows"]:
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
