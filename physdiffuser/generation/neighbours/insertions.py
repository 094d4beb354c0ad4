"""Where one more term, factor or exponent would help: score tests at every place of a formula at once.

A node `u` may become `u + c*b` for a column, a product of columns and the like, `u*x**c` or `u**(1 + c)`. At
c = 0 the formula is unchanged, so slopes at that point tell how much of the loss each c would remove
to first order, beside the constants that the formula has already (Rao's score test, 1948). One
pass of reverse mode gives the slopes at all nodes, and a matrix product judges some hundred changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from physdiffuser.expressions import ONE, Apply, Expression, Number, Parameter, Variable, evaluate
from physdiffuser.expressions.tree import add, div, mul
from physdiffuser.fitting.tape import Tape
from physdiffuser.generation.evolution.trees import Path, positions, replace_at

FloatArray = npt.NDArray[np.float64]

# Products of two columns are tried where there are no more of these.
MOST_FOR_PRODUCTS = 5
# What is left of a slope beside the constants that are there, as a share of its square; less is rounding.
INDEPENDENT = 1e-8
# Changes that do the same to first order are one change, of which the simplest is kept.
ALIKE = 1.0 - 1e-9


@dataclass(frozen=True)
class Insertion:
    """A formula with one more constant, and the share of the loss that it removes to first order."""

    expression: Expression
    gain: float


@dataclass(frozen=True)
class _Change:
    """What may happen to a node: the new node for a value of c, the slope by c at 0, and its price."""

    make: Callable[[Expression, float], Expression]
    slope: Callable[[FloatArray], FloatArray]
    units: int


def _constant(value: float) -> Expression:
    return Number(float(value))


def _terms(inputs: FloatArray) -> list[tuple[Expression, FloatArray]]:
    """What may be added to a node: columns, their squares, products and reciprocals."""
    columns = [Variable(index) for index in range(inputs.shape[1])]
    found: list[tuple[Expression, FloatArray]] = []
    for index, column in enumerate(columns):
        values = inputs[:, index]
        found.append((column, values))
        found.append((Apply("pow", (column, Number(2))), values**2))
        if (values != 0).all():
            found.append((div(ONE, column), 1.0 / values))
    if len(columns) <= MOST_FOR_PRODUCTS:
        for i, left in enumerate(columns):
            for j in range(i + 1, len(columns)):
                found.append((mul(left, columns[j]), inputs[:, i] * inputs[:, j]))
    return found


def _changes(inputs: FloatArray) -> list[_Change]:
    changes = [_Change(lambda node, c: add(node, _constant(c)), np.ones_like, 2)]
    changes.append(
        _Change(
            lambda node, c: mul(_constant(1.0 + c), node),
            lambda value: value,
            2,
        )
    )
    changes.append(
        _Change(
            lambda node, c: Apply("pow", (node, _constant(1.0 + c))),
            lambda value: value * np.log(value),
            2,
        )
    )
    for term, values in _terms(inputs):
        changes.append(_added(term, values))
    for index in range(inputs.shape[1]):
        if (inputs[:, index] > 0).all():
            changes.append(_multiplied(Variable(index), np.log(inputs[:, index])))
    return changes


def _added(term: Expression, values: FloatArray) -> _Change:
    return _Change(lambda node, c: add(node, mul(_constant(c), term)), lambda value: values, 4)


def _multiplied(column: Expression, logarithm: FloatArray) -> _Change:
    return _Change(
        lambda node, c: mul(node, Apply("pow", (column, _constant(c)))), lambda value: value * logarithm, 4
    )


def insertions(
    expression: Expression,
    inputs: FloatArray,
    residual: FloatArray,
    weights: FloatArray | None,
    most: int,
    price: float,
) -> list[Insertion]:
    """The changes that promise most, best first.

    Parameters
    ----------
    expression
        With fitted constants as float numbers, at their best.
    inputs, residual, weights
        Shapes (rows, columns), (rows,), (rows,) or None: the residual is target less prediction.
    most
        How many to return.
    price
        Nats for each unit of complexity, by which gains are weighed against each other.
    """
    root = np.ones(len(residual)) if weights is None else np.sqrt(weights)
    nodes = [(path, node) for path, node in positions(expression)]
    with np.errstate(all="ignore"):
        slopes = _slopes_at(expression, nodes, inputs) * root
        wanted = root * residual
        loss = float(wanted @ wanted)
        if not np.isfinite(slopes).all() or not 0.0 < loss < np.inf:
            return []
        fitted = [
            index for index, (_, node) in enumerate(nodes) if isinstance(node, Number) and not node.exact
        ]
        basis = _basis(slopes[fitted])
        left = wanted - basis @ (basis.T @ wanted)
        changes = _changes(inputs)
        slots: list[tuple[int, _Change | None]] = []
        rows: list[FloatArray] = []
        for index, (_, node) in enumerate(nodes):
            if isinstance(node, Number):
                if node.exact:
                    slots.append((index, None))
                    rows.append(slopes[index])
                continue
            value = evaluate(node, inputs)
            for change in changes:
                slots.append((index, change))
                rows.append(slopes[index] * change.slope(value))
        if not rows:
            return []
        directions = np.array(rows)
        usable = np.isfinite(directions).all(axis=1)
        directions[~usable] = 0.0
        size = (directions**2).sum(axis=1)
        usable &= size > 0.0
        directions /= np.sqrt(np.where(usable, size, 1.0))[:, None]
        own = directions - (directions @ basis) @ basis.T
        kept = (own**2).sum(axis=1)
        usable &= kept > INDEPENDENT
        along = own @ left
        gains = np.where(usable, along**2 / np.where(usable, kept, 1.0) / loss, 0.0)
        free = 0.5 * len(residual)
        units = np.array([0 if change is None else change.units for _, change in slots])
        worth = -free * np.log1p(-np.minimum(gains, 0.999999)) - price * units
    unit = own / np.sqrt(np.where(usable, kept, 1.0))[:, None]
    chosen: list[int] = []
    for place in np.argsort(-worth, kind="stable")[: 10 * most].tolist():
        if len(chosen) == most or worth[place] <= 0.0:
            break
        if all(abs(float(unit[place] @ unit[other])) < ALIKE for other in chosen):
            chosen.append(place)
    found: list[Insertion] = []
    for place in chosen:
        index, what = slots[place]
        path, node = nodes[index]
        step = float(along[place] / kept[place] / np.sqrt(size[place]))
        if what is None:
            assert isinstance(node, Number)
            new: Expression = _constant(float(node.value) + step)
        else:
            new = what.make(node, step)
        found.append(Insertion(replace_at(expression, path, new), float(gains[place])))
    return found


def _slopes_at(
    expression: Expression, nodes: list[tuple[Path, Expression]], inputs: FloatArray
) -> FloatArray:
    """Slope of the formula by each of its nodes, shape (nodes, rows)."""
    numbers = {path: index for index, (path, _) in enumerate(nodes)}

    def build(node: Expression, path: Path) -> Expression:
        number = numbers[path]
        if isinstance(node, Apply):
            arguments = (build(argument, (*path, place)) for place, argument in enumerate(node.arguments))
            node = Apply(node.operator, tuple(arguments))
        return Apply("add", (node, Parameter(number)))

    tape = Tape(build(expression, ()), inputs)
    return tape.value_and_jacobian(np.zeros(len(nodes)))[1]


def _basis(known: FloatArray) -> FloatArray:
    """Orthonormal columns that span the rows of `known`."""
    if not len(known):
        return np.zeros((known.shape[1], 0))
    length = np.sqrt((known**2).sum(axis=1, keepdims=True))
    basis, triangle = np.linalg.qr((known / np.where(length > 0.0, length, 1.0)).T)
    return basis[:, np.abs(np.diag(triangle)) > INDEPENDENT]
