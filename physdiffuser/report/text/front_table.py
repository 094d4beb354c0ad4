"""The Pareto front as a data frame."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from physdiffuser.core.solution import Equation, Solution
from physdiffuser.report.export.functions import to_numpy, to_sympy

if TYPE_CHECKING:
    import pandas as pd


def front_table(solution: Solution, shown: Equation | None) -> pd.DataFrame:
    """The Pareto front, one row a formula, simple ones first, numbered from 1.

    Parameters
    ----------
    shown
        The formula that `chosen` marks.

    Returns
    -------
    The columns that users of PySR know: `complexity`, `loss` (the square of `rmse`), `score` (by how much the
    logarithm of the loss falls for each point of complexity; Cranmer 2023, section 2), `equation` (with the
    digits of the report), `sympy_format` and `lambda_format` (a `NumpyFunction`). Besides them all that is
    known of the formula.

    References
    ----------
    M. Cranmer, "Interpretable machine learning for science with PySR and SymbolicRegression.jl",
    arXiv:2305.01582 (2023).
    """
    import pandas as pd

    front, names = solution.pareto, solution.names
    scores = improvement_scores(front)
    rows = [
        {
            "complexity": equation.complexity,
            "loss": equation.rmse**2,
            "score": score,
            "equation": str(equation),
            "sympy_format": to_sympy(equation.expression, names),
            "lambda_format": to_numpy(equation.expression, names),
            "expression": equation.text,
            "rmse": equation.rmse,
            "r2": equation.r2,
            "max_relative_error": equation.max_relative_error,
            "test_rmse": equation.test_rmse,
            "probability": equation.probability,
            "latex": equation.latex,
            "verdict": equation.verdict,
            "generator": equation.generator,
            "chosen": equation == shown,
        }
        for equation, score in zip(front, scores, strict=True)
    ]
    return pd.DataFrame(rows, index=pd.RangeIndex(1, len(front) + 1, name="row"))


def improvement_scores(front: Sequence[Equation]) -> list[float]:
    """By how much the logarithm of the loss falls for each point of complexity, against the row before.

    0 for the first row, inf for a row without any error.
    """
    scores = [0.0] * min(len(front), 1)
    for before, row in pairwise(front):
        if row.rmse <= 0.0:
            scores.append(math.inf if before.rmse > 0.0 else 0.0)
        else:
            fall = 2.0 * (math.log(before.rmse) - math.log(row.rmse)) if before.rmse > 0.0 else -math.inf
            scores.append(fall / max(row.complexity - before.complexity, 1))
    return scores
