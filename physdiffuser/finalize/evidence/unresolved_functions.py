"""Functions of a law that the rows cannot tell from a straight line or a parabola.

`L0*exp(a*(T - T0))` and `L0*(1 + a*(T - T0))` are two laws. Where `a*(T - T0)` stays below a hundredth, no
row says which of them holds. `cos(w*t)`, `1/(1 + (w*t)**2/2)` and `exp(-(w*t)**2/2)` are three, and rows with
`w*t` below 0.3 and errors of 1 % show the parabola that they share.
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
# Of the polynomials that are tried in the place of a function.
DEGREES = (1, 2)


@np.errstate(all="ignore")
def unresolved_function(expression: Expression, problem: Problem) -> str | None:
    """The name of a function in whose place a line or a parabola fits as well; None if there is none.

    Parameters
    ----------
    expression
        The law.
    problem
        The rows of the fit. The polynomial and the other fitted constants are fitted again.
    """
    own = loss_of(expression, problem)
    for node in dict.fromkeys(walk(expression)):
        if not isinstance(node, Apply) or node.operator not in _FUNCTIONS or not variables(node):
            continue
        for degree in DEGREES:
            polynomial = _polynomial(node, problem, degree)
            if polynomial is None:
                continue
            in_its_place: dict[Expression, Expression] = {node: polynomial}
            changed = substitute(expression, in_its_place.get)
            other = loss_of(refitted(changed, problem), problem)
            if math.isfinite(other) and 0.5 * problem.rows * math.log(other / own) < MIN_NATS:
                return node.operator
    return None


def _polynomial(node: Apply, problem: Problem, degree: int) -> Expression | None:
    """The polynomial of a function's argument that is nearest to it on the rows, with fitted numbers."""
    argument = node.arguments[0]
    places, values = (evaluate(part, problem.inputs) for part in (argument, node))
    middle, half = 0.5 * float(places.min() + places.max()), 0.5 * float(np.ptp(places))
    if not (np.isfinite(places).all() and np.isfinite(values).all() and half > 0):
        return None
    unit = mul(Number(1 / half), sub(argument, Number(middle)))
    coefficients = np.polynomial.polynomial.polyfit((places - middle) / half, values, degree)
    found: Expression = Number(float(coefficients[-1]))
    for coefficient in coefficients[-2::-1]:
        found = add(Number(float(coefficient)), mul(unit, found))
    return found
