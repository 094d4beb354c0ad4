"""Predictions of a stored formula: their confidence intervals, and their CSV."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.solution import Equation, Solution
from physdiffuser.data.readers.csv_safe import neutralise
from physdiffuser.errors import UsageError
from physdiffuser.expressions import Expression, Parameter, Variable, evaluate
from physdiffuser.expressions.tree import distinct_constants, substitute

_CHUNK = 100_000


def prediction_interval(equation: Equation, inputs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """95 % confidence interval of the law's value, from the covariance of its fitted constants.

    It says how well the law is known at the row (`physdiffuser.fitting.uncertainty`, "mean"), not how far a
    new measurement scatters about it.

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
    skeleton, values = distinct_constants(equation.expression)
    if not values:
        prediction = evaluate(equation.expression, inputs)
        return prediction, prediction.copy()
    covariance = equation.covariance
    if covariance is None or len(covariance) != len(values):
        raise UsageError(
            "this formula has no confidence intervals: its constants are not determined well enough by the "
            "data, the run was stopped before they were estimated, or it is a law of probabilities. "
            "Leave out --intervals."
        )
    return _limits(equation, skeleton, np.asarray(values), np.asarray(covariance), inputs)


def group_prediction_interval(
    solution: Solution, equation: Equation, inputs: FloatArray, labels: Sequence[str]
) -> tuple[FloatArray, FloatArray]:
    """The same for a law of groups: each row has the constants of its group, and their covariance.

    Parameters
    ----------
    inputs
        Shape (rows, columns and constants of the groups).
    labels
        The group of each row; empty where it is missing.

    Returns
    -------
    low, high
        Shape (rows,) each; nan where the prediction is not finite or the group is missing.

    Raises
    ------
    UsageError
        If the run holds no covariance for the formula.
    """
    named = solution.groups
    assert named is not None  # only for laws of groups
    skeleton, shared = distinct_constants(equation.expression)
    first = inputs.shape[1] - len(named.constants)
    own = [one.name for one in next(iter(equation.groups.values()), ())]
    place = {first + named.constants.index(name): len(shared) + at for at, name in enumerate(own)}
    skeleton = substitute(skeleton, lambda node: _own_parameter(node, place))
    low, high = np.full((2, inputs.shape[0]), np.nan)
    of_row = np.array(labels)
    for label in dict.fromkeys(label for label in labels if label):
        rows = np.flatnonzero(of_row == label)
        values = np.array([*shared, *(one.value for one in equation.groups.get(label, ()))])
        matrix = np.array(equation.group_covariance.get(label, ()))
        if len(matrix) != len(values):
            raise UsageError(
                "this formula has no confidence intervals: its constants are not determined well enough by "
                "the data, or the run is one of an earlier version. Leave out --intervals."
            )
        low[rows], high[rows] = _limits(equation, skeleton, values, matrix, inputs[rows])
    return low, high


def _own_parameter(node: Expression, place: Mapping[int, int]) -> Expression | None:
    """The parameter in place of the column of a group's constant."""
    return Parameter(place[node.index]) if isinstance(node, Variable) and node.index in place else None


def _limits(
    equation: Equation, skeleton: Expression, values: FloatArray, matrix: FloatArray, inputs: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Both limits for formulas with parameters, shape (rows,) each."""
    from physdiffuser.fitting.uncertainty import Uncertainty
    from physdiffuser.fitting.uncertainty import prediction_interval as interval

    errors = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    with np.errstate(all="ignore"):
        correlation = np.nan_to_num(matrix / np.outer(errors, errors))
    known = Uncertainty(
        skeleton,
        values,
        errors,
        correlation,
        equation.rmse,
        equation.degrees_of_freedom or 0,
        # Of a run by an early version the degrees of freedom are not known: the normal distribution as well.
        sigma_is_known=equation.reduced_chi_square is not None or equation.degrees_of_freedom is None,
    )
    limits = np.empty((inputs.shape[0], 2))
    for start in range(0, inputs.shape[0], _CHUNK):
        rows = slice(start, start + _CHUNK)
        with np.errstate(all="ignore"):
            limits[rows] = interval(known, inputs[rows], of="mean")
    return limits[:, 0], limits[:, 1]


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
