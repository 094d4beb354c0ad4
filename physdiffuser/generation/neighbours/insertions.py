"""Where one more term, factor or exponent would help: score tests at every place of a formula at once.

A node `u` may become `u + c*b` for a column b, a product of columns and the like, `u*x**c` or `u**(1 + c)`.
At c = 0 the formula is unchanged, so a score test (`fitting.score_test`) tells what each c would gain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.expressions import ONE, Expression, Number, Variable, evaluate
from physdiffuser.expressions.tree import Path, add, div, mul, positions, power, replace_at
from physdiffuser.fitting.score_test import node_slopes, score, span

# Products of two columns are tried where there are no more columns than these.
MAX_FOR_PRODUCTS = 5
# Changes that do the same to first order are one change, of which the first is kept.
ALIKE = 1.0 - 1e-9
# The most that one change can promise, as a share of the loss: first order says nothing beyond.
MAX_GAIN = 1.0 - 1e-6


@dataclass(frozen=True)
class _Change:
    """What may happen to a node: the new node for a value of c, the slope by c at 0, and its price."""

    make: Callable[[Expression, float], Expression]
    slope: Callable[[FloatArray], FloatArray]
    units: int


def _plus(term: Expression, values: FloatArray) -> _Change:
    return _Change(lambda node, c: add(node, mul(Number(c), term)), lambda _: values, 4)


def _times_power(column: Expression, logarithm: FloatArray) -> _Change:
    return _Change(lambda node, c: mul(node, power(column, Number(c))), lambda value: value * logarithm, 4)


def changes(inputs: FloatArray) -> list[_Change]:
    """What may happen to any node of a formula in these columns, shape (rows, columns)."""
    found = [
        _Change(lambda node, c: add(node, Number(c)), np.ones_like, 2),
        _Change(lambda node, c: mul(Number(1.0 + c), node), lambda value: value, 2),
        _Change(lambda node, c: power(node, Number(1.0 + c)), lambda value: value * np.log(value), 2),
    ]
    columns = [(Variable(index), inputs[:, index]) for index in range(inputs.shape[1])]
    for number, (column, values) in enumerate(columns):
        found += [_plus(column, values), _plus(power(column, Number(2)), values**2)]
        if (values != 0).all():
            found.append(_plus(div(ONE, column), 1.0 / values))
        if (values > 0).all():
            found.append(_times_power(column, np.log(values)))
        if len(columns) <= MAX_FOR_PRODUCTS:
            found += [_plus(mul(column, other), values * theirs) for other, theirs in columns[number + 1 :]]
    return found


def insertions(
    expression: Expression,
    inputs: FloatArray,
    residual: FloatArray,
    weights: FloatArray | None,
    most: int,
    price: float,
) -> list[Expression]:
    """The formula with one more constant, at its first-order value, in the places that promise most.

    Parameters
    ----------
    expression
        With fitted constants as float numbers, at their best.
    inputs, residual, weights
        Shapes (rows, columns), (rows,), (rows,) or None: the residual is target less prediction.
    most
        How many to return, best first.
    price
        Nats for each unit of complexity, by which gains are compared.
    """
    nodes = positions(expression)
    root = np.ones(len(residual)) if weights is None else np.sqrt(weights)
    with np.errstate(all="ignore"):
        slopes = node_slopes(expression, nodes, inputs)[1] * root
        wanted = root * residual
        if not np.isfinite(slopes).all() or not 0.0 < wanted @ wanted < np.inf:
            return []
        places, directions = _directions(nodes, slopes, inputs)
        if not places:
            return []
        fitted = [isinstance(node, Number) and not node.exact for _, node in nodes]
        tested = score(directions, span(slopes[fitted]), wanted)
        units = np.array([0 if change is None else change.units for _, change in places])
        worth = -0.5 * len(residual) * np.log1p(-np.minimum(tested.gains, MAX_GAIN)) - price * units
    chosen: list[int] = []
    for place in np.argsort(-worth, kind="stable").tolist():
        if len(chosen) == most or worth[place] <= 0.0:
            break
        if all(abs(float(tested.own[place] @ tested.own[other])) < ALIKE for other in chosen):
            chosen.append(place)
    return [_changed(expression, nodes, *places[place], float(tested.steps[place])) for place in chosen]


def _changed(
    expression: Expression,
    nodes: list[tuple[Path, Expression]],
    index: int,
    change: _Change | None,
    step: float,
) -> Expression:
    path, node = nodes[index]
    if change is not None:
        return replace_at(expression, path, change.make(node, step))
    assert isinstance(node, Number)
    return replace_at(expression, path, Number(float(node.value) + step))


def _directions(
    nodes: list[tuple[Path, Expression]], slopes: FloatArray, inputs: FloatArray
) -> tuple[list[tuple[int, _Change | None]], FloatArray]:
    """Slopes by the constant of each change of each node; without a change, an exact number is fitted."""
    places: list[tuple[int, _Change | None]] = []
    directions: list[FloatArray] = []
    every = changes(inputs)
    for index, (path, node) in enumerate(nodes):
        # A mean is varied like any other formula, so that there is a way from it.
        if isinstance(node, Number) and path:
            if node.exact:
                places.append((index, None))
                directions.append(slopes[index])
            continue
        value = evaluate(node, inputs)
        for change in every:
            places.append((index, change))
            directions.append(slopes[index] * change.slope(value))
    return places, np.array(directions)
