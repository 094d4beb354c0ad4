"""A formula scored on all rows of a table: errors, constants with their intervals, and digits to print."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from physdiffuser.arrays import FloatArray, IndexArray
from physdiffuser.core.derivation import derivation
from physdiffuser.core.problem import Problem
from physdiffuser.core.solution import Equation, FitPoints, sample_fit_points
from physdiffuser.data.dataset import Dataset
from physdiffuser.expressions import Expression, complexity, evaluate, to_text
from physdiffuser.expressions.printing.latex import to_latex
from physdiffuser.expressions.tree import fitted_constants
from physdiffuser.finalize.constants.statements import constants_of
from physdiffuser.finalize.evidence.chi_square import reduced_chi_square
from physdiffuser.fitting.accuracy import max_relative_error
from physdiffuser.fitting.losses import root_mean_square
from physdiffuser.report.text.digits import shown_digits
from physdiffuser.report.text.printed import with_printed_digits
from physdiffuser.search.sampling import Split

if TYPE_CHECKING:
    from physdiffuser.finalize.finalize import Law
    from physdiffuser.verification.verify import Verification


ROWS_PER_PIECE = 100_000


def equation(law: Law, dataset: Dataset, split: Split, problem: Problem) -> tuple[Equation, FloatArray]:
    """A row of the Pareto table, scored on every row of the table, and its predictions."""
    estimates, covariance, freedom = constants_of(law.final, problem)
    made, prediction = measured(
        law.final,
        dataset,
        split.test,
        constants=estimates,
        generator=law.entry.candidate.generator,
        covariance=covariance,
        degrees_of_freedom=freedom,
        description_length=law.length if np.isfinite(law.length) else None,
    )
    if problem.sigma is not None and problem.weights is not None:
        freedom = problem.rows - fitted_constants(law.final)
        errors = problem.sigma / np.sqrt(problem.weights)
        residual = (dataset.target - prediction)[split.fit]
        reduced = reduced_chi_square(residual, errors, freedom)
        made = replace(made, degrees_of_freedom=freedom, reduced_chi_square=reduced)
    made = with_digits(made, dataset)
    steps = derivation(
        law.entry.candidate.derivation, law.fitted, law.changes, law.final, problem, shown_digits(made)
    )
    return replace(made, derivation=steps), prediction


def measured(
    expression: Expression, dataset: Dataset, test: IndexArray | None = None, **about: Any
) -> tuple[Equation, FloatArray]:
    """A formula with its errors on all rows of a table, and its predictions.

    Parameters
    ----------
    **about
        Other fields of the equation.
    """
    names, weights = dataset.names, dataset.weights
    prediction = predict(expression, dataset.inputs)
    residual = dataset.target - prediction
    error, spread = root_mean_square(residual, weights), _deviation(dataset)
    with np.errstate(all="ignore"):
        share = error / spread if spread > 0 else float("nan")
    test_error = None
    if test is not None and test.size:
        test_error = root_mean_square(residual[test], None if weights is None else weights[test])
    made = Equation(
        expression=expression,
        text=to_text(expression, names),
        latex=to_latex(expression, names),
        complexity=complexity(expression),
        rmse=error,
        r2=1.0 - share * share,
        max_relative_error=max_relative_error(dataset.target, prediction),
        test_rmse=test_error,
        names=names,
        **about,
    )
    return made, prediction


def with_digits(made: Equation, dataset: Dataset) -> Equation:
    """The equation with the digits with which its printed text has its error on the table."""
    return with_printed_digits(
        made, dataset.names, lambda formula, step: rms_error(formula, dataset, step), dataset.rows
    )


def with_verdict(made: Equation, checked: Verification) -> Equation:
    """The equation with the outcome of its checks."""
    return replace(
        made,
        verdict=checked.verdict,
        verdict_reason=checked.reason,
        verification=checked.sentences,
        check_states=checked.states,
    )


def points_of_fit(
    dataset: Dataset, prediction: FloatArray, test: IndexArray, codes: IndexArray | None = None
) -> FitPoints:
    """Rows for the plots of a law, from the positions of the test set and the group of each row, if any."""
    is_test = np.zeros(dataset.rows, bool)
    is_test[test] = True
    return sample_fit_points(dataset.target, prediction, is_test, inputs=dataset.inputs, codes=codes)


def rms_error(expression: Expression, dataset: Dataset, step: int = 1) -> float:
    """Weighted root mean square error of a formula on every n-th row of a table."""
    residual = dataset.target[::step] - predict(expression, dataset.inputs[::step])
    return root_mean_square(residual, None if dataset.weights is None else dataset.weights[::step])


def _deviation(dataset: Dataset) -> float:
    scale = float(np.abs(dataset.target).max()) or 1.0
    unit = dataset.target / scale
    return scale * root_mean_square(unit - np.average(unit, weights=dataset.weights), dataset.weights)


def predict(expression: Expression, inputs: FloatArray) -> FloatArray:
    """Values on all rows, in pieces, so that a large table needs no further copies of itself."""
    if len(inputs) <= ROWS_PER_PIECE:
        return evaluate(expression, inputs)
    result = np.empty(len(inputs))
    for start in range(0, len(inputs), ROWS_PER_PIECE):
        result[start : start + ROWS_PER_PIECE] = evaluate(expression, inputs[start : start + ROWS_PER_PIECE])
    return result
