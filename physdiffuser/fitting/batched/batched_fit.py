"""Fit the constants of many skeletons at once.

A search follows up hundreds of skeletons such as `a + b*x**2*exp(-c*t)` and `a + b*x/(1 + c*u)`. On some
hundred rows a fit is mostly the overhead of array operations, a few dozen a step. Here all skeletons with
equally many parameters, the same of them linear, take their steps together; those of one shape, which
differ only in what columns stand at the same places, are evaluated together as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from physdiffuser.arrays import CHECK_ARRAYS, FloatArray, checked
from physdiffuser.device import HOST, Device
from physdiffuser.expressions import Apply, Expression, Parameter, Variable, evaluate
from physdiffuser.expressions.tree import bind, parameter_count, walk
from physdiffuser.fitting.batched.evaluation_tape import EvaluationTape, EvaluationTapes
from physdiffuser.fitting.fit import Fit
from physdiffuser.fitting.levenberg_marquardt import levenberg_marquardt
from physdiffuser.fitting.losses import Loss, relative_loss
from physdiffuser.fitting.varpro import SeparableModel, linear_parameters, vanishes_with

if TYPE_CHECKING or CHECK_ARRAYS:
    from jaxtyping import Float64


@np.errstate(all="ignore")
@checked
def fit_batched(
    skeletons: Sequence[Expression],
    initial: Sequence[Sequence[float]],
    inputs: Float64[np.ndarray, "rows columns"],
    target: Float64[np.ndarray, " rows"],
    *,
    weights: Float64[np.ndarray, " rows"] | None = None,
    loss: Loss = "squared",
    iterations: int = 60,
    tolerance: float = 1e-14,
    device: Device = HOST,
) -> list[Fit]:
    """Fit each skeleton from one start.

    More than eight parameters: those of `fit_constants`, and the device.

    Parameters
    ----------
    skeletons
        Expressions with `Parameter` nodes, at least one each.
    initial
        For each skeleton a start, one value a parameter; those of linear ones are ignored.
    inputs
        Shape (rows, columns).
    target
        Shape (rows,).
    weights, loss, iterations, tolerance
        As for `fit_constants`.
    device
        Where values and derivatives are worked out and taken together. What is as small as the constants is
        done by numpy.

    Returns
    -------
    The fits, in the order of the skeletons; what `fit_constants` with `starts=1` gives, up to rounding.

    Raises
    ------
    ValueError
        If a start does not have one value for each parameter.
    """
    for skeleton, start in zip(skeletons, initial, strict=True):
        if len(start) != parameter_count(skeleton):
            raise ValueError("a start needs one value for each parameter of its skeleton")
    shapes: dict[Expression, list[int]] = {}
    columns: list[list[Expression]] = []
    for number, skeleton in enumerate(skeletons):
        mine: list[Expression] = []
        shapes.setdefault(_shape(skeleton, mine), []).append(number)
        columns.append(mine)
    groups: dict[tuple[tuple[int, ...], int, bool], list[Expression]] = {}
    for shape in shapes:
        linear = linear_parameters(shape)
        kind = linear, parameter_count(shape), vanishes_with(shape, linear)
        groups.setdefault(kind, []).append(shape)
    values = {tree: evaluate(tree, inputs) for tree in dict.fromkeys(chain.from_iterable(columns))}
    wanted, shares = device.put(target), None if weights is None else device.put(weights)
    fits: dict[int, Fit] = {}
    for (linear, _, homogeneous), alike in groups.items():
        tapes = [
            _tape(shape, [columns[number] for number in shapes[shape]], values, len(target), device)
            for shape in alike
        ]
        numbers = [number for shape in alike for number in shapes[shape]]
        model = SeparableModel.side_by_side(EvaluationTapes(tapes), linear, homogeneous, wanted, shares)
        starts = np.array([initial[number] for number in numbers], dtype=np.float64).T
        found = levenberg_marquardt(model, starts, iterations=iterations, tolerance=tolerance, loss=loss)
        predictions = np.asarray(model.tape.value(found.parameters))
        for place, number in enumerate(numbers):
            parameters = found.parameters[:, place]
            fits[number] = Fit(
                parameters,
                bind(skeletons[number], list(parameters)),
                relative_loss(predictions[place], target, weights, loss),
                found.outcomes[place],
                skeletons[number],
            )
    return [fits[number] for number in range(len(skeletons))]


def _tape(
    shape: Expression,
    columns: list[list[Expression]],
    values: dict[Expression, FloatArray],
    rows: int,
    device: Device,
) -> EvaluationTape:
    """A shape, for each of these trees at its places."""
    own = np.empty((len(columns), rows, len(columns[0])))
    for start, trees in enumerate(columns):
        for place, tree in enumerate(trees):
            own[start, :, place] = values[tree]
    return EvaluationTape(shape, device.put(own))


def _shape(node: Expression, columns: list[Expression]) -> Expression:
    """The skeleton with its largest parts that hold columns and no parameter as variables 0, 1, ...

    Those parts are appended to `columns`, in order.
    """
    kinds = {type(part) for part in walk(node)}
    if Parameter not in kinds:
        if Variable not in kinds:
            return node
        columns.append(node)
        return Variable(len(columns) - 1)
    if not isinstance(node, Apply):
        return node
    return Apply(node.operator, tuple(_shape(argument, columns) for argument in node.arguments))
