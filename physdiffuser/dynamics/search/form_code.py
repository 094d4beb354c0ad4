"""What the form of a right-hand side costs: nats in a code for laws of motion.

Most rates of change are sums of products of the states, sometimes with a sine, a saturation `x/(k + x)` or an
exponential in them. A power that is no integer, a pole at zero or a function inside another one is rare. The
costs are roughly minus the logarithm of how often a part occurs in the equations of the development set of
systems. Numbers that are fitted are counted elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from physdiffuser.dynamics.search.terms import summands
from physdiffuser.expressions import OPERATORS, Apply, Expression, Number, Parameter, Variable
from physdiffuser.expressions.tree import substitute, variables, walk
from physdiffuser.selection.description_length import exact_nats


@dataclass(frozen=True)
class FormCosts:
    """Nats for the parts of a right-hand side.

    Roughly minus the logarithm of how often a part occurs in the equations of the development systems
    (docs/dynamics.md).
    """

    term: float = 1.0
    constant: float = 2.0
    factor: float = -0.4
    variable: float = 0.7
    """One more term in a sum, a term without variables, a product of two parts (whose order does not matter),
    and a variable."""
    square: float = 2.2
    power: float = 0.7
    """A square, and each integer power above it."""
    saturation: float = 4.0
    pole: float = 5.5
    """A denominator of a constant and a part of one variable (both are in the price), and any other one."""
    distance: float = 4.0
    """A power of a sum of squares, as of central forces."""
    repeated: float = 1.7
    """A part that stands in an earlier equation as well."""
    root: float = 4.0
    fraction: float = 6.0
    fitted_power: float = 8.0
    variable_power: float = 12.0
    """Square roots, and powers that are another fraction, a fitted number or a formula of variables."""
    other_function: float = 6.0
    defined_function: float = 3.5
    """A function that `FUNCTIONS` does not list. One that the user has defined costs less, since it is
    expected."""
    beside: float = 2.5
    """A function of variables that also stand outside of functions in the same sum, as in `x - sin(x)`."""
    inner_constant: float = 3.0
    wave_constant: float = 6.0
    """A constant inside a function or power: its values make very different forms, of which one often fits.
    Inside a sine or cosine it costs more: states are seldom scaled angles, and part of a wave bends like a
    parabola."""
    nested: float = 4.0
    """A function inside another one."""


COSTS = FormCosts()

FUNCTIONS = {"sin": 2.5, "cos": 2.5, "exp": 3.5, "abs": 3.5, "sqrt": 4.0, "tanh": 4.5, "log": 5.0}
BENDING = frozenset({"sin", "cos", "exp", "tanh", "log", "atan"})


def form_nats(skeleton: Expression, columns: int) -> float:
    """Nats for the form of one right-hand side.

    Parameters
    ----------
    skeleton
        The formula, with parameters or fitted numbers for its constants.
    columns
        From how many columns its variables are chosen.
    """
    return system_nats((skeleton,), columns)


def system_nats(skeletons: Sequence[Expression], columns: int) -> float:
    """Nats for the forms of a system: a part that an earlier equation holds is referred to.

    Parameters
    ----------
    skeletons
        The formulas, with parameters or fitted numbers for their constants.
    columns
        From how many columns their variables are chosen.
    """
    code = _Code(COSTS.variable + math.log(max(columns, 1)))
    total = 0.0
    for skeleton in skeletons:
        form = substitute(skeleton, _without_numbers)
        total += code.nats(form) + exact_nats(skeleton) + COSTS.beside * _functions_beside(form)
        code.known |= {node for node in walk(form) if isinstance(node, Apply)}
    return total


def _functions_beside(form: Expression) -> int:
    """How many terms of the sum have a function of variables that a term without functions holds as well."""
    terms = summands(form)
    bent = [any(isinstance(n, Apply) and n.operator in BENDING for n in walk(term)) for term in terms]
    bare = [variables(term) for term, has in zip(terms, bent, strict=True) if not has and variables(term)]
    return sum(
        any(own <= variables(term) for own in bare) for term, has in zip(terms, bent, strict=True) if has
    )


def _without_numbers(node: Expression) -> Expression | None:
    """All fitted constants alike."""
    fitted = isinstance(node, Parameter) or (isinstance(node, Number) and not node.exact)
    return Parameter(0) if fitted else None


class _Code:
    """Nats of parts of formulas, with the parts that are known already."""

    def __init__(self, leaf: float) -> None:
        self.leaf = leaf
        self.known: set[Expression] = set()

    def nats(self, node: Expression, *, inside: bool = False) -> float:
        if isinstance(node, Variable):
            return self.leaf
        if not isinstance(node, Apply):
            return 0.0
        full = self._spelled_out(node, inside=inside)
        return min(full, COSTS.repeated) if node in self.known else full

    def _spelled_out(self, node: Apply, *, inside: bool) -> float:
        if node.operator == "pow":
            return self._power(node, inside=inside)
        if node.operator not in ("neg", "add", "sub", "mul", "div"):
            return self._function(node, inside=inside)
        parts = sum(self.nats(argument, inside=inside) for argument in node.arguments)
        match node.operator:
            case "add" | "sub":
                return COSTS.term + parts + COSTS.constant * sum(not variables(one) for one in node.arguments)
            case "mul":
                return parts + (COSTS.factor if all(variables(one) for one in node.arguments) else 0.0)
            case "div" if _is_shifted(node.arguments[1]):
                above, below = node.arguments
                return self.nats(above, inside=inside) + self._saturation(below, inside=inside)
            case "div":
                return parts + _denominator(node.arguments[1])
        return parts

    def _saturation(self, below: Expression, *, inside: bool) -> float:
        """Of a denominator such as `k + x`, with its first constant and term."""
        terms = [term for term in summands(below) if variables(term)]
        own = sum(self.nats(term, inside=inside) for term in terms)
        return COSTS.saturation + own + COSTS.term * (len(terms) - 1)

    def _function(self, node: Apply, *, inside: bool) -> float:
        known = FUNCTIONS.get(node.operator)
        if known is None:
            known = (
                COSTS.other_function
                if OPERATORS[node.operator].definition is None
                else COSTS.defined_function
            )
        inner = sum(self.nats(argument, inside=True) for argument in node.arguments)
        own = COSTS.wave_constant if node.operator in ("sin", "cos") else COSTS.inner_constant
        constants = own if any(_holds_constant(argument) for argument in node.arguments) else 0.0
        return known + inner + constants + (COSTS.nested if inside else 0.0)

    def _power(self, node: Apply, *, inside: bool) -> float:
        base, exponent = node.arguments
        if _is_distance(base) and isinstance(exponent, Number) and exponent.exact:
            return COSTS.distance + self.leaf
        below = self.nats(base, inside=inside) + (COSTS.inner_constant if _holds_constant(base) else 0.0)
        if isinstance(exponent, Parameter):
            return below + COSTS.fitted_power
        if not isinstance(exponent, Number):
            return below + self.nats(exponent, inside=inside) + COSTS.variable_power
        value = float(exponent.value)
        below += _denominator(base) if value < 0 else 0.0
        if value.is_integer():
            further = abs(value) - 2.0
            return below + (COSTS.square + COSTS.power * further if further >= 0.0 else 0.0)
        return (
            below
            + (COSTS.root if (2.0 * value).is_integer() else COSTS.fraction)
            + (COSTS.nested if inside else 0.0)
        )


def _is_distance(node: Expression) -> bool:
    """Whether it is a sum of squares of two or more variables."""
    if isinstance(node, Apply) and node.operator == "add":
        return all(_is_distance(one) or _is_square(one) for one in node.arguments)
    return False


def _is_square(node: Expression) -> bool:
    match node:
        case Apply(operator="pow", arguments=(Variable(), Number(value=2))):
            return True
    return False


def _denominator(node: Expression) -> float:
    if not variables(node) or _is_distance(node):
        return 0.0
    if isinstance(node, Apply) and node.operator in ("pow", "sqrt"):
        return _denominator(node.arguments[0])
    return COSTS.saturation if _is_shifted(node) else COSTS.pole


def _is_shifted(node: Expression) -> bool:
    """Whether it is a constant and a part of one variable."""
    return _adds_constant(node) and isinstance(node, Apply) and len(variables(node)) == 1


def _adds_constant(node: Expression) -> bool:
    if isinstance(node, Apply) and node.operator in ("add", "sub"):
        return any(_adds_constant(one) for one in node.arguments)
    return not variables(node)


def _holds_constant(node: Expression) -> bool:
    if isinstance(node, Apply):
        return any(_holds_constant(one) for one in node.arguments)
    return isinstance(node, Parameter) or (isinstance(node, Number) and not node.exact)
