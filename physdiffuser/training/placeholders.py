"""Values that the constant placeholders of a training law can take to make it equal to an excluded law.

All constant factors are taken out of both laws first. What a factor can still do is change a sign; what an
added constant can do is be positive, negative or zero (and a quarter of a period inside sine and cosine);
an exponent can be any that the excluded law has. So a placeholder has few values to try.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import islice, product

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.expressions import ONE, Apply, Expression, Number, Parameter, Symbol, Variable, evaluate
from physdiffuser.expressions.tree import substitute, variables, walk

_SIGNS = (1.0, -1.0)
_VALUES = {
    "": (1.0,),
    "factor": _SIGNS,
    "angle": _SIGNS,
    "added": (1.0, -1.0, 0.0),
    "phase": (1.0, -1.0, 0.0, 0.5 * math.pi),
    "unsigned added": (1.0, 0.0),
    "unsigned phase": (1.0, 0.0, 0.5 * math.pi),
}
_WITHOUT_SIGN = {"factor": "", "angle": "", "added": "unsigned added", "phase": "unsigned phase"}
_ROWS = 8_000
# Functions that an identity turns into each other have one name.
_FAMILIES = {
    "exp": "exp", "sinh": "exp", "cosh": "exp", "tanh": "exp", "log": "log",
    "sin": "sin", "cos": "sin", "tan": "sin", "asin": "asin", "acos": "asin", "atan": "atan",
}  # fmt: skip
_ALGEBRAIC = {"add", "sub", "mul", "div", "neg", "sqrt", "pow", "abs"}


def group_of(expression: Expression) -> tuple[int, frozenset[str]]:
    """How many variables a law has, and which families of functions: equal for equal laws."""
    names: set[str] = set()
    for node in walk(expression):
        if isinstance(node, Apply):
            if node.operator == "pow" and variables(node.arguments[1]):
                names |= {"exp", "log"} if variables(node.arguments[0]) else {"exp"}
            elif node.operator not in _ALGEBRAIC:
                names.add(_FAMILIES.get(node.operator, node.operator))
    return len(variables(expression)), frozenset(names)


def exponents(expression: Expression) -> frozenset[float]:
    """Exponents that the factors of a law have, with both signs; roots and nested powers multiply."""
    found: set[Fraction] = {Fraction(1)}

    def collect(node: Expression, outer: Fraction) -> None:
        found.add(outer)
        if not isinstance(node, Apply):
            return
        first, *others = node.arguments
        value = None
        if node.operator == "sqrt":
            value = Fraction(1, 2)
        elif node.operator == "pow" and not variables(others[0]):
            number = float(evaluate(others[0], np.empty((1, 0)))[0])
            value = Fraction(number) if math.isfinite(number) and number else None
        if value is not None:
            collect(first, abs(outer * value))
            return
        inner = outer if node.operator in ("mul", "div", "neg") else Fraction(1)
        for argument in node.arguments:
            collect(argument, inner)

    collect(expression, Fraction(1))
    return frozenset(sign * float(value) for value in found for sign in _SIGNS)


def with_unit_constants(expression: Expression) -> Expression:
    """The formula with every added constant replaced by 1 or -1."""

    def replace(node: Expression) -> Expression | None:
        if not isinstance(node, Apply) or node.operator not in ("add", "sub"):
            return None
        return Apply(node.operator, tuple(_unit(with_unit_constants(part)) for part in node.arguments))

    return substitute(expression, replace)


def _unit(expression: Expression) -> Expression:
    if not all(isinstance(node, (Number, Symbol, Apply)) for node in walk(expression)):
        return expression
    negative = bool(evaluate(expression, np.empty((1, 0)))[0] < 0)
    return Apply("neg", (ONE,)) if negative else ONE


@dataclass(frozen=True)
class Instances:
    """A law with its placeholders as further variables.

    Attributes
    ----------
    expression
        The law. Its own variables come first, then one for each placeholder.
    count
        Number of its own variables.
    roles
        What each placeholder is: `factor`, `added`, `phase` (added inside sine or cosine) or `exponent`.
    """

    expression: Expression
    count: int
    roles: tuple[str, ...]


def instances_of(expression: Expression, normal: Callable[[Expression], Expression]) -> Instances:
    """The values to try for the parameters of a law.

    Parameters
    ----------
    expression
        The law; its constants are parameters.
    normal
        Takes constant factors out of a law; parameters are variables when it is called.
    """
    numbers: dict[Expression, Variable] = {}
    for node in sorted(
        {node for node in walk(expression) if isinstance(node, (Variable, Parameter))},
        key=lambda node: (isinstance(node, Parameter), node.index),
    ):
        numbers[node] = Variable(len(numbers))
    count = sum(isinstance(node, Variable) for node in numbers)
    renamed = normal(substitute(expression, lambda node: numbers.get(node)))
    roles: dict[int, str] = {}
    _collect_roles(renamed, count, "factor", roles)
    # A factor of the whole has no role: it was taken out.
    return Instances(renamed, count, tuple(roles.get(index, "") for index in range(count, len(numbers))))


def without_sign_roles(instances: Instances) -> Instances:
    """The same law where signs do not count, so that placeholders have fewer values to try."""
    return replace(instances, roles=tuple(_WITHOUT_SIGN.get(role, role) for role in instances.roles))


def _collect_roles(node: Expression, count: int, role: str, roles: dict[int, str]) -> None:
    if isinstance(node, Variable) and node.index >= count:
        roles.setdefault(node.index, role)
    if not isinstance(node, Apply):
        return
    for place, argument in enumerate(node.arguments):
        if node.operator == "pow" and place == 1:
            found = "exponent"
        elif node.operator in ("add", "sub"):
            found = "phase" if role in ("angle", "phase") else "added"
        elif node.operator == "neg" and role in ("added", "phase"):
            found = role
        elif node.operator in ("sin", "cos"):
            found = "angle"
        else:
            found = "factor"
        _collect_roles(argument, count, found, roles)


def values(roles: tuple[str, ...], choices: frozenset[frozenset[float]]) -> Iterable[FloatArray]:
    """Values of placeholders with these roles, some thousand rows at a time.

    Parameters
    ----------
    choices
        Exponents that occur together in an excluded law.
    """
    powers = roles.count("exponent")
    rows = sum(len(choice) ** powers for choice in choices) if powers else 1
    for role in roles:
        rows *= len(_VALUES[role]) if role != "exponent" else 1
    return _short_table(roles, choices) if rows <= _ROWS else _tables(roles, choices)


@lru_cache(maxsize=128)
def _short_table(roles: tuple[str, ...], choices: frozenset[frozenset[float]]) -> list[FloatArray]:
    return list(_tables(roles, choices))


def _tables(roles: tuple[str, ...], choices: frozenset[frozenset[float]]) -> Iterator[FloatArray]:
    powers = [index for index, role in enumerate(roles) if role == "exponent"]
    others = [index for index, role in enumerate(roles) if role != "exponent"]
    order = np.argsort([*powers, *others], kind="stable")
    tuples = dict.fromkeys(row for choice in choices for row in product(sorted(choice), repeat=len(powers)))
    rows = (row + rest for row in tuples for rest in product(*(_VALUES[roles[index]] for index in others)))
    while chunk := list(islice(rows, _ROWS)):
        # (choices, placeholders), also without placeholders
        yield np.array(chunk, dtype=np.float64).reshape(len(chunk), len(roles))[:, order]
