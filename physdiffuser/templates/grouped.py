"""A template for groups of rows: its constants and those of its functions are shared, or differ by group.

The functions are searched in the tables of single groups and of all rows, as without groups; each composed
formula is a form whose constants are divided by `physdiffuser.groups`. Functions whose constants are all
shared are then searched in the rows of all groups together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from physdiffuser.core.solution import Equation, GuessOutcome, Solution
from physdiffuser.core.solution_parts.template_parts import TemplateParts
from physdiffuser.data.dataset import Dataset
from physdiffuser.data.statements.groups import Groups
from physdiffuser.expressions import Expression, Number, Parameter, Variable, to_text
from physdiffuser.expressions.simplification.textbook.arrange import arrange
from physdiffuser.expressions.tree import bind, call, substitute
from physdiffuser.groups.answer import with_signs
from physdiffuser.groups.candidates import FIRST_SHARE, Form, tables_of
from physdiffuser.groups.guess_outcomes import group_guess_outcomes
from physdiffuser.groups.joint_fit import JointFit
from physdiffuser.groups.numbers import Placed, with_number
from physdiffuser.groups.selection import GroupSelection
from physdiffuser.groups.sharing import MAX_CONSTANTS
from physdiffuser.groups.solving import solve_groups
from physdiffuser.options import SolveOptions
from physdiffuser.search.formulas import search_formulas
from physdiffuser.search.refinement.guesses import Guess
from physdiffuser.search.run_control import RunControl
from physdiffuser.templates.function_guesses import FunctionGuess, in_template
from physdiffuser.templates.joint_fit import Model, forms_of
from physdiffuser.templates.partial_tables import enclosing, partial_table
from physdiffuser.templates.solving import (
    MAX_FORMULAS,
    ROUNDS,
    TemplateSearch,
    check_magnitudes,
    found_by_template,
    starting_formulas,
    with_operators_of,
)
from physdiffuser.templates.template import Template, UnknownFunction


def solve_template_groups(
    dataset: Dataset, template: Template, options: SolveOptions, control: RunControl
) -> Solution:
    """Find the unknown functions of a template, and which constants the groups share.

    Raises
    ------
    DataError
        As `solve_groups` and `solve_template` do.
    """
    check_magnitudes(dataset)
    guesses, resumed, warnings = starting_formulas(dataset, template, options)
    plain = options.changed(initial=(), resumed=(), proposed=())
    source = TemplateForms(template, plain.changed(constraints=None), control, [*guesses, *resumed])
    solution, selection = solve_groups(dataset, (), with_operators_of(template, plain), control, source)
    best = selection.best
    if best is None or dataset.groups is None:
        return solution
    forms = source.forms[best.fit.skeleton]
    solution = replace(
        _derived(solution, template),
        template=replace(_parts(template, best.fit, forms, solution), statements=tuple(source.statements)),
        warnings=(*solution.warnings, *warnings),
    )
    outcomes = _outcomes(guesses, template, forms, solution, selection, dataset, options.seed)
    return replace(solution, guesses=outcomes)


def _derived(solution: Solution, template: Template) -> Solution:
    """The solution, each law of which says that its form is of the template."""

    def derived(row: Equation) -> Equation:
        return replace(row, derivation=(found_by_template(template), *row.derivation[1:]))

    best = None if solution.best is None else derived(solution.best)
    derivation = () if best is None else best.derivation
    return replace(solution, best=best, pareto=tuple(map(derived, solution.pareto)), derivation=derivation)


class TemplateForms:
    """Forms of a template for `solve_groups`.

    Parameters
    ----------
    template, options, control, guesses
        As for `TemplateSearch`.
    """

    def __init__(
        self,
        template: Template,
        options: SolveOptions,
        control: RunControl,
        guesses: Sequence[FunctionGuess],
    ) -> None:
        self.template, self.options, self.guesses = template, options, list(guesses)
        self.control = replace(control, on_progress=None)
        self.forms: dict[Expression, Mapping[str, Expression]] = {}
        self.statements: dict[str, None] = {}

    def searched(
        self, dataset: Dataset, groups: Groups, selection: GroupSelection
    ) -> Iterator[tuple[list[Form], bool]]:
        """Forms from each table in turn, with usual laws from the first, and from all rows together.

        In all rows a function is searched with what differs by group taken away, if its constants do not.
        """
        tables = [table for table, scaled in tables_of(dataset, groups) if not scaled]
        # The last one holds all rows: it is for groups that are too small to be searched by themselves.
        tables = tables[:-1] or tables
        pooled = len(self.template.functions)
        total = FIRST_SHARE + len(tables) - 1 + pooled
        for number, table in enumerate(tables):
            search = self._search(table, (FIRST_SHARE if number == 0 else 1.0) / total)
            models = search.run()
            self._keep(search.statements(), search.best_forms())
            # First, since nothing is searched for beyond an exact law.
            if number == 0 and models:
                yield self._composed_forms(search.usual(models[0])), True
            yield self._composed_forms(models), False
        for function in self.template.functions:
            yield self._pooled(function, dataset, groups, selection, 1.0 / total), False

    def with_number(self, fit: JointFit, position: int, number: Number) -> Placed | None:
        """The composed formula with a number in place of a constant of a function, which is simplified."""
        forms = self.forms[fit.skeleton]
        places = self.template.constants_of(forms)
        name = next((one for one, place in places.items() if place.start <= position < place.stop), None)
        if name is None:
            return None
        place = places[name]
        part = replace(fit, skeleton=forms[name], shared=fit.shared[place], parameters=fit.parameters[place])
        form, left = with_number(part, position - place.start, number)
        every = range(len(fit.parameters))
        kept = [*every[: place.start], *(place.start + one for one in left), *every[place.stop :]]
        skeleton = self._composed({**forms, name: form})
        return None if skeleton is None else (skeleton, kept)

    def _search(self, table: Dataset, share: float) -> TemplateSearch:
        """The search of one table."""
        # Forms are wanted here: outliers and the noise model are looked for when all groups are fitted.
        own = self.options.changed(loss="squared", noise_model="constant", **self.options.shares(share))
        # A second round finds what the first one of another function has spoiled.
        rounds = min(ROUNDS, len(self.template.functions))
        return TemplateSearch(table, self.template, own, self.control, self.guesses, rounds)

    def _composed_forms(self, models: Sequence[Model]) -> list[Form]:
        composed = [(self._composed(model.skeletons), model) for model in models]
        return [
            Form(skeleton, tuple(model.parameters.tolist()))
            for skeleton, model in composed
            if skeleton is not None and 0 < len(model.parameters) <= MAX_CONSTANTS
        ]

    def _keep(self, statements: Sequence[str], forms: Sequence[tuple[str, Expression]]) -> None:
        self.statements |= dict.fromkeys(statements)
        self.guesses += [(name, Guess("", form, ())) for name, form in forms]

    def _pooled(
        self,
        function: UnknownFunction,
        dataset: Dataset,
        groups: Groups,
        selection: GroupSelection,
        share: float,
    ) -> list[Form]:
        """Forms of one function from the rows of all groups, where the best law has one for all of them."""
        best = selection.best
        if best is None or selection.exact or self.control.over():
            return []
        forms = self.forms[best.fit.skeleton]
        place = self.template.constants_of(forms)[function.name]
        if not best.fit.shared[place].all() or enclosing(self.template, function) is not None:
            return []
        tables = [
            partial_table(self.template, function, forms, best.fit.parameters[:, code], dataset.take(rows))
            for code in range(len(groups.labels))
            if (rows := np.flatnonzero(groups.codes == code)).size
        ]
        table = _stacked([one for one in tables if one is not None])
        if table is None:
            return []
        now = bind(forms[function.name], best.fit.parameters[place, 0].tolist())
        known = [to_text(now, function.arguments)]
        formulas = search_formulas(table, known, share, self.options, self.control)[:MAX_FORMULAS]
        parameters = best.fit.parameters[:, int(np.argmax(selection.rows.counts))]
        found = []
        for form in forms_of(formulas):
            skeleton = self._composed({**forms, function.name: form.skeleton})
            values = (*parameters[: place.start], *form.known, *parameters[place.stop :])
            if skeleton is not None and 0 < len(values) <= MAX_CONSTANTS:
                found.append(Form(skeleton, tuple(map(float, values))))
        return found

    def _composed(self, forms: Mapping[str, Expression]) -> Expression | None:
        skeleton = self.template.compose(forms)
        if skeleton is not None:
            self.forms.setdefault(skeleton, forms)
        return skeleton


def _stacked(tables: Sequence[Dataset]) -> Dataset | None:
    """The rows of several tables with the same columns."""
    if not tables:
        return None
    weights = [np.ones(one.rows) if one.weights is None else one.weights for one in tables]
    return replace(
        tables[0],
        inputs=np.concatenate([one.inputs for one in tables]),
        target=np.concatenate([one.target for one in tables]),
        weights=np.concatenate(weights),
    )


def _parts(
    template: Template, fit: JointFit, forms: Mapping[str, Expression], solution: Solution
) -> TemplateParts:
    """The functions in the chosen law, constants of the groups by the names that they have in it."""
    signed = with_signs(fit)
    named = () if solution.groups is None else solution.groups.constants
    names = dict(zip(signed.own, named, strict=False))
    turned = (signed.parameters != fit.parameters).any(axis=1)
    functions = {}
    for one in template.functions:
        first = template.constants_of(forms)[one.name].start

        # Constants stand before arguments, so they are the first variables.
        def put(node: Expression, first: int = first) -> Expression | None:
            if isinstance(node, Variable):
                return Variable(len(named) + node.index)
            if not isinstance(node, Parameter):
                return None
            index = first + node.index
            if index not in names:
                return Number(float(fit.parameters[index, 0]))
            own = Variable(named.index(names[index]))
            return call("neg", own) if turned[index] else own

        formula = arrange(substitute(forms[one.name], put))
        functions[one.name] = to_text(formula, (*named, *one.arguments))
    places = list(enumerate(template.constants))
    return TemplateParts(
        template.text,
        functions,
        {one.name: one.arguments for one in template.functions},
        {name: float(fit.parameters[index, 0]) for index, name in places if index not in names},
        {name: ("-" if turned[index] else "") + names[index] for index, name in places if index in names},
    )


def _outcomes(
    guesses: Sequence[FunctionGuess],
    template: Template,
    forms: Mapping[str, Expression],
    solution: Solution,
    selection: GroupSelection,
    dataset: Dataset,
    seed: int,
) -> tuple[GuessOutcome, ...]:
    """What became of the user's guesses, each as a complete formula."""
    assert dataset.groups is not None  # this is for groups
    found = [in_template(name, guess, forms, template) or guess for name, guess in guesses]
    return group_guess_outcomes(found, solution, dataset, dataset.groups, selection, seed)
