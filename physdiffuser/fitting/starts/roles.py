"""Where a nonlinear parameter stands in its skeleton: a frequency, a rate, an exponent, an offset.

A start can only be good if it knows this. The role is read off the path from the parameter to the root:
first the factors it is multiplied with, then the terms that product is added to, then the function around.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from physdiffuser.expressions import Apply, Expression, Number, Parameter
from physdiffuser.expressions.tree import (
    ONE,
    ZERO,
    add,
    call,
    div,
    mul,
    parameter_count,
    power,
    sub,
    variables,
)

_HALF = Number(Fraction(1, 2))
_PERIODIC = frozenset({"sin", "cos", "tan"})


class Kind(Enum):
    """What a parameter does."""

    FREQUENCY = "multiplies what a periodic function is taken of"
    PHASE = "is added inside a periodic function"
    RATE = "multiplies what another function is taken of"
    EXPONENT = "is an exponent"
    COEFFICIENT = "multiplies one of several terms"
    OFFSET = "is added to something"
    LONE = "stands alone"


@dataclass(frozen=True)
class Role:
    """The surroundings of one nonlinear parameter.

    Attributes
    ----------
    index
        Which parameter.
    kind
        What it does.
    factor
        The product of what it is multiplied with, or None.
    rest
        The sum of the other terms beside that product, or None.
    sign
        Sign of the parameter's term in the sum.
    power
        The term holds `c**power`: -1 for a denominator, 2 for a square; free of variables.
    around
        Name of the operator around the sum; "" at the root.
    node
        The sum's function: the innermost periodic node for frequencies; else the whole sum.
    depth
        Length of the path to the root.
    """

    index: int
    kind: Kind
    factor: Expression | None
    rest: Expression | None
    sign: int
    power: Expression
    around: str
    node: Expression
    depth: int


def find_roles(skeleton: Expression, wanted: tuple[int, ...]) -> list[Role]:
    """Roles of the wanted parameters, those to be drawn first in front.

    Deeper ones come first, and among equals those that multiply before those that are added, since the
    scale of an offset is that of the terms beside it.
    """
    found: dict[int, Role] = {}
    path: list[tuple[Apply, int]] = []

    def visit(node: Expression) -> None:
        if isinstance(node, Parameter):
            if node.index in wanted and node.index not in found:
                found[node.index] = _role(node, path)
        elif isinstance(node, Apply):
            for position, argument in enumerate(node.arguments):
                path.append((node, position))
                visit(argument)
                path.pop()

    visit(skeleton)
    return sorted(
        found.values(),
        key=lambda role: (
            -role.depth,
            parameter_count(role.power) > 0,
            role.kind is Kind.OFFSET,
            role.index,
        ),
    )


def _role(parameter: Parameter, path: list[tuple[Apply, int]]) -> Role:
    level, factor, exponent, sign = _multiplied(path)
    level, rest, sign = _added(path, level, sign)
    node: Expression = path[level][0] if level < len(path) else parameter
    around, place = (path[level - 1][0].operator, path[level - 1][1]) if level else ("", 0)
    enclosing: Expression = path[level - 1][0] if level else node
    return Role(
        parameter.index,
        _kind(around, place, factor, rest),
        factor,
        rest,
        sign,
        exponent,
        around,
        enclosing,
        len(path),
    )


def _multiplied(path: list[tuple[Apply, int]]) -> tuple[int, Expression | None, Expression, int]:
    """The factor, exponent and sign that a parameter gets on its way up, and the level where that ends."""
    factor: Expression | None = None
    exponent: Expression = ONE
    sign = 1
    level = len(path)
    while level:
        parent, position = path[level - 1]
        match parent.operator, position:
            case "neg", _:
                sign = -sign
            case "mul", _:
                other = parent.arguments[1 - position]
                factor = other if factor is None else mul(factor, other)
            case "div", 0:
                factor = div(ONE if factor is None else factor, parent.arguments[1])
            case "div", 1:
                factor = parent.arguments[0] if factor is None else div(parent.arguments[0], factor)
                exponent = call("neg", exponent)
            case ("sqrt", _) if sign == 1:
                factor = None if factor is None else call("sqrt", factor)
                exponent = mul(exponent, _HALF)
            case ("pow", 0) if sign == 1 and not variables(parent.arguments[1]):
                factor = None if factor is None else power(factor, parent.arguments[1])
                exponent = mul(exponent, parent.arguments[1])
            case _:
                break
        level -= 1
    return level, factor, exponent, sign


def _added(path: list[tuple[Apply, int]], level: int, sign: int) -> tuple[int, Expression | None, int]:
    """What is added further up, with the sign of the parameter's term, and the level where that ends."""
    rest: Expression | None = None
    while level:
        parent, position = path[level - 1]
        match parent.operator, position:
            case "neg", _:
                sign = -sign
                rest = None if rest is None else sub(ZERO, rest)
            case "add", _:
                other = parent.arguments[1 - position]
                rest = other if rest is None else add(rest, other)
            case "sub", 0:
                rest = sub(ZERO, parent.arguments[1]) if rest is None else sub(rest, parent.arguments[1])
            case "sub", 1:
                sign = -sign
                rest = parent.arguments[0] if rest is None else sub(parent.arguments[0], rest)
            case _:
                break
        level -= 1
    return level, rest, sign


def _kind(around: str, place: int, factor: Expression | None, rest: Expression | None) -> Kind:
    if around in _PERIODIC:
        return Kind.PHASE if factor is None else Kind.FREQUENCY
    if around == "pow" and place == 1:
        return Kind.EXPONENT if factor is None else Kind.RATE
    if factor is None:
        return Kind.LONE if rest is None else Kind.OFFSET
    if around in ("exp", "tanh", "sinh", "cosh", "atan"):
        return Kind.RATE
    return Kind.COEFFICIENT
