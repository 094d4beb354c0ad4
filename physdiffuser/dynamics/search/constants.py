"""Constants of a system set to exact values where the trajectories cannot tell the difference.

The rule is that of formulas (`physdiffuser.fitting.exact_constants`). It sees rates of change along the
trajectories, computed from the equation itself, with the noise at which their fit would give the constants
the errors that the fit to the trajectories gives. The exact system is then fitted to the trajectories again
and kept if these are described no worse.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.derivation import readable
from physdiffuser.dynamics.schedule import Stop, never
from physdiffuser.dynamics.search.selection import POLICY as SELECTION
from physdiffuser.dynamics.search.selection import Fitted, Selector, mean_square
from physdiffuser.expressions import Expression, Number, complexity, evaluate, value_and_jacobian
from physdiffuser.expressions.simplification.textbook.arrange import arrange
from physdiffuser.expressions.tree import bind, free_constants, number_expression, substitute
from physdiffuser.fitting import snap

SHORT_DIGITS = 5
"""Digits of a decimal that is taken for exact where the trajectories have no noise."""
SHORT_ERROR = 1e-8
"""Relative error up to which a constant without noise agrees with a decimal of few digits."""
WRITTEN, MOST = 10_000, 10**6
"""Denominators that divide the first are written as decimals; larger numbers stay fitted."""
SLACK = 2.0
"""Nats by which the trajectories may be described worse, and for each constant made exact."""


def parameter_errors(selector: Selector, fitted: Fitted) -> list[FloatArray]:
    """Standard errors of the constants of each equation."""
    scale = math.sqrt(max(mean_square(fitted), SELECTION.min_square if selector.prepared.exact else 0.0))
    with np.errstate(all="ignore"):
        errors = scale * np.sqrt(np.diag(fitted.fit.covariance))
    counts = [part.size for part in fitted.parts()]
    return list(np.split(errors, np.cumsum(counts)[:-1]))


def with_exact_constants(selector: Selector, fitted: Fitted) -> Fitted:
    """The system with special values for its constants where the data support them."""
    errors = parameter_errors(selector, fitted)
    nodes = selector.prepared.weak.nodes
    snapped = [
        _snapped(skeleton, values, error, nodes)
        for skeleton, values, error in zip(fitted.skeletons, fitted.parts(), errors, strict=True)
    ]
    everything = None if selector.stop() else _refitted(selector, fitted, snapped)
    if everything is not None:
        return everything
    best = _refitted(selector, fitted, fitted.expressions, never) or fitted
    for state, equation in enumerate(snapped):
        current = list(best.expressions)
        if equation == current[state] or selector.stop():
            continue
        trial = _refitted(selector, best, [*current[:state], equation, *current[state + 1 :]])
        best = best if trial is None else trial
    return best


def _refitted(
    selector: Selector, fitted: Fitted, equations: Sequence[Expression], stop: Stop | None = None
) -> Fitted | None:
    """The system of these equations fitted again; None where it describes the trajectories worse."""
    if selector.prepared.exact:
        equations = [_with_exact_decimals(equation) for equation in equations]
    pairs = [free_constants(tidy(equation, selector.prepared.weak.nodes)) for equation in equations]
    trial = selector.fit(
        [skeleton for skeleton, _ in pairs],
        [np.array(values) for _, values in pairs],
        fitted.intervals,
        fitted.substeps,
        fitted.fit.initial,
        stop=stop,
    )
    fewer = fitted.fit.parameters.size - trial.fit.parameters.size
    allowed = selector.left(fitted.fit) + SLACK * (1 + max(fewer, 0))
    return trial if selector.left(trial.fit) <= allowed else None


def _with_exact_decimals(expression: Expression) -> Expression:
    """The formula with fractions in place of decimals of few digits, which no fit gives by chance."""

    def exact(node: Expression) -> Expression | None:
        if not isinstance(node, Number) or node.exact or not is_short(float(node.value), SHORT_ERROR):
            return None
        value = Fraction(repr(shortened(float(node.value))))
        return number_expression(value) if WRITTEN % value.denominator == 0 and abs(value) < MOST else None

    return substitute(expression, exact)


def is_short(value: float, tolerance: float) -> bool:
    """Whether a number has few digits, up to a relative tolerance."""
    return abs(shortened(value) - value) <= tolerance * abs(value)


def shortened(value: float) -> float:
    """The number with few digits."""
    return float(f"{value:.{SHORT_DIGITS - 1}e}")


def _snapped(skeleton: Expression, values: FloatArray, errors: FloatArray, nodes: FloatArray) -> Expression:
    """One equation with exact constants."""
    expression = bind(skeleton, list(values))
    if not values.size:
        return expression
    with np.errstate(all="ignore"):
        target, slopes = value_and_jacobian(skeleton, nodes, values)
        usable = np.isfinite(target) & np.isfinite(slopes).all(axis=0)
        alone = np.sqrt(np.diag(np.linalg.pinv(slopes[:, usable] @ slopes[:, usable].T, hermitian=True)))
        ratio = errors / alone
    ratio = ratio[np.isfinite(ratio) & (ratio > 0)]
    size = float(np.sqrt(np.mean(target[usable] ** 2))) if usable.any() else 0.0
    if not ratio.size or not size:
        return expression
    noise = float(np.exp(np.mean(np.log(ratio)))) / size
    return snap(expression, nodes[usable], target[usable], noise=max(noise, 1e-13)).expression


def tidy(expression: Expression, nodes: FloatArray) -> Expression:
    """Arranged as one would write it, if that is no longer and has the same values."""
    positive = frozenset(int(index) for index in np.flatnonzero((nodes > 0).all(axis=0)))
    arranged = readable(arrange(expression, positive=positive))
    if complexity(arranged) > complexity(expression):
        arranged = readable(expression)
    before, after = evaluate(expression, nodes), evaluate(arranged, nodes)
    size = float(np.nanmax(np.abs(before), initial=0.0))
    both = np.isfinite(before)
    same = bool((np.abs(before - after)[both] <= 1e-8 * size).all()) if both.any() else False
    fewer = len(free_constants(arranged)[1]) <= len(free_constants(expression)[1])
    return arranged if same and fewer else readable(expression)
