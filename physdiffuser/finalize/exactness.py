"""Whether a law is exact, or only follows the rows closely, as an interpolation does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.data.dataset import Dataset
from physdiffuser.expressions import Expression, evaluate
from physdiffuser.expressions.tree import fitted_constants
from physdiffuser.finalize.constants.determined import without_one
from physdiffuser.fitting import refit
from physdiffuser.fitting.accuracy import agrees, beyond_rounding
from physdiffuser.fitting.losses import relative_loss
from physdiffuser.selection.description_length import ROUNDING_LOSS, exact_nats, form_nats, residual_is_noise

# Rows on which it is tested whether rounding explains the residuals of a formula, and those of refits.
_MAX_ROWS, _REFITTED_ROWS = 2_000, 400
# From so many fitted constants on a formula may follow any smooth law. It does if it keeps this share of its
# digits without one of them: each constant of an interpolation adds some digits, each of a law nearly all.
_MANY_CONSTANTS, _KEPT_DIGITS = 3, 0.6


@dataclass(frozen=True)
class Exactness:
    """Whether a law is exact, and if not, why a formula that meets all rows is not.

    Attributes
    ----------
    exact
        Whether the formula meets every row up to rounding, and is shorter than the digits it explains.
    interpolation
        A sentence for the user if it meets every row to nine digits all the same; else empty.
    """

    exact: bool
    interpolation: str = ""


def exactness(expression: Expression, dataset: Dataset, prediction: FloatArray) -> Exactness:
    """Judge whether a formula is exact for a table.

    Three conditions must hold. Every row agrees to 1e-9 of its value, or to the rounding of the terms that
    cancel there (`physdiffuser.fitting.accuracy.agrees`). The formula, with its fitted constants written to
    the accuracy of the fit, is shorter than the digits of the target that it explains; with three of them or
    more, each one is needed for most of these digits. The residuals are rounding: smooth errors
    above it, which no change of the constants removes, are those of an interpolation.

    Parameters
    ----------
    prediction
        Shape (rows,), of the formula.
    """
    if not agrees(expression, dataset.inputs, dataset.target, prediction).all():
        return Exactness(False)
    constants = fitted_constants(expression)
    loss = max(relative_loss(prediction, dataset.target), ROUNDING_LOSS)
    # Each digit of a row is explained by the formula or by its constants, which have as many.
    digits = 0.5 * float(np.log(1.0 / loss))
    formula = form_nats(expression, dataset.inputs.shape[1]) + exact_nats(expression, digits)
    if (dataset.rows - constants) * digits <= formula:
        return Exactness(
            False,
            f"interpolation: the formula with its {_counted(constants)} takes as many digits to write down "
            f"as the {dataset.rows} rows that it meets",
        )
    some = dataset.sample(_REFITTED_ROWS) if dataset.rows > _REFITTED_ROWS else dataset
    kept = _digits_without_one(expression, some, constants)
    if kept >= _KEPT_DIGITS * digits:
        return Exactness(
            False,
            f"interpolation: of the {digits / np.log(10):.0f} digits that the formula has with its "
            f"{_counted(constants)} it has {kept / np.log(10):.0f} with one fewer, as approximations do; "
            "outside of the data it may be far off",
        )
    if dataset.rows > _MAX_ROWS:
        dataset = dataset.sample(_MAX_ROWS)
        prediction = evaluate(expression, dataset.inputs)
    left = beyond_rounding(expression, dataset.inputs, dataset.target, prediction)
    if left is None or residual_is_noise(dataset.inputs, left, dataset.weights):
        return Exactness(True)
    share = float(np.sqrt(loss))
    return Exactness(
        False,
        f"interpolation: with its {_counted(constants)} the formula follows the rows closely, but its errors "
        f"({share:.1g} of the target's deviation) exceed rounding and show a pattern; outside of the data it "
        "may be far off",
    )


def _digits_without_one(expression: Expression, dataset: Dataset, constants: int) -> float:
    """The most digits, in nats, that the formula has with one constant at 0 and the others refitted."""
    most = 0.0
    for form in without_one(expression) if constants >= _MANY_CONSTANTS else ():
        fitted = refit(form, dataset.inputs, dataset.target).expression
        loss = relative_loss(evaluate(fitted, dataset.inputs), dataset.target)
        most = max(most, -0.5 * float(np.log(max(loss, ROUNDING_LOSS))))
    return most


def _counted(constants: int) -> str:
    return "1 fitted constant" if constants == 1 else f"{constants} fitted constants"
