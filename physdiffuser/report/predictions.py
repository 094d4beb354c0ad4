"""Predictions of a stored formula: their confidence intervals, and their CSV."""

from __future__ import annotations

import io
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from physdiffuser.data.csv_safe import neutralise
from physdiffuser.errors import UsageError
from physdiffuser.expressions import evaluate, value_and_jacobian
from physdiffuser.expressions.tree import free_constants
from physdiffuser.report.solution import Equation

FloatArray = npt.NDArray[np.float64]

_NORMAL_QUANTILE = 1.959963984540054
_CHUNK = 100_000


def prediction_interval(equation: Equation, inputs: FloatArray) -> tuple[FloatArray, FloatArray]:
    r"""95 % confidence interval of the law's value, from the covariance of its fitted constants.

    With :math:`J` the derivatives of the prediction with respect to the constants and :math:`C` their
    covariance, the half width is :math:`t\,\sqrt{J C J^T}`, :math:`t` the 97.5 % quantile of Student's
    distribution (Bates and Watts, Nonlinear Regression Analysis and Its Applications, 1988, section 2.3).
    It says how well the law is known at the row, not how far a new measurement scatters.

    Parameters
    ----------
    equation
        With `covariance`, unless it has no fitted constants: then both limits are the prediction.
    inputs
        Shape (rows, columns).

    Returns
    -------
    low, high
        Shape (rows,) each; nan where the prediction is not finite.

    Raises
    ------
    UsageError
        If the run holds no covariance for the formula.
    """
    skeleton, values = free_constants(equation.expression)
    if not values:
        prediction = evaluate(equation.expression, inputs)
        return prediction, prediction.copy()
    covariance = equation.covariance
    if covariance is None or len(covariance) != len(values):
        raise UsageError(
            "this formula has no confidence intervals: its constants are not determined well enough by the "
            "data, or the run was stopped before they were estimated. Leave out --intervals."
        )
    matrix = np.asarray(covariance)
    quantile = _student_quantile(equation.degrees_of_freedom)
    low, high = np.empty(inputs.shape[0]), np.empty(inputs.shape[0])
    for start in range(0, inputs.shape[0], _CHUNK):
        rows = slice(start, start + _CHUNK)
        value, jacobian = value_and_jacobian(skeleton, inputs[rows], np.asarray(values))
        with np.errstate(all="ignore"):
            variance = np.einsum("pr,pq,qr->r", jacobian, matrix, jacobian, optimize=True)
            half = quantile * np.sqrt(np.maximum(variance, 0.0))
            low[rows], high[rows] = value - half, value + half
    return low, high


def _student_quantile(degrees_of_freedom: int | None) -> float:
    if degrees_of_freedom is None or degrees_of_freedom < 1:
        return _NORMAL_QUANTILE
    from scipy.special import stdtrit

    return float(stdtrit(degrees_of_freedom, 0.975))


def prediction_csv(columns: Mapping[str, FloatArray]) -> str:
    """Columns of numbers as CSV, each number with all digits it needs to be read back.

    Parameters
    ----------
    columns
        Arrays of shape (rows,), by name; a name that a spreadsheet would run is made harmless.
    """
    import csv

    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerow([neutralise(name) for name in columns])
    arrays = list(columns.values())
    for start in range(0, arrays[0].size, _CHUNK):
        texts = [[repr(value) for value in array[start : start + _CHUNK].tolist()] for array in arrays]
        stream.write("\n".join(map(",".join, zip(*texts, strict=True))))
        stream.write("\n")
    return stream.getvalue()
