"""What the user should know before believing a law: each doubt as one sentence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from physdiffuser.arrays import FloatArray, IndexArray
from physdiffuser.core.solution import Equation
from physdiffuser.data.dataset import Dataset
from physdiffuser.expressions import to_text
from physdiffuser.expressions.tree import variables
from physdiffuser.report.text.digits import table_digits
from physdiffuser.selection.description_length import residual_is_noise
from physdiffuser.verification.checks import naming_rows

# Fewer rows than this cannot tell that there is nothing to be found.
ENOUGH_ROWS = 12
# Rows on which residuals are looked at.
MAX_ROWS = 2_000


def shows_pattern(dataset: Dataset, prediction: FloatArray) -> bool:
    """Whether the columns predict the residuals of a formula.

    Noise is often a share of the target, and a few large rows then carry all of the residuals: a
    pattern must show in the residuals and in their share of the prediction.
    """
    if dataset.rows > MAX_ROWS:
        some = np.linspace(0, dataset.rows - 1, MAX_ROWS).astype(np.intp)
        dataset, prediction = dataset.take(some), prediction[some]
    residual = dataset.target - prediction
    if not np.isfinite(residual).all() or residual_is_noise(dataset.inputs, residual, dataset.weights):
        return False
    if dataset.weights is not None or not (np.abs(prediction) > 0).all():
        return True
    return not residual_is_noise(dataset.inputs, residual / np.abs(prediction))


def diagnostics(
    best: Equation,
    dataset: Dataset,
    *,
    exact: bool,
    pattern: bool,
    test: IndexArray | None = None,
    rivals: Sequence[int] = (),
    left_out: Sequence[Equation] = (),
) -> tuple[str, ...]:
    """Reasons not to believe the chosen law as it stands.

    Parameters
    ----------
    best
        The chosen formula.
    exact
        Whether it holds up to rounding.
    pattern
        Whether its residuals show a pattern.
    test
        Positions of the rows of the test set; None where there is none.
    rivals
        Numbers of the rows of the Pareto table that describe the data nearly as well.
    left_out
        Simpler formulas with no larger error that are not in the table, because their form is less usual.
    """
    used = variables(best.expression)
    if not used:
        return (_nothing_found(dataset, pattern),)
    found: list[str] = []
    if pattern:
        found.append("the residuals still show a pattern: the law is not complete")
    if not exact and test is not None and _no_better_than_mean(best, dataset.take(test)):
        found.append("on the test set the law predicts no better than the mean does")
    idle = [column.name for number, column in enumerate(dataset.columns) if number not in used]
    if idle:
        found.append(f"columns not needed by the law: {', '.join(idle)}")
    loose = [
        constant.name
        for constant in best.constants
        if constant.low is not None and constant.high is not None and constant.low <= 0 <= constant.high
    ]
    if loose and not exact:
        found.append(
            f"the data do not determine the law: 0 is within the 95 % interval of {', '.join(loose)}"
        )
    unknown = [constant.name for constant in best.constants if not constant.is_set and constant.low is None]
    if unknown and not exact and best.degrees_of_freedom:
        found.append(f"the data do not determine {', '.join(unknown)}: many values fit as well")
    if rivals and not exact:
        found.append(f"{naming_rows(rivals)} the data almost as well")
    if left_out and not exact:
        other = left_out[-1]
        text = to_text(other.expression, dataset.names, table_digits(other))
        found.append(
            f"a simpler formula with no larger error was not chosen, because its form is less usual: "
            f"{text} (complexity {other.complexity}, rmse {other.rmse:.3g})"
        )
    return tuple(found)


def _nothing_found(dataset: Dataset, pattern: bool) -> str:
    name = dataset.target_column.name
    if pattern:
        return (
            f"no law was found, only the mean of {name}; yet the columns do predict it: "
            "give more time or allow more operators"
        )
    if dataset.rows < ENOUGH_ROWS:
        return f"no law was found, only the mean of {name}: {dataset.rows} rows are too few to tell"
    return f"no law was found: the columns predict {name} no better than chance"


def _no_better_than_mean(best: Equation, dataset: Dataset) -> bool:
    """Whether the error on a test set is as large as that of its mean."""
    if best.test_rmse is None:
        return False
    residual = dataset.target - np.average(dataset.target, weights=dataset.weights)
    # In units of the largest: the squares of 1e200 and of 1e-200 are no numbers.
    scale = float(np.abs(residual).max()) or 1.0
    if not np.isfinite(scale):
        return False
    spread = scale * np.sqrt(np.average(np.square(residual / scale), weights=dataset.weights))
    return best.test_rmse >= float(spread)
