"""Whether every function in a formula matters: absurd constants make it saturate or follow its limit.

`tanh(1e142*y)` is a sign, `exp(1e-12*y)` is 1, and `1e9*sin(1e-9*y)` is `y`. Such forms follow the curve, but
the constant in them says nothing, and a formula without it says the same. Terms that hardly contribute are no
matter here: they are left out one by one (`physdiffuser.dynamics.search.choice`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.expressions import OPERATORS, Apply, Expression, Number, Parameter, Symbol, Variable
from physdiffuser.expressions.tree import variables


@dataclass(frozen=True)
class SensePolicy:
    """Constants that make no sense in a function.

    Set by hand.
    """

    negligible: float = 1e-7
    """A function that varies by a smaller share of its value is constant."""
    max_argument: float = 1e4
    """Largest argument of a function that bends within the data."""
    saturated: float = 20.0
    """Arguments beyond this, at all rows, leave of a hyperbolic tangent or arcus tangent a sign alone."""
    linear: float = 1e-4
    """Arguments below this, at all rows, leave of a sine or tangent its argument alone."""
    max_power: float = 12.0
    """Largest power."""


POLICY = SensePolicy()


BENT = frozenset({"sin", "cos", "tan", "exp", "sinh", "cosh", "tanh", "atan", "asin"})
ODD = frozenset({"sin", "tan", "sinh", "tanh", "atan", "asin"})
SATURATING = frozenset({"tanh", "atan"})


class _Senseless(Exception):
    """A part of the formula does not matter."""


def is_sensible(expression: Expression, nodes: FloatArray) -> bool:
    """Whether every part of a formula matters at some of the rows.

    Parameters
    ----------
    nodes
        Shape (rows, variables): values of the variables along the trajectories.
    """
    with np.errstate(all="ignore"):
        try:
            _values(expression, nodes)
        except _Senseless:
            return False
    return True


def _values(node: Expression, nodes: FloatArray) -> FloatArray:
    match node:
        case Variable(index=index):
            return nodes[:, index]
        case Number(value=value) | Symbol(value=value):
            return np.asarray(float(value))
        case Apply(operator=operator, arguments=arguments):
            parts = [_values(argument, nodes) for argument in arguments]
            found = np.asarray(OPERATORS[operator].evaluate(*parts), dtype=np.float64)
            if variables(node) and not _matters(node, parts, found):
                raise _Senseless
            return found
        case Parameter():
            raise TypeError("a parameter has no value")
    raise TypeError(f"no expression: {node!r}")


def _matters(node: Apply, parts: list[FloatArray], found: FloatArray) -> bool:
    if node.operator == "pow":
        exponent = node.arguments[1]
        return not (isinstance(exponent, Number) and abs(float(exponent.value)) > POLICY.max_power)
    if node.operator not in BENT:
        return True
    size = np.abs(parts[0])
    largest = float(np.max(size, initial=0.0))
    if not largest <= POLICY.max_argument or (node.operator in ODD and largest < POLICY.linear):
        return False
    if node.operator in SATURATING and float(np.min(size, initial=np.inf)) > POLICY.saturated:
        return False
    return float(np.ptp(found)) > POLICY.negligible * float(np.max(np.abs(found), initial=0.0))
