"""A formula as text with its errors on the rows: one that a search has saved, or one of the user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from physdiffuser.core.solution import ConstantEstimate, Equation, Solution
from physdiffuser.core.solution_parts.group_constants import GroupNames
from physdiffuser.data.dataset import Dataset
from physdiffuser.errors import UsageError
from physdiffuser.expressions import Expression, ExpressionSyntaxError, Parameter, Variable, parse
from physdiffuser.expressions.tree import substitute
from physdiffuser.finalize.scoring import measured, with_digits
from physdiffuser.groups.answer import constant_names, with_constants_of_groups
from physdiffuser.groups.joint_fit import GroupedRows
from physdiffuser.groups.sharing import separate_fits
from physdiffuser.report.text.digits import concise
from physdiffuser.search.refinement.guesses import fitted_guesses, read_guess

OwnConstants = Mapping[str, Mapping[str, float]]
"""Constants of each group by name, by the group's label."""


@dataclass(frozen=True)
class Scored:
    """A formula, and the names of its constants of the groups; None in a table without groups."""

    equation: Equation
    groups: GroupNames | None = None

    def drawn_on(self, solution: Solution) -> Solution:
        """The solution whose rows have a column for each constant of this formula."""
        points = solution.fit_points
        if self.groups is None or points is None or points.inputs is None:
            return solution
        columns = points.inputs[:, : points.inputs.shape[1] - len(_own(solution))]
        empty = np.full((len(columns), len(self.groups.constants)), np.nan)
        names, titles = (
            part[: columns.shape[1]] + self.groups.constants for part in (solution.names, solution.columns)
        )
        return replace(
            solution,
            names=names,
            columns=titles,
            groups=replace(self.groups, labels=solution.groups.labels if solution.groups else ()),
            fit_points=replace(points, inputs=np.concatenate([columns, empty], axis=1)),
        )


def _own(solution: Solution) -> tuple[str, ...]:
    return () if solution.groups is None else solution.groups.constants


def saved(text: str, own: OwnConstants, dataset: Dataset, known: Mapping[str, float]) -> Scored | None:
    """A formula of a search; None where it has other names than the table and the groups."""
    names = tuple(next(iter(own.values()), {}))
    try:
        expression = parse(text, (*dataset.names, *names), dict(known))
    except (ExpressionSyntaxError, UsageError):
        return None
    if dataset.groups is None:
        return Scored(measured(expression, dataset)[0])
    if any(label not in own for label in dataset.groups.labels):
        return None
    return _of_groups(expression, names, own, dataset)


def fitted(text: str, dataset: Dataset, known: Mapping[str, float], seed: int) -> Scored | None:
    """A formula of the user, its free constants fitted; None where no values of them fit the rows.

    Raises
    ------
    UsageError
        If it does not parse.
    """
    if dataset.groups is None:
        expression = fitted_guesses([text], dataset, known, seed)[0].expression
        return None if expression is None else Scored(with_digits(measured(expression, dataset)[0], dataset))
    guess = read_guess(text, dataset.names, known, dataset.target_column.alias)
    rows = GroupedRows.of(dataset.inputs, dataset.target, dataset.weights, dataset.groups.codes)
    values = separate_fits(guess.skeleton, rows, seed)
    if not np.isfinite(values).all():
        return None
    columns = len(dataset.names)
    names = constant_names(len(guess.constants), dataset)

    def column(node: Expression) -> Expression | None:
        return Variable(columns + node.index) if isinstance(node, Parameter) else None

    own = {
        label: dict(zip(names, values[:, code].tolist(), strict=True))
        for code, label in enumerate(dataset.groups.labels)
    }
    return _of_groups(substitute(guess.skeleton, column), names, own, dataset)


def _of_groups(expression: Expression, names: Sequence[str], own: OwnConstants, dataset: Dataset) -> Scored:
    """A formula whose variables are the columns and, after them, the constants of the groups."""
    groups = dataset.groups
    assert groups is not None  # the caller has looked
    named = GroupNames(groups.columns, groups.labels, tuple(names))
    constants = {
        label: tuple(
            ConstantEstimate(name, value, None, None, concise(value, None), False, value)
            for name, value in own[label].items()
        )
        for label in groups.labels
    }
    table = with_constants_of_groups(dataset, groups, named, constants)
    return Scored(with_digits(measured(expression, table, groups=constants)[0], table), named)
