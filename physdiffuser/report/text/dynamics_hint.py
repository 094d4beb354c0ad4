"""A hint that a table is a trajectory, for which `dynamics` finds differential equations."""

from __future__ import annotations

import re

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.solution import Solution
from physdiffuser.io.display import visible

FEWEST_ROWS = 12
SMOOTH = 0.5
"""Largest ratio of the mean squared step to the variance (2 for independent values) of a state."""
STRUCTURED = 1.2
"""Residuals with a smaller ratio still depend on the time: no formula of it was found."""
_TIME = re.compile(
    r"(t|time|times|clock|elapsed|date|years?|months?|weeks?|days?|hours?|hrs?|minutes?|mins?|seconds?|secs?)"
    r"([\s_(\[].*)?",
    re.IGNORECASE,
)


def dynamics_hint(solution: Solution) -> str:
    """What to say of a table whose only input looks like the time; empty for all others.

    The rows must be in order of the time, the target must change little from row to row, and what the best
    formula leaves must still do so: a formula of the time that explains the target is the better answer.
    """
    points, best = solution.fit_points, solution.best
    if len(solution.columns) != 1 or best is None or best.verdict == "verified":
        return ""
    if points is None or points.inputs is None or points.rows != points.truth.size:
        return ""
    time = points.inputs[:, 0]
    increasing = bool((np.diff(time) > 0).all())
    if time.size < FEWEST_ROWS or not increasing or not _TIME.fullmatch(solution.columns[0].strip()):
        return ""
    left = points.truth - points.prediction
    if not np.isfinite(left).all() or _ratio(points.truth) > SMOOTH or _ratio(left) > STRUCTURED:
        return ""
    name, target = visible(solution.columns[0], 60), visible(solution.target, 60)
    return (
        f"'{name}' looks like the time and '{target}' like a state that changes with it; "
        "'physdiffuser dynamics' finds differential equations from such tables"
    )


def _ratio(values: FloatArray) -> float:
    """Mean squared difference of neighbours over the variance (von Neumann 1941)."""
    variance = float(values.var())
    return float(np.mean(np.diff(values) ** 2)) / variance if variance > 0 else np.inf
