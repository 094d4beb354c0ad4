"""Solve a table with groups: forms from searches, fitted to all groups, the best one chosen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from physdiffuser.arrays import IntArray
from physdiffuser.core.problem import Problem
from physdiffuser.core.solution import Solution
from physdiffuser.data.dataset import Dataset
from physdiffuser.data.statements.groups import Groups
from physdiffuser.errors import DataError
from physdiffuser.expressions import Expression, complexity, to_text
from physdiffuser.expressions.tree import free_constants
from physdiffuser.functions.standard_fits import (
    fit_forms_of_columns,
    fit_further_forms,
    fit_standard_forms,
)
from physdiffuser.groups.answer import constant_names, fit_and_held_out, group_solution
from physdiffuser.groups.candidates import Form, FormSource, forms_of_fits, searched_forms
from physdiffuser.groups.constraint_report import constraints_of_groups
from physdiffuser.groups.guess_outcomes import group_guess_outcomes
from physdiffuser.groups.joint_fit import GroupedRows, JointModel
from physdiffuser.groups.noise import infer_noise, with_weights
from physdiffuser.groups.numbers import with_number
from physdiffuser.groups.selection import GroupSelection
from physdiffuser.groups.sharing import GroupLaw
from physdiffuser.io.display import counted, listed, visible
from physdiffuser.noise.precision import decimal_precision
from physdiffuser.noise.reweighting import check_relative, noise_remark
from physdiffuser.options import SolveOptions
from physdiffuser.search.formulas import search_formulas
from physdiffuser.search.posing import constraint_rules
from physdiffuser.search.refinement.guesses import Guess, fitted_guesses
from physdiffuser.search.run_control import RunControl
from physdiffuser.search.table_search import pose_table
from physdiffuser.selection.description_length import rounding_loss

# A group must have so many rows.
MIN_ROWS = 3
# Formulas of an earlier run that are fitted again.
MAX_RESUMED = 30
# A group with an error so many times that of the middle one is named: chance does not give such a ratio.
ILL_DESCRIBED = 6.0
# Shares of the time: usual laws are fitted until the first is spent; what is left after the second is for
# noise models.
USUAL_SHARE, NOISE_FROM = 0.4, 0.85


def solve_groups(
    dataset: Dataset,
    guesses: Sequence[Guess],
    options: SolveOptions,
    control: RunControl,
    source: FormSource | None = None,
) -> tuple[Solution, GroupSelection]:
    """Find one law for all groups of a table, and which of its constants they share.

    Parameters
    ----------
    dataset
        With groups.
    guesses
        Starting formulas of the user.
    options
        Of the search. `operators`, `units` and `max_complexity` hold for the law.
    source
        Of the forms; None for usual laws and searches.

    Returns
    -------
    The solution, and the laws that were fitted.

    Raises
    ------
    DataError
        If there is only one group, or a group has too few rows.
    """
    groups = dataset.groups
    assert groups is not None  # the caller has looked
    _check_groups(groups)
    # Asked with the whole table, which the caller may want to know.
    resumed = options.formulas(dataset)
    options = options.changed(resumed=())
    weighted = dataset.weights is not None
    split = fit_and_held_out(dataset, groups, options.seed)
    table = replace(dataset.take(split[0]), groups=None)
    problem = pose_table(table, options, control).problem
    rules = constraint_rules(options, replace(dataset, groups=None))
    problem = replace(problem, rules=rules)
    forms = [Form(one.skeleton, (1.0,) * len(one.constants)) for one in guesses if one.constants]
    # The constants of groups, `p1`, `p2`, ..., are no columns, so they are free as those of a guess are.
    known = {symbol.name: symbol.value for symbol in problem.constants}
    earlier = fitted_guesses(resumed[:MAX_RESUMED], table, known, options.seed)
    fitted = [one.expression for one in (*guesses, *earlier) if one.expression is not None]
    forms += [Form(*free_constants(one)) for one in fitted if free_constants(one)[1]]
    if options.noise_model == "relative" and dataset.weights is None:
        check_relative(dataset)
    selection = select_law(table, groups.take(split[0]), forms, problem, options, control, source)
    noise = None
    # There is no comparison of noise models without time, or for a user who stops the search.
    stopped = control.over() and options.noise_model == "auto"
    selection.stop = control.over
    if not weighted and not stopped:
        asked = "robust" if options.loss == "robust" else options.noise_model
        noise = infer_noise(selection, asked, _rows(dataset, groups, split[1]))
    remarks: tuple[str, ...] = ()
    if noise is not None:
        selection = noise.selection
        selection.simplify()
        dataset = with_weights(dataset, groups, noise)
        remarks = (noise_remark(dataset.target_column.name, noise.model, noise.advantage),)
    solution = group_solution(dataset, groups, selection, split, options.seed)
    outcomes = group_guess_outcomes(guesses, solution, dataset, groups, selection, options.seed)
    statuses, violations = constraints_of_groups(rules, selection, dataset.names)
    solution = replace(
        solution,
        warnings=(
            *solution.warnings,
            *remarks,
            *ill_described(selection, dataset, groups),
            *_without_effect(options, weighted),
            *violations,
        ),
        guesses=outcomes,
        constraints=statuses,
        timing={"elapsed_seconds": control.clock() - control.started},
    )
    return solution, selection


def _check_groups(groups: Groups) -> None:
    """Refuse a single group, and groups with too few rows."""
    counts = np.bincount(groups.codes, minlength=len(groups.labels))
    if len(groups.labels) < 2:
        raise DataError(f"all rows are of one group, '{visible(groups.labels[0])}': leave out --group")
    if int(counts.min()) < MIN_ROWS:
        few = [visible(groups.labels[code]) for code in np.flatnonzero(counts < MIN_ROWS)]
        raise DataError(
            f"{counted(len(few), 'group')} with fewer than {MIN_ROWS} rows, too few to fit constants to: "
            f"{listed(few)}. Leave these rows out, or group by another column."
        )


@np.errstate(all="ignore")
def ill_described(selection: GroupSelection, dataset: Dataset, groups: Groups) -> tuple[str, ...]:
    """A warning that names the groups that the best law describes far worse than the others."""
    best = selection.best
    if best is None or selection.exact or len(groups.labels) < 3:
        return ()
    rows = GroupedRows.of(dataset.inputs, dataset.target, dataset.weights, groups.codes)
    residual = rows.target[rows.present] - JointModel(best.fit.skeleton, rows).predicted(best.fit.parameters)
    codes = np.repeat(np.arange(rows.groups), rows.counts)
    squares = np.bincount(codes, np.square(residual * rows.roots[rows.present]), rows.groups)
    errors = np.sqrt(squares / np.maximum(rows.counts, 1))
    worse = np.flatnonzero(errors > ILL_DESCRIBED * np.median(errors))
    if not worse.size or not np.isfinite(errors).all():
        return ()
    named = listed([f"'{visible(groups.labels[code])}'" for code in worse])
    return (
        f"the errors of {counted(worse.size, 'group')} are more than {ILL_DESCRIBED:g} times those of most "
        f"others: {named}. If these rows are doubtful, solve the table without them",
    )


def _without_effect(options: SolveOptions, weighted: bool) -> tuple[str, ...]:
    """A warning that names the options that a table with groups does not use."""
    unused = [
        name
        for name, given in (
            ("--noise-model robust", weighted and options.noise_model == "robust"),
            ("--loss robust", weighted and options.loss == "robust"),
            ("--input-errors", options.input_errors is not None),
            ("--suggest-next", bool(options.suggest_next)),
        )
        if given
    ]
    what = "groups and weights" if weighted else "groups"
    return (f"without effect on a table with {what}: {', '.join(unused)}",) if unused else ()


def select_law(
    dataset: Dataset,
    groups: Groups,
    guesses: Sequence[Form],
    problem: Problem,
    options: SolveOptions,
    control: RunControl,
    source: FormSource | None = None,
) -> GroupSelection:
    """Search for forms and fit them to all groups, until one is exact or the budget is spent."""
    rows = GroupedRows.of(dataset.inputs, dataset.target, dataset.weights, groups.codes)
    floor = rounding_loss(dataset.target, decimal_precision(dataset.target))
    first, over = control.within(USUAL_SHARE), control.within(NOISE_FROM)
    selection = GroupSelection(
        rows,
        floor,
        options.seed,
        stop=first,
        allowed=problem.admits,
        rules=problem.rules,
        put_number=with_number if source is None else source.with_number,
    )
    selection.consider(guesses)
    if source is None:
        _consider_usual(selection, problem, groups, first)
        _report(selection, dataset, groups, control)
    selection.stop = over

    def search(table: Dataset, known: Sequence[str], share: float) -> Sequence[Expression]:
        return search_formulas(table, known, share, options, control)

    searched = (
        ((forms, False) for forms in searched_forms(dataset, groups, search))
        if source is None
        else source.searched(dataset, groups, selection)
    )
    for forms, usual in () if control.cancelled() else searched:
        selection.consider(forms, usual=usual)
        _report(selection, dataset, groups, control, () if source is None else tuple(source.statements))
        if selection.exact or over():
            break
    selection.simplify()
    return selection


def _consider_usual(
    selection: GroupSelection, problem: Problem, groups: Groups, stop: Callable[[], bool]
) -> None:
    """Fit the usual laws of each column."""
    usual = [*fit_standard_forms(problem, stop), *fit_forms_of_columns(problem, stop)]
    selection.consider(forms_of_fits(usual), usual=True)
    if not stop():
        selection.consider(forms_of_fits(fit_further_forms(_largest_group(problem, groups), stop)))


def _rows(dataset: Dataset, groups: Groups, chosen: IntArray) -> GroupedRows | None:
    """Some rows of the table, of each group; None where there are none."""
    if not chosen.size:
        return None
    codes = groups.codes[chosen]
    return GroupedRows.of(dataset.inputs[chosen], dataset.target[chosen], None, codes, len(groups.labels))


def _largest_group(problem: Problem, groups: Groups) -> Problem:
    """The rows of the group with the most of them: forms with many constants fit no mixture of groups."""
    rows = groups.codes == int(np.argmax(np.bincount(groups.codes)))
    weights = None if problem.weights is None else problem.weights[rows]
    return replace(problem, inputs=problem.inputs[rows], target=problem.target[rows], weights=weights)


def _report(
    selection: GroupSelection,
    dataset: Dataset,
    groups: Groups,
    control: RunControl,
    statements: tuple[str, ...] = (),
) -> None:
    """Tell the caller the best laws so far; `p1`, `p2`, ... stand for the constants of the groups."""
    best = selection.best
    if best is None or control.on_progress is None:
        return
    front = selection.front()
    most = max(int((~law.fit.shared).sum()) for law in front)
    constants = constant_names(most, dataset)
    names = (*dataset.names, *constants)
    formula = best.fit.filled(len(dataset.names))
    control.report(
        formula,
        names,
        loss=best.fit.loss,
        complexity=complexity(formula),
        generator="groups",
        front=tuple(to_text(law.fit.filled(len(dataset.names)), names, digits=6) for law in front),
        groups=tuple(_own_constants(law, constants, groups) for law in front),
        functions=statements,
    )


def _own_constants(law: GroupLaw, names: Sequence[str], groups: Groups) -> dict[str, dict[str, float]]:
    """The constants of each group by name, as they stand in the formula."""
    named = [*zip(names, law.fit.own, strict=False)]  # other formulas may have more
    return {
        label: {name: float(law.fit.parameters[index, code]) for name, index in named}
        for code, label in enumerate(groups.labels)
    }
