"""A template under a loss: formulas of the template from its search, constants and choice by the loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from physdiffuser.core.solution import Solution
from physdiffuser.data.dataset import Dataset
from physdiffuser.expressions import Expression
from physdiffuser.finalize.guess_outcomes import guess_outcomes
from physdiffuser.losses.likelihoods import Loss
from physdiffuser.losses.solving import solve_with_loss
from physdiffuser.options import SolveOptions
from physdiffuser.search.run_control import RunControl
from physdiffuser.templates.answer import with_parts
from physdiffuser.templates.joint_fit import Model
from physdiffuser.templates.solving import (
    TemplateSearch,
    check_magnitudes,
    complete_guesses,
    starting_formulas,
    with_operators_of,
)
from physdiffuser.templates.template import Template


def solve_template_with_loss(
    dataset: Dataset, template: Template, loss: Loss, options: SolveOptions, control: RunControl
) -> Solution:
    """Find the unknown functions of a template, with the law of least loss.

    Raises
    ------
    UsageError, DataError
        As `solve_with_loss` and `solve_template` do.
    """
    check_magnitudes(dataset)
    guesses, resumed, warnings = starting_formulas(dataset, template, options)
    plain = options.changed(initial=(), resumed=(), proposed=())
    models: list[Model] = []
    statements: dict[str, None] = {}

    def search(
        table: Dataset, known: Sequence[str], share: float, own: SolveOptions, part: RunControl
    ) -> Sequence[Expression]:
        # As the ordinary search finds out by itself, errors may have heavy tails.
        tails = "robust" if own.loss == "auto" else own.loss
        own = own.changed(operators=plain.operators, loss=tails, **own.shares(share))
        searched = TemplateSearch(table, template, own, part, [*guesses, *resumed])
        found = searched.run()
        models.extend(found)
        statements.update(dict.fromkeys(searched.statements()))
        return [model.expression for model in found]

    solution = solve_with_loss(dataset, loss, (), with_operators_of(template, plain), control, search)
    models.sort(key=lambda model: model.length)
    solution = replace(solution, warnings=(*solution.warnings, *warnings))
    solution = with_parts(solution, template, models, dataset, tuple(statements))
    whole = complete_guesses(guesses, models, template, dataset, options.seed)
    return replace(solution, guesses=guess_outcomes(whole, solution, dataset))
