"""How much the target moves with each column, by the law."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from physdiffuser.arrays import FloatArray, spread_places
from physdiffuser.expressions import Expression, evaluate
from physdiffuser.expressions.tree import variables

_MOST_ROWS = 2_000
_SHUFFLES = 8
_STEP = 1e-4


@dataclass(frozen=True)
class Sensitivity:
    """The law's dependence on one column.

    Attributes
    ----------
    column
        Position.
    used
        Whether it occurs in the law; the rest is None or 0 if not.
    elasticity
        Percent by which the target changes when the column grows by one percent: median over the rows,
        and the range of the middle 90 % of them. None where the law or the column changes its sign.
    swing
        Values of the law at the column's 10th and 90th percentile, the others at their medians.
    share
        Share of the law's variation over the table that needs this column: the total effect, as
        estimated by Jansen (Computer Physics Communications 117, 35, 1999) with the columns taken as
        independent. Shares add up to more than one where columns act together.
    """

    column: int
    used: bool
    elasticity: tuple[float, float, float] | None = None
    swing: tuple[float, float] | None = None
    share: float | None = None


def sensitivities(expression: Expression, inputs: FloatArray) -> list[Sensitivity]:
    """One for each column, in order.

    Parameters
    ----------
    inputs
        Shape (rows, columns): rows of the table.
    """
    used = variables(expression)
    if len(inputs) > _MOST_ROWS:
        inputs = inputs[spread_places(len(inputs), _MOST_ROWS)]
    with np.errstate(all="ignore"):
        value = evaluate(expression, inputs)
        return [
            Sensitivity(
                column,
                True,
                _elasticity(expression, inputs, value, column),
                _swing(expression, inputs, column),
                1.0 if len(used) == 1 else _share(expression, inputs, value, column),
            )
            if column in used
            else Sensitivity(column, False)
            for column in range(inputs.shape[1])
        ]


def _elasticity(
    expression: Expression, inputs: FloatArray, value: FloatArray, column: int
) -> tuple[float, float, float] | None:
    finite = value[np.isfinite(value)]
    values = inputs[:, column]
    if not finite.size or finite.min() <= 0 <= finite.max() or values.min() <= 0 <= values.max():
        return None
    above, below = inputs.copy(), inputs.copy()
    above[:, column] *= 1 + _STEP
    below[:, column] *= 1 - _STEP
    slope = (evaluate(expression, above) - evaluate(expression, below)) / (2 * _STEP * value)
    slope = slope[np.isfinite(slope)]
    if not slope.size:
        return None
    low, middle, high = np.percentile(slope, [5, 50, 95])
    return float(low), float(middle), float(high)


def _swing(expression: Expression, inputs: FloatArray, column: int) -> tuple[float, float] | None:
    ends = np.tile(np.median(inputs, axis=0), (2, 1))
    ends[:, column] = np.percentile(inputs[:, column], [10, 90])
    low, high = evaluate(expression, ends)
    return (float(low), float(high)) if np.isfinite(low) and np.isfinite(high) else None


def _share(expression: Expression, inputs: FloatArray, value: FloatArray, column: int) -> float | None:
    finite = np.isfinite(value)
    size = np.abs(value[finite]).max(initial=0.0)
    if not size > 0:
        return None
    spread = float(np.var(value[finite] / size))
    if not spread > 0 or inputs.shape[0] < 3:
        return None
    rng = np.random.default_rng(0)
    shuffled = inputs.copy()
    squares = []
    for _ in range(_SHUFFLES):
        shuffled[:, column] = rng.permutation(inputs[:, column])
        change = (evaluate(expression, shuffled) - value) / size
        squares.append(np.square(change[np.isfinite(change)]))
    together = np.concatenate(squares)
    return float(min(together.mean() / (2 * spread), 1.0)) if together.size else None
