"""Functions of a law that the rows cannot tell from a straight line.

`L0*exp(a*(T - T0))` and `L0*(1 + a*(T - T0))` are two laws. Where `a*(T - T0)` stays below a hundredth, no
row says which of them holds.
"""

from __future__ import annotations

import math

import numpy as np

from physdiffuser.core.formula_fits import loss_of, refitted
from physdiffuser.core.problem import Problem
from physdiffuser.expressions import Apply, Expression, Number, evaluate
from physdiffuser.expressions.tree import add, mul, sub, substitute, variables, walk

_FUNCTIONS = frozenset(("exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan"))
# The rows must prefer the function by so many nats: odds of 20 to 1.
MIN_NATS = 3.0
_STEP = 1e-4


@np.errstate(all="ignore")
def unresolved_function(expression: Expression, problem: Problem) -> str | None:
    """The name of a function in whose place a straight line fits as well; None if there is none.

    Parameters
    ----------
    expression
        The law.
    problem
        The rows of the fit. The line and the other fitted constants are fitted again.
    """
    own = loss_of(expression, problem)
    for node in dict.fromkeys(walk(expression)):
        if not isinstance(node, Apply) or node.operator not in _FUNCTIONS or not variables(node):
            continue
        line = _line(node, problem)
        if line is None:
            continue

        def in_its_place(part: Expression, node: Apply = node, line: Expression = line) -> Expression | None:
            return line if part == node else None

        other = loss_of(refitted(substitute(expression, in_its_place), problem), problem)
        if math.isfinite(other) and 0.5 * problem.rows * math.log(other / own) < MIN_NATS:
            return node.operator
    return None


def _line(node: Apply, problem: Problem) -> Expression | None:
    """The tangent of a function at the middle of its arguments, with fitted numbers."""
    argument = node.arguments[0]
    values = evaluate(argument, problem.inputs) + np.zeros(problem.rows)
    if not np.isfinite(values).all():
        return None
    middle = 0.5 * float(values.min() + values.max())
    step = _STEP * (float(np.ptp(values)) or 1.0)
    near = [
        evaluate(Apply(node.operator, (Number(middle + move),)), np.zeros((1, 1)))[0]
        for move in (-step, 0, step)
    ]
    slope = float(near[2] - near[0]) / (2 * step)
    if not math.isfinite(slope) or slope == 0.0:
        return None
    return add(Number(float(near[1])), mul(Number(slope), sub(argument, Number(middle))))
