"""The usual laws fitted to a problem, once for all who ask."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from physdiffuser.core.candidate import Candidate
from physdiffuser.core.problem import Problem
from physdiffuser.expressions import complexity, evaluate
from physdiffuser.fitting import Fit, fit_constants, refit
from physdiffuser.functions.standard_forms import standard_forms
from physdiffuser.search.archive import Entry, ParetoArchive, relative_loss
from physdiffuser.selection.description_length import fitted_constants

# Starts of a fit, and steps for each.
STARTS, ITERATIONS = 3, 25


def standard_fits(problem: Problem, archive: ParetoArchive) -> list[Fit]:
    """The usual laws that the problem allows, fitted by least squares; those that are not finite left out.

    Parameters
    ----------
    problem
        The rows.
    archive
        Keeps the fits for the next call with the same rows.
    """
    known = archive.notes.get(__name__)
    if known is not None and known[0] is problem.target:
        fits: list[Fit] = known[1]
        return fits
    fits = []
    for skeleton in standard_forms(problem.columns, problem.positive, problem.operators):
        fit = fit_constants(
            skeleton,
            problem.inputs,
            problem.target,
            weights=problem.weights,
            starts=STARTS,
            iterations=ITERATIONS,
        )
        if np.isfinite(fit.loss) and problem.allows(fit.expression):
            fits.append(fit)
    archive.notes[__name__] = (problem.target, fits)
    return fits


def standard_candidates(problem: Problem, archive: ParetoArchive) -> list[Candidate]:
    """The usual laws of a table with one input, fitted; nothing for other tables."""
    if problem.columns != 1:
        return []
    return [
        Candidate(fit.expression, "enumeration", ("fitted a usual law of one input",))
        for fit in standard_fits(problem, archive)
    ]


def standard_entries(archive: ParetoArchive) -> list[Entry]:
    """The usual laws of a table with one input that belong into its Pareto table.

    These are the ones that no simpler formula of the archive and no other usual law as simple fits as well.
    The archive itself keeps one formula of a complexity and number of constants.
    """
    rows = archive.problem.all_rows
    entries = []
    for candidate in standard_candidates(archive.problem, archive):
        expression = candidate.expression
        if rows is not archive.problem:
            expression = refit(expression, rows.inputs, rows.target, weights=rows.weights).expression
            candidate = replace(candidate, expression=expression)
        loss = relative_loss(rows, evaluate(expression, rows.inputs))
        nats = archive.yardstick.formula_nats(expression)
        cost = complexity(expression)
        if np.isfinite(loss) and cost <= rows.max_complexity:
            entries.append(Entry(candidate, cost, loss, nats, fitted_constants(expression), loss))
    front = archive.front()
    return [
        entry
        for entry in entries
        if not any(other.loss <= entry.loss and other.complexity < entry.complexity for other in front)
        and not any(
            other is not entry and other.loss <= entry.loss and other.complexity <= entry.complexity
            for other in entries
        )
    ]
