"""The usual laws fitted to a problem."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from physdiffuser.core.analysis import TableAnalysis
from physdiffuser.core.candidate import Candidate
from physdiffuser.core.problem import Problem
from physdiffuser.expressions import Expression, Variable
from physdiffuser.expressions.tree import substitute
from physdiffuser.fitting import Fit, fit_constants
from physdiffuser.functions.standard_forms import further_forms, standard_forms

# Starts of a fit, and steps for each.
STARTS, ITERATIONS = 3, 25

Stop = Callable[[], bool]
"""Asked before each fit whether to leave out the rest."""


def _never() -> bool:
    return False


def fit_standard_forms(problem: Problem, stop: Stop = _never) -> list[Fit]:
    """The usual laws that the problem allows, fitted by least squares; those that are not finite left out."""
    return _fits(standard_forms(problem.columns, problem.positive, problem.operators), problem, stop)


def fit_forms_of_columns(problem: Problem, stop: Stop = _never) -> list[Fit]:
    """The usual laws of one input for each column by itself, where there are several columns."""
    if problem.columns == 1:
        return []
    skeletons = []
    for column in range(problem.columns):
        positive = frozenset({0} if column in problem.positive else ())
        place: dict[Expression, Expression] = {Variable(0): Variable(column)}
        skeletons += [substitute(one, place.get) for one in standard_forms(1, positive, problem.operators)]
    return _fits(skeletons, problem, stop)


def fit_further_forms(problem: Problem, stop: Stop = _never) -> list[Fit]:
    """The other families with one input, fitted in the same way; nothing for tables with several inputs."""
    if problem.columns != 1:
        return []
    return _fits(further_forms(problem.positive, problem.operators), problem, stop)


def _fits(skeletons: Sequence[Expression], problem: Problem, stop: Stop) -> list[Fit]:
    fits: list[Fit] = []
    for skeleton in skeletons:
        if stop() and fits:
            break
        fit = fit_constants(
            skeleton,
            problem.inputs,
            problem.target,
            weights=problem.weights,
            starts=STARTS,
            iterations=ITERATIONS,
        )
        if np.isfinite(fit.loss) and problem.admits(fit.expression):
            fits.append(fit)
    return fits


def standard_candidates(problem: Problem, analysis: TableAnalysis) -> list[Candidate]:
    """The usual laws of a table with one input, fitted; nothing for other tables."""
    if problem.columns != 1:
        return []
    return [
        Candidate(fit.expression, "enumeration", ("fitted a usual law of one input",))
        for fit in analysis.standard_fits(problem)
    ]
