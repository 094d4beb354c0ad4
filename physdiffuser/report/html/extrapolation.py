"""Where the law has not been tested, and what it does there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from physdiffuser.arrays import FloatArray, spread_places
from physdiffuser.core.solution import Equation, Solution
from physdiffuser.errors import UsageError
from physdiffuser.expressions import evaluate
from physdiffuser.expressions.tree import variables
from physdiffuser.io.display import visible
from physdiffuser.report.predictions import prediction_interval
from physdiffuser.report.text.digits import short

# Rank correlation from which two columns count as varied together.
_TOGETHER = 0.9
# A hole in a column counts from this share of its range.
_HOLE = 0.3
_FEW_VALUES = 4
_EXPLODES = 100.0
# A band so many times as wide is worth a sentence.
_LESS_KNOWN = 3.0
_GRID = 65
_SOME_ROWS = 20
_MOST_ROWS = 1_000


def extrapolation_warnings(solution: Solution, best: Equation) -> list[str]:
    """One sentence for each place where the table does not carry the law; empty without the rows."""
    points = solution.fit_points
    used = sorted(variables(best.expression))
    if points is None or points.inputs is None or not used:
        return []
    inputs = points.inputs[spread_places(len(points.inputs), _MOST_ROWS)]
    names = [visible(name, 60) for name in solution.columns]
    with np.errstate(all="ignore"):
        return [
            *_beyond(best, inputs, used, names),
            *_inside(best, inputs, used),
            *_varied_together(inputs, used, names),
            *_coverage(inputs, used, names),
            *_uncertainty(best, inputs, used, names),
        ]


def _beyond(best: Equation, inputs: FloatArray, used: Sequence[int], names: Sequence[str]) -> list[str]:
    """Whether the law stops having values, or explodes, within half a range outside of the table."""
    largest = np.abs(evaluate(best.expression, inputs))
    limit = _EXPLODES * float(np.nanmax(largest)) if np.isfinite(largest).any() else np.inf
    middle = np.concatenate([np.median(inputs, axis=0)[None], inputs[spread_places(len(inputs), _SOME_ROWS)]])
    found = []
    for column in used:
        low, high = float(inputs[:, column].min()), float(inputs[:, column].max())
        reach = (high - low) / 2
        if not 0 < reach < np.inf:
            continue
        # A column that is never negative may not be able to be; at 0 itself half of all laws end.
        down = max(low - reach, low / 50) if low >= 0 else low - reach
        for start, end, side in ((low, down, "Below"), (high, high + reach, "Above")):
            grid = np.linspace(start, end, _GRID)[1:]
            table = np.repeat(middle, grid.size, axis=0)
            table[:, column] = np.tile(grid, len(middle))
            value = evaluate(best.expression, table).reshape(len(middle), grid.size)
            lost = ~np.isfinite(value).all(axis=0)
            huge = (np.abs(value) > limit).any(axis=0)
            if lost.any():
                bad, what = lost, "has no finite value"
            elif huge.any():
                bad, what = huge, "passes a hundred times its largest value"
            else:
                continue
            where = short(float(grid[int(np.argmax(bad))]))
            some = ", for some values of the other columns" if len(used) > 1 else ""
            found.append(
                f"{side} the table's {names[column]} ({short(low)} to {short(high)}) the law {what} "
                f"from about {where} on{some}."
            )
    return found


def _inside(best: Equation, inputs: FloatArray, used: Sequence[int]) -> list[str]:
    """Values of the columns that all occur, in combinations that do not."""
    if len(used) < 2:
        return []
    rng = np.random.default_rng(0)
    mixed = np.stack([rng.permutation(column) for column in inputs.T], axis=1)
    own = np.isfinite(evaluate(best.expression, inputs)).mean()
    lost = 1.0 - float(np.isfinite(evaluate(best.expression, mixed)).mean())
    if own < 1 or lost == 0:
        return []
    return [
        f"Of combinations of values that each occur in the table, but not together, {short(100 * lost, 2)} % "
        "give no finite value."
    ]


def _varied_together(inputs: FloatArray, used: Sequence[int], names: Sequence[str]) -> list[str]:
    if len(used) < 2 or len(inputs) < 5:
        return []
    ranks = np.argsort(np.argsort(inputs[:, list(used)], axis=0, kind="stable"), axis=0, kind="stable")
    correlation = np.atleast_2d(np.corrcoef(ranks.T))
    return [
        f"{names[used[first]]} and {names[used[second]]} were varied together (rank correlation "
        f"{correlation[first, second]:.2f}): what each does alone is not tested."
        for first in range(len(used))
        for second in range(first + 1, len(used))
        if abs(correlation[first, second]) > _TOGETHER
    ]


def _coverage(inputs: FloatArray, used: Sequence[int], names: Sequence[str]) -> list[str]:
    found = []
    for column in used:
        values = np.unique(inputs[:, column])
        if values.size <= _FEW_VALUES:
            found.append(
                f"{names[column]} takes only {values.size} values in the table: how the law runs between "
                "them is not tested."
            )
            continue
        scale = np.log(values) if values[0] > 0 and values[-1] / values[0] > 100 else values
        gaps = np.diff(scale)
        widest = int(np.argmax(gaps))
        if gaps[widest] > _HOLE * (scale[-1] - scale[0]):
            found.append(
                f"No row has {names[column]} between {short(float(values[widest]))} and "
                f"{short(float(values[widest + 1]))}: the law is interpolated there."
            )
    return found


def _uncertainty(best: Equation, inputs: FloatArray, used: Sequence[int], names: Sequence[str]) -> list[str]:
    """How much less is known one range beyond the table, from the covariance of the constants."""
    middle = np.median(inputs, axis=0)
    found = []
    for column in used:
        low, high = float(inputs[:, column].min()), float(inputs[:, column].max())
        table = np.tile(middle, (2, 1))
        table[:, column] = (high, 2 * high - low)
        try:
            below, above = prediction_interval(best, table)
        except UsageError:
            return []
        value = evaluate(best.expression, table)
        half = (above - below) / 2
        known = np.isfinite(half).all() and np.isfinite(value).all() and half[0] > 0
        if not known or half[1] < _LESS_KNOWN * half[0]:
            continue
        found.append(
            f"At the table's largest {names[column]} ({short(high)}) the law's 95 % band is "
            f"±{short(half[0], 2)} about {short(value[0])}; one range further ({short(2 * high - low)}) it "
            f"is ±{short(half[1], 2)} about {short(value[1])}."
        )
    return found
