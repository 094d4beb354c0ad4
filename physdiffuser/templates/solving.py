"""Solve a table with a template: the unknown functions are searched one after the other, and fitted together.

Polynomials stand for the functions at first. From then on, one function after the other is searched by the
ordinary search in the table of the values that it should have, and replaced by the form with which all
constants, fitted together, describe the table in the fewest nats.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from physdiffuser.core.candidate import Candidate
from physdiffuser.core.solution import Solution
from physdiffuser.data.dataset import Dataset
from physdiffuser.data.statements.constants import parse_constants
from physdiffuser.errors import DataError, UsageError
from physdiffuser.expressions import Expression, Number, Parameter, complexity, to_text
from physdiffuser.expressions.tree import add, bind
from physdiffuser.finalize.guess_outcomes import guess_outcomes
from physdiffuser.finalize.rescaling.magnitudes import Magnitudes
from physdiffuser.finalize.solution import build_solution
from physdiffuser.functions.standard_fits import fit_forms_of_columns, fit_standard_forms
from physdiffuser.noise.precision import decimal_precision
from physdiffuser.options import SolveOptions
from physdiffuser.search.formulas import search_formulas
from physdiffuser.search.refinement.guesses import ROWS, Guess, fit_guess
from physdiffuser.search.run_control import RunControl
from physdiffuser.search.table_search import pose_table, prepare, search_table
from physdiffuser.selection.description_length import rounding_loss
from physdiffuser.templates.answer import keeps_template, with_parts, with_tied_constants
from physdiffuser.templates.function_guesses import (
    FunctionGuess,
    earlier_guesses,
    in_template,
    read_function_guesses,
)
from physdiffuser.templates.joint_fit import FEW_STARTS, STARTS, Form, JointFits, Model, forms_of
from physdiffuser.templates.partial_tables import enclosing, partial_table
from physdiffuser.templates.template import Template, UnknownFunction, known_part, read_template

# Each function is searched so often, the others being better known the second time.
ROUNDS = 2
# Formulas of one search that are fitted together with the other functions.
MAX_FORMULAS = 16
# Forms of each function that are combined at the end, by the number of functions.
COMBINED = {1: 30, 2: 6, 3: 3, 4: 2}
# Models with a usual law that are fitted to all groups.
MAX_USUAL = 14
# Forms of each function that are kept for `--resume`.
MAX_STATEMENTS = 10
# A second round that shortens the description by less was not needed.
_SAME_NATS = 0.5
STARTS_ANEW = "the earlier run had no formula for a function of this template: the search started anew"


def template_of(options: SolveOptions, dataset: Dataset) -> Template | None:
    """The template that the options give; None where they give none.

    Raises
    ------
    UsageError
        If it cannot be used.
    """
    if options.template is None and options.known is None:
        return None
    if options.template is not None and options.known is not None:
        raise UsageError("give either a template or a known part: --template 'known + f(...)' holds both")
    name, text = ("template", options.template) if options.known is None else ("known", options.known)
    if not isinstance(text, str):
        raise UsageError(f"{name}={text!r}: must be a formula as text")
    values = _known_constants(options, dataset)
    if name == "known":
        text = known_part(text, dataset.names, values)
    return read_template(text, dataset.names, values, dataset.target_column.alias)


def _known_constants(options: SolveOptions, dataset: Dataset) -> dict[str, float]:
    known = parse_constants(options.constants, taken=dataset.names)
    return {constant.symbol.name: constant.symbol.value for constant in known}


def with_operators_of(template: Template, options: SolveOptions) -> SolveOptions:
    """The options that allow the operators of the template as well, as complete formulas have them."""
    asked = options.operators
    if asked is None or isinstance(asked, Mapping) or all("=" in name for name in asked):
        return options  # all operators are allowed
    return options.changed(operators=[*asked, *sorted(template.operators - set(asked))])


def check_magnitudes(dataset: Dataset) -> None:
    """Refuse values that the usual search would change the units of.

    Raises
    ------
    DataError
        If there are any.
    """
    if not Magnitudes.of(dataset).usual:
        raise DataError("with a template, values must lie between 1e-50 and 1e50: use other units")


def starting_formulas(
    dataset: Dataset, template: Template, options: SolveOptions
) -> tuple[list[FunctionGuess], list[FunctionGuess], tuple[str, ...]]:
    """The guesses of the user, the formulas of an earlier run, and a warning if it had other functions."""
    known = _known_constants(options, dataset)
    guesses = read_function_guesses(options.initial, template, known)
    # Asked with the whole table, which the caller may want to know.
    earlier = options.formulas(dataset)
    resumed = earlier_guesses(earlier, template, known)
    return guesses, resumed, (STARTS_ANEW,) if earlier and not resumed else ()


def solve_template(
    dataset: Dataset, template: Template, options: SolveOptions, control: RunControl
) -> Solution:
    """Find the unknown functions of a template.

    Raises
    ------
    DataError
        If the values are too large or too small, or the template has no finite value on the rows.
    """
    check_magnitudes(dataset)
    guesses, resumed, warnings = starting_formulas(dataset, template, options)
    options = options.changed(initial=(), resumed=(), proposed=())
    search = TemplateSearch(dataset, template, options, control, [*guesses, *resumed])
    models = search.run()
    own = with_operators_of(template, options).changed(generators=())
    prepared = prepare(pose_table(dataset, own, control), own, control)
    candidates = [search.candidate(model) for model in models]
    found = search_table(prepared, own, control, candidates)
    solution = build_solution(found, control)
    of_laws = [*models, *search.of_laws(solution)]
    if solution.status != "exact" and not keeps_template(solution, template, of_laws, dataset):
        solution = with_tied_constants(solution, template, models, candidates, found)
    solution = replace(solution, warnings=(*solution.warnings, *warnings))
    solution = with_parts(solution, template, of_laws, dataset, search.statements())
    whole = complete_guesses(guesses, models, template, dataset, options.seed)
    return replace(solution, guesses=guess_outcomes(whole, solution, dataset))


def complete_guesses(
    guesses: Sequence[FunctionGuess],
    models: Sequence[Model],
    template: Template,
    dataset: Dataset,
    seed: int,
) -> list[Guess]:
    """Guesses for functions as complete formulas, the other functions as in the best model, fitted."""
    found = []
    for name, guess in guesses:
        whole = in_template(name, guess, models[0].skeletons, template) if models else None
        found.append(guess if whole is None else fit_guess(whole, dataset.sample(ROWS), seed))
    return found


class TemplateSearch:
    """The search for the unknown functions of a template.

    Parameters
    ----------
    dataset, template, options, control
        As for `solve_template`.
    guesses
        Starting formulas, with the name of the function that each is for.
    rounds
        How often each function is searched.
    """

    def __init__(
        self,
        dataset: Dataset,
        template: Template,
        options: SolveOptions,
        control: RunControl,
        guesses: Sequence[FunctionGuess] = (),
        rounds: int = ROUNDS,
    ) -> None:
        self.dataset, self.template, self.options, self.control = dataset, template, options, control
        self._guesses, self._rounds = guesses, rounds
        # The rules of complete formulas; the functions are searched with the operators that were asked for.
        self.problem = pose_table(dataset, with_operators_of(template, self.options), control).problem
        floor = rounding_loss(dataset.target, decimal_precision(dataset.target))
        self.fits = JointFits(template, self.problem, floor, options.seed)
        self.pools: dict[str, dict[object, tuple[Form, float]]] = {one.name: {} for one in template.functions}

    def run(self) -> list[Model]:
        """Models with a formula for each function, the shortest descriptions first."""
        model = self._first()
        share = 1.0 / (self._rounds * len(self.template.functions))
        for number in range(self._rounds):
            before = model.length
            for function in self.template.functions:
                model = self._searched(function, model, share)
                size = complexity(model.expression)
                self.control.report(
                    model.expression,
                    self.dataset.names,
                    loss=model.loss,
                    complexity=size,
                    generator="template",
                    front=(to_text(model.expression, self.dataset.names),),
                    functions=self.statements(),
                )
            exact = model.loss <= 4 * self.fits.measure.floor
            if exact or self.control.over() or (number and model.length > before - _SAME_NATS):
                break
            if len(self.template.functions) == 1 and not self.template.constants and self._is_direct():
                break  # the table of the function would be the same again
        return self._combined(model)

    def _is_direct(self) -> bool:
        function = self.template.functions[0]
        return len(self.template.calls(function.name)) == 1 == len(self.template.parts)

    def _first(self) -> Model:
        """Polynomials, or constants where they cannot be fitted."""
        model = self.fits.polynomials()
        if model is not None:
            return model
        ones = {one.name: Form(Parameter(0), (1.0,)) for one in self.template.functions}
        made = self.fits.fit(ones, np.ones(len(self.template.constants)), FEW_STARTS)
        if made is None:
            raise DataError("the template has no finite value on the rows of the table: check its formula")
        return made

    def _searched(self, function: UnknownFunction, model: Model, share: float) -> Model:
        """The model with the best form of one function that a search finds."""
        table = partial_table(self.template, function, model.skeletons, model.parameters, self.dataset)
        guessed = self._guessed(function, model, table)
        formulas: Sequence[Expression] = ()
        if table is not None and not self.control.over():
            pool = [bind(form.skeleton, form.known) for form in self._pool(function)]
            known = [to_text(one, function.arguments) for one in (*guessed, *pool[:MAX_FORMULAS])]
            formulas = search_formulas(table, known, share, self.options, self.control)[:MAX_FORMULAS]
            outer = enclosing(self.template, function)
            if outer is not None:
                inner = [outer.function_of(formula) for formula in formulas]
                formulas = [one for one in inner if one is not None]
        for form in forms_of([*guessed, *formulas]):
            self.pools[function.name].setdefault(form.skeleton, (form, np.inf))
        best: Model | None = None
        for key, (form, _) in list(self.pools[function.name].items()):
            made = self.fits.with_known(model, function.name, form)
            if made is None or not self.problem.allows(made.expression):
                self.pools[function.name].pop(key)
                continue
            place = self.template.constants_of(made.skeletons)[function.name]
            fitted = Form(form.skeleton, tuple(made.parameters[place].tolist()))
            self.pools[function.name][key] = fitted, made.length
            if best is None or made.length < best.length:
                best = made
        return model if best is None else best

    def _guessed(self, function: UnknownFunction, model: Model, table: Dataset | None) -> list[Expression]:
        """The guesses for a function, fitted to the values that it should have."""
        found = []
        for name, guess in self._guesses:
            if name != function.name:
                continue
            if table is not None and enclosing(self.template, function) is None:
                fitted = fit_guess(guess, table.sample(ROWS), self.options.seed).expression
                found += [] if fitted is None else [fitted]
                continue
            form = Form(guess.skeleton, (1.0,) * len(guess.constants))
            made = self.fits.with_known(model, name, form, STARTS)
            if made is not None:
                place = self.template.constants_of(made.skeletons)[name]
                found.append(bind(guess.skeleton, list(made.parameters[place])))
        return found

    def _pool(self, function: UnknownFunction) -> list[Form]:
        """Forms of a function, the shortest descriptions first."""
        return [form for form, _ in sorted(self.pools[function.name].values(), key=lambda one: one[1])]

    def _combined(self, model: Model) -> list[Model]:
        """Combinations of the best forms of all functions, fitted together."""
        names = [one.name for one in self.template.functions]
        most = COMBINED[len(names)]
        pools = [self._pool(one)[:most] for one in self.template.functions]
        if not all(pools):
            return []
        constants = model.parameters[: len(self.template.constants)]
        found = [model] if all(name in self.pools and self._known(name, model) for name in names) else []
        for forms in itertools.product(*pools):
            made = self.fits.fit(dict(zip(names, forms, strict=True)), constants, FEW_STARTS)
            if made is not None and self.problem.allows(made.expression):
                found.append(made)
        return sorted(found, key=lambda one: one.length)

    def _known(self, name: str, model: Model) -> bool:
        return model.forms[name].skeleton in self.pools[name]

    def of_laws(self, solution: Solution) -> list[Model]:
        """Models with the forms of the solution for the only function, where it takes all columns.

        `22 + f(...)` has a law of any form, 22 subtracted from its constant term.
        """
        functions, names = self.template.functions, self.dataset.names
        if len(functions) != 1 or functions[0].arguments != names or self.template.constants:
            return []
        laws = [row.expression for row in solution.pareto]
        forms = forms_of([form for law in laws for form in (law, add(law, Number(1.0)))])
        made = [self.fits.fit({functions[0].name: form}, np.zeros(0), FEW_STARTS) for form in forms]
        return [one for one in made if one is not None]

    def usual(self, model: Model) -> list[Model]:
        """The model with a usual law in place of each function, the shortest descriptions first."""
        found = []
        for one in self.template.functions:
            table = partial_table(self.template, one, model.skeletons, model.parameters, self.dataset)
            if table is None or enclosing(self.template, one) is not None:
                continue
            plain = self.options.changed(units=None, units_row=False, constraints=None)
            problem = pose_table(table, plain, self.control).problem
            over = self.control.over
            fits = [*fit_standard_forms(problem, over), *fit_forms_of_columns(problem, over)]
            made = [
                self.fits.with_known(model, one.name, form)
                for form in forms_of([fit.expression for fit in fits])
            ]
            found += [fit for fit in made if fit is not None and self.problem.allows(fit.expression)]
        return sorted(found, key=lambda one: one.length)[:MAX_USUAL]

    def best_forms(self) -> list[tuple[str, Expression]]:
        """The best forms of each function."""
        return [
            (one.name, bind(form.skeleton, form.known))
            for one in self.template.functions
            for form in self._pool(one)[:MAX_STATEMENTS]
        ]

    def statements(self) -> tuple[str, ...]:
        """The best forms as text, `f = 2*t + x`, for a run that goes on from this one."""
        names = {one.name: one.arguments for one in self.template.functions}
        return tuple(f"{name} = {to_text(form, names[name])}" for name, form in self.best_forms())

    def candidate(self, model: Model) -> Candidate:
        """A model as a formula of the table."""
        return Candidate(model.expression, "template", tuple(self._sentences(model)))

    def _sentences(self, model: Model) -> Iterator[str]:
        yield found_by_template(self.template)
        for function, text in function_texts(self.template, model, 5).items():
            yield f"{function} = {text}"


def found_by_template(template: Template) -> str:
    """The first sentence of the derivation of a law."""
    return f"the template {template.text}: its unknown functions were found by searches"


def function_texts(template: Template, model: Model, digits: int | None = None) -> dict[str, str]:
    """`{"f(t, x)": "2*t + x"}` for a model."""
    places = template.constants_of(model.skeletons)
    found = {}
    for function in template.functions:
        form = bind(model.forms[function.name].skeleton, list(model.parameters[places[function.name]]))
        found[f"{function.name}({', '.join(function.arguments)})"] = to_text(form, function.arguments, digits)
    return found
