"""The solution of a table with groups: formulas, constants with intervals, and checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from physdiffuser.arrays import FloatArray, IntArray
from physdiffuser.core.derivation import readable
from physdiffuser.core.solution import ConstantEstimate, Equation, Solution
from physdiffuser.core.solution_parts.group_constants import GroupNames, with_group_constants
from physdiffuser.data.dataset import Column, Dataset, summaries
from physdiffuser.data.statements.groups import Groups
from physdiffuser.expressions import (
    Apply,
    Expression,
    Parameter,
    complexity,
    evaluate,
)
from physdiffuser.expressions.simplification.textbook.arrange import arrange
from physdiffuser.expressions.tree import distinct_constants, substitute, variables, walk, with_columns
from physdiffuser.finalize.evidence.diagnostics import ENOUGH_ROWS, shows_pattern
from physdiffuser.finalize.scoring import measured, points_of_fit, with_digits, with_verdict
from physdiffuser.finalize.solution import without_equations
from physdiffuser.fitting.uncertainty import student_quantile
from physdiffuser.groups.joint_fit import JointFit, JointModel
from physdiffuser.groups.leave_out import left_out_groups
from physdiffuser.groups.selection import GroupSelection
from physdiffuser.groups.sharing import GroupLaw
from physdiffuser.report.text.digits import concise
from physdiffuser.verification import verify
from physdiffuser.verification.checks import Check, residual_check

NOT_CALIBRATED = Check(
    "open",
    "probability: not checked, it is calibrated on tables without groups",
    "no probability is known for laws of groups",
)
# An exact law must have so many rows for each fitted constant.
_ROWS_PER_CONSTANT = 2
# Rows are held out of groups that have so many.
_MIN_PER_GROUP = 15


def group_solution(
    dataset: Dataset,
    groups: Groups,
    selection: GroupSelection,
    split: tuple[IntArray, IntArray],
    seed: int,
) -> Solution:
    """The solution from the laws that were fitted.

    Parameters
    ----------
    dataset
        The table, all rows.
    groups
        Of its rows.
    selection
        The laws, fitted to the rows of the fit.
    split
        Positions of the rows of the fit, and of those held out.
    seed
        Random seed, for the record.
    """
    front, best_law = selection.front(), selection.best
    most = max((int((~law.fit.shared).sum()) for law in front), default=0)
    named = GroupNames(groups.columns, groups.labels, constant_names(most, dataset))
    empty = replace(
        without_equations(dataset, seed, dataset.warnings),
        names=(*dataset.names, *named.constants),
        columns=(*(column.name for column in dataset.columns), *named.constants),
        notes={**dataset.notes, "groups": f"{len(named.labels)}, by {', '.join(named.columns)}"},
        groups=named,
    )
    if best_law is None:
        return empty
    made = [_equation(law, dataset, groups, named, selection, split[1]) for law in front]
    best = made[next(place for place, law in enumerate(front) if law is best_law)]
    made = _one_of_each_complexity(made, best)
    position = made.index(best)
    table = with_constants_of_groups(dataset, groups, named, best.groups)
    prediction = evaluate(best.expression, table.inputs)
    exact = _is_exact(table, prediction, best_law)
    best = _verified(best, best_law, selection, table, prediction, split, exact, named)
    equations = [best if place == position else row for place, row in enumerate(made)]
    return replace(
        empty,
        status="exact" if exact else "approximate",
        best=best,
        pareto=tuple(equations),
        derivation=best.derivation,
        test_rows=int(split[1].size),
        fit_points=points_of_fit(table, prediction, split[1], groups.codes),
        summaries=summaries(dataset),
    )


def _one_of_each_complexity(equations: list[Equation], best: Equation) -> list[Equation]:
    """The most accurate of each complexity, or the chosen one: signs of constants count as well."""
    found: dict[int, Equation] = {}
    for one in sorted(equations, key=lambda one: (one.complexity, one is not best, one.rmse)):
        found.setdefault(one.complexity, one)
    return list(found.values())


def constant_names(count: int, dataset: Dataset) -> tuple[str, ...]:
    """Names for constants of the groups that are those of no column: `p1`, `p2`, ..."""
    taken = {*dataset.names, dataset.target_column.alias}
    prefix = next(
        prefix
        for prefix in ("p", "k", "q", "group_constant_")
        if not any(f"{prefix}{number + 1}" in taken for number in range(count))
    )
    return tuple(f"{prefix}{number + 1}" for number in range(count))


def with_constants_of_groups(
    dataset: Dataset, groups: Groups, named: GroupNames, constants: Mapping[str, tuple[ConstantEstimate, ...]]
) -> Dataset:
    """The table with a column for each constant of the groups."""
    empty = np.full((dataset.rows, len(named.constants)), np.nan)
    inputs = with_group_constants(
        np.concatenate([dataset.inputs, empty], axis=1), constants, named, groups.codes
    )
    unused = np.isnan(inputs).all(axis=0)
    inputs[:, unused] = 0.0
    columns = (*dataset.columns, *(Column(name, name) for name in named.constants))
    return replace(dataset, inputs=inputs, columns=columns, groups=None)


def _estimate(name: str, value: float, error: float, quantile: float) -> ConstantEstimate:
    """A constant with its 95 % interval, or without one where its error is unknown."""
    half = float(quantile * error)
    low, high = (value - half, value + half) if np.isfinite(half) else (None, None)
    sigma = float(error) if np.isfinite(error) else None
    return ConstantEstimate(name, value, low, high, concise(value, sigma), False, value, sigma)


def _equation(
    law: GroupLaw,
    dataset: Dataset,
    groups: Groups,
    named: GroupNames,
    selection: GroupSelection,
    held_out: IntArray,
) -> Equation:
    fit, columns = with_signs(law.fit), len(dataset.names)
    blocks, errors, _ = JointModel(fit.skeleton, selection.rows).covariance(fit)
    freedom = selection.rows.rows - fit.constants
    quantile = student_quantile(0.95, freedom) if freedom > 0 else np.nan
    own = fit.own
    estimate = partial(_estimate, quantile=quantile)
    expression, common = _arranged(readable(fit.filled(columns)), fit, columns)
    constants = tuple(
        estimate(f"c{number}", value, float(errors[index, 0]))
        for number, (index, value) in enumerate(common, start=1)
    )
    of_groups = {
        label: tuple(
            estimate(name, float(fit.parameters[index, code]), float(errors[index, code]))
            for name, index in zip(named.constants, own, strict=False)  # other formulas may have more
        )
        for code, label in enumerate(groups.labels)
    }
    table = with_constants_of_groups(dataset, groups, named, of_groups)
    made, _ = measured(
        expression,
        table,
        held_out,
        constants=constants,
        generator="groups",
        degrees_of_freedom=freedom,
        description_length=law.length if np.isfinite(law.length) else None,
        groups=of_groups,
        group_covariance=_covariances(blocks, common, own, fit, groups.labels),
        derivation=_derivation(law, named, groups),
    )
    return with_digits(made, table)


def with_signs(fit: JointFit) -> JointFit:
    """The fit, constants of groups negated where that makes the formula shorter or all of them positive.

    As for numbers, `exp(-p1*t)` with a positive rate is preferred to `exp(p1*t)` with a negative one.
    """
    for index in np.flatnonzero(~fit.shared):
        negated = Apply("neg", (Parameter(int(index)),))
        parameters = fit.parameters.copy()
        parameters[index] *= -1.0
        skeleton = substitute(fit.skeleton, {negated.arguments[0]: negated}.get)
        changed = replace(fit, skeleton=skeleton, parameters=parameters)
        old, new = _arranged_fit(fit), _arranged_fit(changed)
        longer = complexity(new) - complexity(old)
        most = int(_decays(new) > _decays(old))
        if longer < 0 or (longer <= most and (fit.parameters[index] < 0).all()):
            fit = changed
    return fit


def _arranged_fit(fit: JointFit) -> Expression:
    """The arranged formula with a column for each constant of the groups."""
    return arrange(fit.filled(max(variables(fit.skeleton), default=-1) + 1))


def _decays(tree: Expression) -> int:
    """How many exponentials have a minus sign before their argument."""
    exponentials = (node for node in walk(tree) if isinstance(node, Apply) and node.operator == "exp")
    return sum(_leading_minus(node.arguments[0]) for node in exponentials)


def _leading_minus(tree: Expression) -> bool:
    while isinstance(tree, Apply) and tree.operator in ("mul", "div", "add", "sub"):
        tree = tree.arguments[0]
    return isinstance(tree, Apply) and tree.operator == "neg"


def _arranged(
    expression: Expression, fit: JointFit, columns: int
) -> tuple[Expression, list[tuple[int, float]]]:
    """The formula in the customary order, and its shared constants: parameter, and value as it stands there.

    A formula whose constants would not be those of the fit, but for their signs, stays as it is.

    Parameters
    ----------
    columns
        Number of columns of the table: variables from there on are constants of the groups.
    """
    # Constants stand before columns, so they are the first variables while terms are put in order.
    own = max(0, max((index + 1 for index in variables(expression)), default=0) - columns)
    first = arrange(with_columns(expression, [*range(own, own + columns), *range(own)]))
    back = with_columns(first, [*range(columns, columns + own), *range(columns)])
    places = {abs(float(fit.parameters[index, 0])): int(index) for index in np.flatnonzero(fit.shared)}
    for tree in (readable(back), expression):
        _, values = distinct_constants(tree)
        if len(values) == len(places) and all(abs(value) in places for value in values):
            return tree, [(places[abs(value)], value) for value in values]
    return expression, []


def _covariances(
    blocks: FloatArray, common: list[tuple[int, float]], own: list[int], fit: JointFit, labels: Sequence[str]
) -> dict[str, tuple[tuple[float, ...], ...]]:
    """Covariance of the shared constants, as they stand in the formula, and of each group's own, in order."""
    if len(common) < int(fit.shared.sum()) or not np.isfinite(blocks).all():
        return {}
    index = np.array([*(index for index, _ in common), *own], dtype=np.intp)
    signs = np.array(
        [*(np.sign(value) * np.sign(fit.parameters[index, 0]) for index, value in common), *[1.0] * len(own)]
    )
    ordered = blocks[:, index[:, None], index] * np.outer(signs, signs)
    return {label: tuple(map(tuple, block.tolist())) for label, block in zip(labels, ordered, strict=True)}


