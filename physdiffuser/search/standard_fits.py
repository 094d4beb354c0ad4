"""The usual laws fitted to a problem, once for all who ask."""

from __future__ import annotations

import numpy as np

from physdiffuser.fitting import Fit, fit_constants
from physdiffuser.fitting.standard_forms import standard_forms
from physdiffuser.search.archive import ParetoArchive
from physdiffuser.search.problem import Problem

# Starts of a fit, and steps for each.
STARTS, ITERATIONS = 4, 40


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
