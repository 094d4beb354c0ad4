"""Final laws of tables whose inputs have errors: each fitted with its own effective variances."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from physdiffuser.core.problem import Problem
from physdiffuser.data.checks import mean_error, weights_of
from physdiffuser.data.dataset import Dataset
from physdiffuser.finalize.finalize import Law
from physdiffuser.fitting.effective_variance import effective_fit
from physdiffuser.search.sampling import Split


def with_input_errors(law: Law, dataset: Dataset, split: Split, problem: Problem) -> tuple[Law, Problem]:
    """The law with constants fitted with regard to the errors of the inputs, and the problem fitted to.

    Parameters
    ----------
    law
        Fitted with the weights of the law that the search preferred.
    dataset
        The table.
    split
        Its rows.
    problem
        On the rows of the fit.
    """
    if dataset.input_errors is None:
        return law, problem
    stated = dataset.stated_errors
    fit = effective_fit(
        law.final,
        problem.inputs,
        problem.target,
        dataset.input_errors[split.fit],
        None if stated is None else stated[split.fit],
    )
    if fit is None:
        return law, problem
    errors = np.sqrt(fit.variance)
    sigma = None if stated is None else mean_error(errors)
    return (
        replace(law, fitted=fit.expression, final=fit.expression),
        replace(problem, weights=weights_of(errors), sigma=sigma),
    )
