"""A formula scored on all rows of a table: errors, constants with their intervals, and digits to print."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.derivation import derivation
from physdiffuser.core.problem import Problem
from physdiffuser.core.solution import Equation
from physdiffuser.data.dataset import Dataset
from physdiffuser.expressions import Expression, complexity, evaluate, to_text
from physdiffuser.expressions.printing.latex import to_latex
from physdiffuser.expressions.tree import fitted_constants
from physdiffuser.finalize.constants.statements import constants_of
from physdiffuser.finalize.evidence.chi_square import reduced_chi_square
from physdiffuser.fitting.accuracy import max_relative_error
from physdiffuser.report.text.digits import shown_digits
from physdiffuser.report.text.printed import with_printed_digits
from physdiffuser.search.sampling import Split

if TYPE_CHECKING:
    from physdiffuser.finalize.finalize import Law


ROWS_PER_PIECE = 100_000


def equation(
    law: Law, dataset: Dataset, split: Split, names: tuple[str, ...], problem: Problem
) -> tuple[Equation, FloatArray]:
    """A row of the Pareto table, scored on every row of the table, and its predictions."""
    prediction = predict(law.final, dataset.inputs)
    residual = dataset.target - prediction
    weights = dataset.weights
    test_weights = None if weights is None else weights[split.test]
    error, spread = root_mean_square(residual, weights), _deviation(dataset)
    with np.errstate(all="ignore"):
        share = error / spread if spread > 0 else float("nan")
    estimates, covariance, freedom = constants_of(law.final, problem)
    reduced = None
    if problem.sigma is not None and problem.weights is not None:
        freedom = problem.rows - fitted_constants(law.final)
        errors = problem.sigma / np.sqrt(problem.weights)
        reduced = reduced_chi_square(residual[split.fit], errors, freedom)
    made = Equation(
        expression=law.final,
        text=to_text(law.final, names),
        latex=to_latex(law.final, names),
        complexity=complexity(law.final),
        rmse=error,
        r2=1.0 - share * share,
        max_relative_error=max_relative_error(dataset.target, prediction),
        test_rmse=(root_mean_square(residual[split.test], test_weights) if split.test.size else None),
        constants=estimates,
        generator=law.entry.candidate.generator,
        covariance=covariance,
        degrees_of_freedom=freedom,
        reduced_chi_square=reduced,
        description_length=law.length if np.isfinite(law.length) else None,
        names=names,
    )

    def error_of(formula: Expression, step: int) -> float:
        some = dataset.target[::step] - predict(formula, dataset.inputs[::step])
        return root_mean_square(some, None if weights is None else weights[::step])

    made = with_printed_digits(made, names, error_of, dataset.rows)
    steps = derivation(
        law.entry.candidate.derivation, law.fitted, law.changes, law.final, problem, shown_digits(made)
    )
    return replace(made, derivation=steps), prediction


def root_mean_square(values: FloatArray, weights: FloatArray | None = None) -> float:
    """Weighted root mean square, safe for very large and very small numbers; nan or inf as they come."""
    scale = float(np.abs(values).max(initial=0.0))
    if scale == 0.0 or not np.isfinite(scale):
        return scale
    return scale * float(np.sqrt(np.average(np.square(values / scale), weights=weights)))


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
