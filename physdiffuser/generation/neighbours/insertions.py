"""Where one more term, factor or exponent would help: score tests at every place of a formula at once.

A node `u` may become `u + c*b` for a column b, a product of columns and the like, `u*x**c` or `u**(1 + c)`.
At c = 0 the formula is unchanged, so the slopes there tell how much of the loss each c would remove to first
order, beside the constants that the formula has already (a score test; Rao, "Large sample tests of
statistical hypotheses", 1948). One pass of reverse mode gives the slopes at all nodes, and matrix products
judge some hundred changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from physdiffuser.expressions import ONE, Apply, Expression, Number, Parameter, Variable, evaluate
from physdiffuser.expressions.tree import add, div, mul, power
from physdiffuser.fitting.tape import Tape
from physdiffuser.generation.evolution.trees import Path, positions, replace_at

FloatArray = npt.NDArray[np.float64]

# Products of two columns are tried where there are no more columns than these.
MOST_FOR_PRODUCTS = 5
# What must be left of a slope beside those of the constants that are there, as a share of its square.
INDEPENDENT = 1e-8
# Changes that do the same to first order are one change, of which the first is kept.
ALIKE = 1.0 - 1e-9
# The most that one change can promise, as a share of the loss: first order says nothing beyond.
MOST_GAIN = 1.0 - 1e-6


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
        if len(columns) <= MOST_FOR_PRODUCTS:
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
        Nats for each unit of complexity, by which gains are weighed against each other.
    """
    nodes = positions(expression)
    root = np.ones(len(residual)) if weights is None else np.sqrt(weights)
    with np.errstate(all="ignore"):
        slopes = _slopes(expression, nodes, inputs) * root
        wanted = root * residual
        if not np.isfinite(slopes).all() or not 0.0 < wanted @ wanted < np.inf:
            return []
        places, directions = _directions(nodes, slopes, inputs)
        if not places:
            return []
        constants = [slope for slope, (_, node) in zip(slopes, nodes, strict=True) if _is_fitted(node)]
        gains, steps, own = _score(directions, _basis(np.array(constants), len(root)), wanted)
        units = np.array([0 if change is None else change.units for _, change in places])
        worth = -0.5 * len(residual) * np.log1p(-np.minimum(gains, MOST_GAIN)) - price * units
    chosen: list[int] = []
    for place in np.argsort(-worth, kind="stable").tolist():
        if len(chosen) == most or worth[place] <= 0.0:
            break
        if all(abs(float(own[place] @ own[other])) < ALIKE for other in chosen):
            chosen.append(place)
    return [_changed(expression, nodes, *places[place], float(steps[place])) for place in chosen]


def _is_fitted(node: Expression) -> bool:
    return isinstance(node, Number) and not node.exact


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


def _slopes(expression: Expression, nodes: list[tuple[Path, Expression]], inputs: FloatArray) -> FloatArray:
    """Slope of the formula by each of its nodes, shape (nodes, rows)."""
    numbers = {path: index for index, (path, _) in enumerate(nodes)}

    def build(node: Expression, path: Path) -> Expression:
        if isinstance(node, Apply):
            arguments = (build(argument, (*path, place)) for place, argument in enumerate(node.arguments))
            node = Apply(node.operator, tuple(arguments))
        return add(node, Parameter(numbers[path]))

    return Tape(build(expression, ()), inputs).value_and_jacobian(np.zeros(len(nodes)))[1]


def _directions(
    nodes: list[tuple[Path, Expression]], slopes: FloatArray, inputs: FloatArray
) -> tuple[list[tuple[int, _Change | None]], FloatArray]:
    """Slopes by the constant of each change of each node; without a change, an exact number is fitted."""
    places: list[tuple[int, _Change | None]] = []
    directions: list[FloatArray] = []
    every = changes(inputs)
    for index, (_, node) in enumerate(nodes):
        if isinstance(node, Number):
            if node.exact:
                places.append((index, None))
                directions.append(slopes[index])
            continue
        value = evaluate(node, inputs)
        for change in every:
            places.append((index, change))
            directions.append(slopes[index] * change.slope(value))
    return places, np.array(directions)


def _basis(known: FloatArray, rows: int) -> FloatArray:
    """Orthonormal columns that span the rows of `known`."""
    if not len(known):
        return np.zeros((rows, 0))
    length = np.sqrt((known**2).sum(axis=1, keepdims=True))
    basis, triangle = np.linalg.qr((known / np.where(length > 0.0, length, 1.0)).T)
    return basis[:, np.abs(np.diag(triangle)) > INDEPENDENT]


def _score(
    directions: FloatArray, basis: FloatArray, wanted: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Share of the loss that each direction removes, the step for that, and what is its own, of length 1."""
    usable = np.asarray(np.isfinite(directions).all(axis=1))
    directions = np.where(usable[:, None], directions, 0.0)
    size = np.sqrt((directions**2).sum(axis=1))
    usable &= (size > 0.0) & np.isfinite(size)
    size = np.where(usable, size, 1.0)
    directions = directions / size[:, None]
    own = directions - (directions @ basis) @ basis.T
    kept = np.sqrt((own**2).sum(axis=1))
    usable &= kept**2 > INDEPENDENT
    kept = np.where(usable, kept, 1.0)
    own = own / kept[:, None]
    along = own @ (wanted - basis @ (basis.T @ wanted))
    gains = np.where(usable, along**2 / (wanted @ wanted), 0.0)
    return gains, np.where(usable, along / kept / size, 0.0), own
