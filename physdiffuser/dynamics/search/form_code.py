"""What the form of a right-hand side costs: nats in a code for laws of motion.

Most rates of change are sums of products of the states, sometimes with a sine, a saturation `x/(k + x)` or an
exponential in them. A power that is no integer, a pole at zero or a function inside another one is rare. The
costs are roughly minus the logarithm of how often a part occurs in the equations of the development set of
systems. Numbers that are fitted are counted elsewhere.
"""

from __future__ import annotations

import math

from physdiffuser.expressions import OPERATORS, Apply, Expression, Number, Parameter, Symbol, Variable
from physdiffuser.expressions.tree import variables
from physdiffuser.selection.description_length import exact_nats

TERM = 1.0
"""One more term in a sum."""
FACTOR = 0.3
VARIABLE = 0.7
POWER = 0.9
"""Each integer power above the first."""
SATURATION = 3.0
"""A denominator that holds a constant beside one variable."""
POLE = 5.5
"""Any other denominator."""
ROOT, FRACTION, FITTED_POWER, VARIABLE_POWER = 4.0, 6.0, 8.0, 12.0
FUNCTIONS = {"sin": 2.5, "cos": 2.5, "exp": 3.5, "abs": 3.5, "sqrt": 4.0, "tanh": 4.5, "log": 5.0}
OTHER_FUNCTION = 6.0
DEFINED_FUNCTION = 3.5
"""A function that the user has defined was defined because it is expected."""
INNER_CONSTANT = 3.0
"""A constant inside a function: its values make very different functions, of which one often fits."""
NESTED = 4.0
LARGEST_POWER = 4


def form_nats(skeleton: Expression, columns: int) -> float:
    """Nats for the form of a right-hand side.

    Parameters
    ----------
    skeleton
        The formula, with parameters or fitted numbers for its constants.
    columns
        From how many columns its variables are chosen.
    """
    return _nats(skeleton, VARIABLE + math.log(max(columns, 1)), inside=False) + exact_nats(skeleton)


def _nats(node: Expression, leaf: float, *, inside: bool) -> float:
    match node:
        case Variable():
            return leaf
        case Number() | Symbol() | Parameter():
            return 0.0
    assert isinstance(node, Apply)
    parts = [_nats(argument, leaf, inside=inside) for argument in node.arguments]
    match node.operator:
        case "neg":
            return parts[0]
        case "add" | "sub":
            return TERM + sum(parts)
        case "mul":
            return sum(parts) + (FACTOR if all(_varies(one) for one in node.arguments) else 0.0)
        case "div":
            return sum(parts) + _denominator(node.arguments[1])
        case "pow":
            return _power(node, parts, leaf, inside=inside)
    return _function(node, leaf, inside=inside)


def _function(node: Apply, leaf: float, *, inside: bool) -> float:
    known = FUNCTIONS.get(node.operator)
    if known is None:
        known = OTHER_FUNCTION if OPERATORS[node.operator].definition is None else DEFINED_FUNCTION
    inner = sum(_nats(argument, leaf, inside=True) for argument in node.arguments)
    constants = INNER_CONSTANT if any(_holds_constant(argument) for argument in node.arguments) else 0.0
    return known + inner + constants + (NESTED if inside else 0.0)


def _power(node: Apply, parts: list[float], leaf: float, *, inside: bool) -> float:
    base, exponent = node.arguments
    if isinstance(exponent, Number):
        value = float(exponent.value)
        if value.is_integer() and exponent.exact:
            pole = _denominator(base) if value < 0 else 0.0
            return parts[0] + pole + POWER * max(abs(value) - 1.0, 0.0)
        rare = (
            ROOT
            if (2.0 * value).is_integer() and exponent.exact
            else FRACTION
            if exponent.exact
            else FITTED_POWER
        )
        pole = _denominator(base) if value < 0 else 0.0
        return parts[0] + rare + pole + (NESTED if inside else 0.0)
    if isinstance(exponent, Parameter):
        return parts[0] + FITTED_POWER
    return sum(parts) + VARIABLE_POWER


def _denominator(node: Expression) -> float:
    if not _varies(node):
        return 0.0
    shifted = isinstance(node, Apply) and node.operator in ("add", "sub") and _adds_constant(node)
    return SATURATION if shifted and len(variables(node)) == 1 else POLE


def _adds_constant(node: Expression) -> bool:
    if isinstance(node, Apply) and node.operator in ("add", "sub"):
        return any(_adds_constant(one) for one in node.arguments)
    return not _varies(node)


def _varies(node: Expression) -> bool:
    if isinstance(node, Apply):
        return any(_varies(one) for one in node.arguments)
    return isinstance(node, Variable)


def _holds_constant(node: Expression) -> bool:
    if isinstance(node, Apply):
        return any(_holds_constant(one) for one in node.arguments)
    return isinstance(node, Parameter) or (isinstance(node, Number) and not node.exact)