def _derivation(law: GroupLaw, named: GroupNames, groups: Groups) -> tuple[str, ...]:
    shared, own = int(law.fit.shared.sum()), int((~law.fit.shared).sum())
    count = len(groups.labels)
    return (
        f"forms were found by searches of single groups and of all {count} groups together",
        f"this form was fitted to all groups at once; {_are(shared)} shared and {_are(own, 'differ')} by "
        f"{', '.join(named.columns)}, the division with the minimum description length",
    )


def _are(count: int, verb: str = "are") -> str:
    singular = {"are": "is", "differ": "differs"}[verb]
    return f"1 fitted constant {singular}" if count == 1 else f"{count or 'no'} fitted constants {verb}"


def _is_exact(table: Dataset, prediction: FloatArray, law: GroupLaw) -> bool:
    """Whether every row is met up to rounding, with more than enough rows for the constants."""
    if table.rows <= _ROWS_PER_CONSTANT * law.fit.constants:
        return False
    scale = float(np.abs(table.target).max())
    return bool(
        (np.abs(prediction - table.target) <= 1e-9 * np.maximum(np.abs(table.target), 1e-3 * scale)).all()
    )


def _verified(
    best: Equation,
    law: GroupLaw,
    selection: GroupSelection,
    table: Dataset,
    prediction: FloatArray,
    split: tuple[IntArray, IntArray],
    exact: bool,
    named: GroupNames,
) -> Equation:
    """The chosen equation with its verdict: the checks of every law, and groups left out in turn."""
    holds, sentence = left_out_groups(law.fit, selection.rows, named)
    further = [
        Check("passed" if holds else "failed", sentence, "it does not hold for groups that were left out")
    ]
    if not exact:
        further.append(NOT_CALIBRATED)
        if table.rows >= ENOUGH_ROWS:
            further.insert(0, residual_check(shows_pattern(table, prediction)))
    checked = verify(
        best.expression,
        best.expression,
        table.inputs,
        table.target,
        split[0],
        split[1],
        names=best.names,
        weights=table.weights,
        further=further,
        columns=len(table.names) - len(named.constants),
        left_out_ratio=JointModel(law.fit.skeleton, selection.rows).left_out_ratio(law.fit),
    )
    return with_verdict(best, checked)


def fit_and_held_out(dataset: Dataset, groups: Groups, seed: int) -> tuple[IntArray, IntArray]:
    """Rows for the fit and rows held out, a fifth of each group that does not have few rows."""
    random = np.random.default_rng([seed, 17])
    held = [np.zeros(0, dtype=np.intp)]
    for code in range(len(groups.labels)):
        rows = random.permutation(np.flatnonzero(groups.codes == code))
        if len(rows) >= _MIN_PER_GROUP:
            held.append(rows[: len(rows) // 5])
    out = np.sort(np.concatenate(held))
    return np.setdiff1d(np.arange(dataset.rows), out), out
