"""The table of one unknown function: which values it should have, the others being known.

Where the function occurs once, the operators around it are inverted row by row, and rows are weighted by the
squared derivative (`physdiffuser.library.subtree_target`). Where it occurs several times, each occurrence
takes its share of what is left, as in backfitting.

References
----------
Breiman and Friedman, *J. Amer. Statist. Assoc.* 80 (1985), backfitting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.data.dataset import Column, Dataset
from physdiffuser.expressions import Expression, Variable, evaluate
from physdiffuser.expressions.tree import Path, bind, positions, variables, walk
from physdiffuser.library.subtree_target import subtree_target
from physdiffuser.templates.template import DERIVATIVE, Calculus, Call, Template, UnknownFunction
from physdiffuser.verification.calculus import derivative, integral

# Rows of such a table at most.
MAX_ROWS = 4_000
# Rows that count less than this share of the mean are left out.
_MIN_WEIGHT = 1e-12


@dataclass
class _Rows:
    """The table with a column for each part of the template, as `subtree_target` reads it."""

    inputs: FloatArray
    target: FloatArray
    share: FloatArray

    def values(self, expressions: Sequence[Expression]) -> FloatArray:
        """Shape (expressions, rows)."""
        return np.stack([evaluate(one, self.inputs) for one in expressions])


def arguments_of(
    template: Template,
    function: UnknownFunction,
    forms: Mapping[str, Expression],
    parameters: FloatArray,
    inputs: FloatArray,
) -> list[FloatArray]:
    """The arguments of each call of a function, each of shape (rows, arguments)."""
    values = template.values(forms) or []
    found = []
    for _, call in template.calls(function.name):
        columns = [
            evaluate(bind(template.filled(one, values), list(parameters)), inputs) for one in call.arguments
        ]
        found.append(np.column_stack(columns))
    return found


@dataclass(frozen=True)
class Enclosing:
    """The derivative or integral of a function that occurs nowhere else.

    Attributes
    ----------
    place
        The variable that stands for it.
    kind
        `D` or `I`.
    argument
        Which argument of the function it is by.
    """

    place: int
    kind: str
    argument: int

    def function_of(self, formula: Expression) -> Expression | None:
        """The function whose derivative or integral is a formula of its arguments; None if there is none."""
        return (integral if self.kind == DERIVATIVE else derivative)(formula, self.argument)


def enclosing(template: Template, function: UnknownFunction) -> Enclosing | None:
    """What a function occurs in alone, so that this is to be searched for; None for all others."""
    calls = template.calls(function.name)
    if len(calls) != 1:
        return None
    place, call = calls[0]
    holders = [
        (len(template.columns) + number, part)
        for number, part in enumerate(template.parts)
        if isinstance(part, Calculus) and part.of == Variable(place)
    ]
    if len(holders) != 1 or _hidden(template, place) != 1 or _paths(template.skeleton, place):
        return None
    where, part = holders[0]
    by = Variable(part.by)
    others = [one for one in call.arguments if one != by]
    if call.arguments.count(by) != 1 or any(part.by in variables(one) for one in others):
        return None
    return Enclosing(where, part.kind, call.arguments.index(by))


def partial_table(
    template: Template,
    function: UnknownFunction,
    forms: Mapping[str, Expression],
    parameters: FloatArray,
    dataset: Dataset,
) -> Dataset | None:
    """The table of one function, or of what encloses it; None where the template cannot be inverted.

    Parameters
    ----------
    template, function
        The structure, and its function that is searched for.
    forms, parameters
        What is known of all functions so far, and the values of all constants.
    dataset
        The table.
    """
    values = template.values(forms)
    if values is None:
        return None
    numbers = list(parameters)
    with np.errstate(all="ignore"):
        parts = [evaluate(bind(value, numbers), dataset.inputs) for value in values]
    weights = np.ones(dataset.rows) if dataset.weights is None else dataset.weights
    inputs = np.column_stack([dataset.inputs, *parts])
    rows = _Rows(inputs, dataset.target, weights / weights.sum())
    skeleton = bind(template.skeleton, numbers)
    calls = template.calls(function.name)
    hidden = sum(_hidden(template, place) for place, _ in calls)
    paths = {place: _paths(skeleton, place) for place, _ in calls}
    uses = hidden + sum(len(some) for some in paths.values())
    tables = []
    points = arguments_of(template, function, forms, parameters, dataset.inputs)
    outer = enclosing(template, function)
    if outer is not None:
        shares = _wanted(rows, skeleton, outer.place, _paths(skeleton, outer.place), 1)
        return _stacked([(points[0], wanted, share) for wanted, share in shares], function, dataset)
    for (place, _), arguments in zip(calls, points, strict=True):
        for wanted, share in _wanted(rows, skeleton, place, paths[place], uses):
            tables.append((arguments, wanted, share))
    return _stacked(tables, function, dataset)


def _paths(skeleton: Expression, place: int) -> list[Path]:
    return [path for path, node in positions(skeleton) if node == Variable(place)]


def _hidden(template: Template, place: int) -> int:
    """How often a call occurs in arguments of others, in derivatives and integrals."""
    inner = [
        node
        for part in template.parts
        for expression in (part.arguments if isinstance(part, Call) else (part.of,))
        for node in walk(expression)
    ]
    return sum(1 for node in inner if node == Variable(place))


def _wanted(
    rows: _Rows, skeleton: Expression, place: int, paths: Sequence[Path], uses: int
) -> list[tuple[FloatArray, FloatArray]]:
    """Values that a call should have, and weights, for each of its occurrences."""
    now = rows.inputs[:, place]
    if not paths:  # it occurs inside of a derivative, an integral or another function alone
        return [(now, rows.share)]
    found = [subtree_target(rows, skeleton, path, 1.0, 0.0) for path in paths]
    # What the function is believed to be, corrected by its share of the residuals.
    return [
        (one.values if uses == 1 else now + (one.values - now) / uses, one.weights)
        for one in found
        if one is not None
    ]


def _stacked(
    tables: Sequence[tuple[FloatArray, FloatArray, FloatArray]], function: UnknownFunction, dataset: Dataset
) -> Dataset | None:
    if not tables:
        return None
    inputs = np.concatenate([one[0] for one in tables])
    target = np.concatenate([one[1] for one in tables])
    weights = np.concatenate([one[2] for one in tables])
    finite = np.isfinite(inputs).all(axis=1) & np.isfinite(target) & np.isfinite(weights)
    usable = np.flatnonzero(finite & (weights > _MIN_WEIGHT * weights[finite].mean()))
    if usable.size < 3:
        return None
    usable = usable[np.unique(np.linspace(0, usable.size - 1, min(usable.size, MAX_ROWS)).astype(np.intp))]
    weights = weights[usable] / weights[usable].mean()
    alike = np.ptp(weights) <= 1e-9
    varying = [place for place in range(inputs.shape[1]) if np.ptp(inputs[usable, place]) > 0]
    if not varying:
        return None
    return Dataset(
        inputs=inputs[usable],
        target=target[usable],
        columns=tuple(Column(name, name) for name in function.arguments),
        target_column=Column(function.name, function.name),
        weights=None if alike else weights,
        source=dataset.source,
    )
