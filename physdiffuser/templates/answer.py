"""The unknown functions in the chosen law, and what a solution with a template may state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.archive import Entry
from physdiffuser.core.candidate import Candidate
from physdiffuser.core.solution import Equation, Solution
from physdiffuser.core.solution_parts.template_parts import TemplateParts
from physdiffuser.data.dataset import Dataset
from physdiffuser.expressions import Expression, Number, Parameter, complexity, evaluate, to_text
from physdiffuser.expressions.simplification.textbook.arrange import arrange
from physdiffuser.expressions.tree import bind, fitted_constants, substitute
from physdiffuser.finalize.evidence.diagnostics import ENOUGH_ROWS, shows_pattern
from physdiffuser.finalize.finalize import Law
from physdiffuser.finalize.scoring import equation, points_of_fit, predict, with_verdict
from physdiffuser.fitting import Fit, fit_constants
from physdiffuser.fitting.losses import root_mean_square
from physdiffuser.search.table_search import Found, on_rows
from physdiffuser.templates.joint_fit import Model
from physdiffuser.templates.template import Template
from physdiffuser.verification import verify
from physdiffuser.verification.checks import Check, residual_check

NOT_CALIBRATED = "no probability is known for laws with a template"
LOST = "the chosen law could not be divided into the functions of the template"
# The functions together have the values of the law, relative to its largest; rows on which this is tested.
_AGREES, _ROWS = 1e-8, 1_000
# A constant is written as a fraction with a denominator up to this if it agrees with it so closely.
_DENOMINATOR, _SAME = 12, 1e-9
# Constants below this share of the largest are those of terms that the law does not have.
_NOTHING = 1e-12


def with_parts(
    solution: Solution,
    template: Template,
    models: Sequence[Model],
    dataset: Dataset,
    statements: tuple[str, ...],
) -> Solution:
    """The solution with the formulas of the unknown functions, and without rows that are not of the template.

    Parameters
    ----------
    solution
        Whose laws come from the models, with final constants.
    template
        The structure.
    models
        The shortest descriptions first.
    dataset
        The table.
    statements
        The best forms of each function.
    """
    best = solution.best
    if best is None:
        return solution
    if solution.status != "exact":
        rows = tuple(_unrated(row) for row in solution.pareto)
        place = next(number for number, row in enumerate(solution.pareto) if row == best)
        solution = replace(solution, best=rows[place], pareto=rows, none_of_these=None)
    parts = parts_of(best.expression, template, models, dataset)
    if parts is None:
        return replace(solution, warnings=(*solution.warnings, LOST))
    kept = [
        row
        for row in solution.pareto
        if row == solution.best or parts_of(row.expression, template, models, dataset) is not None
    ]
    parts = replace(parts, statements=statements)
    return replace(solution, template=parts, pareto=tuple(kept))


def _unrated(row: Equation) -> Equation:
    """Without a probability and what follows from it: it is calibrated on tables without templates."""
    kept = [place for place, text in enumerate(row.verification) if "probability" not in text]
    made = replace(
        row,
        probability=None,
        verification=tuple(row.verification[place] for place in kept),
        check_states=tuple(row.check_states[place] for place in kept if place < len(row.check_states)),
    )
    if row.verdict == "verified" or "probability" in row.verdict_reason:
        return replace(made, verdict="unknown", verdict_reason=NOT_CALIBRATED)
    return made


def keeps_template(solution: Solution, template: Template, models: Sequence[Model], dataset: Dataset) -> bool:
    """Whether the last fits, which free each number of a law by itself, cannot have left the template."""
    if template.has_repeated_functions or solution.best is None:
        return False
    return parts_of(solution.best.expression, template, models, dataset) is not None


def with_tied_constants(
    solution: Solution,
    template: Template,
    models: Sequence[Model],
    candidates: Sequence[Candidate],
    found: Found,
) -> Solution:
    """The chosen law as the template has it: known numbers as given, a function in several places with the
    same constants there.

    The last fits of a law free each number by itself. Where they have led out of the template, the law is
    the model with the shortest description.

    Parameters
    ----------
    solution
        Of the search.
    template
        The structure.
    models, candidates
        The shortest descriptions first, as fitted together, and as offered to the search.
    found
        What the search has left.
    """
    best = solution.best
    if best is None or not models:
        return solution
    dataset, rows = found.dataset, found.split.fit
    law = predict(best.expression, dataset.inputs)
    lost = parts_of(best.expression, template, models, dataset) is None
    values = [predict(model.expression, dataset.inputs) for model in models]
    distances = [root_mean_square(one - law, dataset.weights) for one in values]
    nearest = 0 if lost and not template.has_repeated_functions else int(np.argmin(distances))
    problem = on_rows(found.problem, dataset, rows)
    fit = fit_constants(
        models[nearest].skeleton,
        problem.inputs,
        problem.target,
        weights=problem.weights,
        loss=problem.loss,
        initial=models[nearest].parameters,
        starts=1,
    )
    shown = _arranged(fit, models[nearest], template, problem.inputs)
    entry = Entry(replace(candidates[nearest], expression=shown), complexity(shown), fit.loss)
    tied = Law(entry, fit.expression, shown, fit.loss, fit.loss, ())
    made, prediction = equation(tied, dataset, found.split, problem)
    if lost:
        made = _checked(made, dataset, found, prediction)
    else:
        made = replace(
            made,
            verdict=best.verdict,
            verdict_reason=best.verdict_reason,
            verification=best.verification,
            check_states=best.check_states,
            description_length=best.description_length,
        )
    rest = [made if row == best else row for row in solution.pareto]
    points = solution.fit_points
    if points is not None:
        points = points_of_fit(dataset, prediction, found.split.test)
    return replace(solution, best=made, pareto=tuple(rest), derivation=made.derivation, fit_points=points)


def _checked(made: Equation, dataset: Dataset, found: Found, prediction: FloatArray) -> Equation:
    """The law with checks of its own: those of the law that was left do not hold for it."""
    further = [residual_check(shows_pattern(dataset, prediction))] if dataset.rows >= ENOUGH_ROWS else []
    checked = verify(
        made.expression,
        made.expression,
        dataset.inputs,
        dataset.target,
        found.split.fit,
        found.split.test,
        names=dataset.names,
        weights=dataset.weights,
        further=[*further, Check("open", NOT_CALIBRATED, NOT_CALIBRATED)],
    )
    return with_verdict(made, checked)


def _arranged(fit: Fit, model: Model, template: Template, inputs: FloatArray) -> Expression:
    """The composed formula with the functions in a simpler form, where there is one."""
    found = _divided(
        replace(model, parameters=fit.parameters), template, inputs, evaluate(fit.expression, inputs)
    )
    composed = None if found is None else template.compose(found.forms)
    if found is None or composed is None:
        return fit.expression
    made = bind(composed, list(found.constants.values()))
    return made if complexity(made) <= complexity(fit.expression) else fit.expression


def parts_of(
    law: Expression, template: Template, models: Sequence[Model], dataset: Dataset
) -> TemplateParts | None:
    """The functions in a law, from the models that have its values with some constants; None if none has."""
    rows = np.linspace(0, dataset.rows - 1, min(dataset.rows, _ROWS)).astype(np.intp)
    inputs = dataset.inputs[rows]
    wanted = evaluate(law, inputs)
    if np.ptp(wanted) == 0:
        return None
    divided = [_divided(model, template, inputs, wanted) for model in models]
    found = [one for one in divided if one is not None]
    if not found:
        return None
    simplest = min(found, key=lambda one: one.size)
    return TemplateParts(
        template.text,
        {one.name: to_text(simplest.forms[one.name], one.arguments) for one in template.functions},
        {one.name: one.arguments for one in template.functions},
        simplest.constants,
    )


@dataclass(frozen=True)
class _Divided:
    """Formulas of the functions that together have the values of a law."""

    forms: Mapping[str, Expression]
    constants: Mapping[str, float]

    @property
    def size(self) -> int:
        return sum(complexity(form) + fitted_constants(form) for form in self.forms.values())


@np.errstate(all="ignore")
def _divided(model: Model, template: Template, inputs: FloatArray, wanted: FloatArray) -> _Divided | None:
    """A model with the constants that give it the values of a law; None if there are none."""
    scale = float(np.abs(wanted).max())
    fit = fit_constants(model.skeleton, inputs, wanted, initial=model.parameters, starts=1)

    def agrees(expression: Expression | None) -> bool:
        if expression is None:
            return False
        return bool(np.abs(evaluate(expression, inputs) - wanted).max() <= _AGREES * scale)

    if not agrees(fit.expression):
        return None
    places = template.constants_of(model.skeletons)
    own = [float(value) for value in fit.parameters[: len(template.constants)]]
    largest = float(np.abs(fit.parameters).max(initial=1.0))
    plain = {
        name: bind_exact(form.skeleton, [_tidy(float(one), largest) for one in fit.parameters[places[name]]])
        for name, form in model.forms.items()
    }
    for forms in ({name: arrange(form) for name, form in plain.items()}, plain):
        composed = template.compose(forms)
        if composed is not None and agrees(bind(composed, own)):
            return _Divided(forms, dict(zip(template.constants, own, strict=True)))
    return None


def bind_exact(skeleton: Expression, numbers: Sequence[Number]) -> Expression:
    """Put numbers in place of the parameters, exact or not."""

    def put(node: Expression) -> Expression | None:
        return numbers[node.index] if isinstance(node, Parameter) else None

    return substitute(skeleton, put)


def _tidy(value: float, largest: float) -> Number:
    """A small fraction where the value agrees with one, as constants that were set do."""
    if abs(value) <= _NOTHING * largest:
        return Number(0)
    fraction = Fraction(value).limit_denominator(_DENOMINATOR)
    if abs(value) < 1e6 and abs(float(fraction) - value) <= _SAME * abs(value):
        return Number(int(fraction) if fraction.denominator == 1 else fraction)
    return Number(value)
