"""The expression tree: five kinds of immutable node.

A tree knows nothing of numbers in a table, of names or of units. Variables are positions
(`Variable(0)` is the first input column); names are given when a tree is printed or parsed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

# Operators that another process may not know, with the function that makes a node of them there, and the
# first argument of that function; see `physdiffuser.expressions.definitions`.
RESTORED_BY: dict[str, tuple[Callable[..., Apply], Any]] = {}


@dataclass(frozen=True, slots=True)
class Number:
    """A number written in a formula.

    `int` and `Fraction` are exact (`2`, `3/2`); `float` is a fitted or measured constant. A fitted 2.0 is not
    an exact 2: trees are dictionary keys, and `v**2.0` may stand where `v**2` may not.
    """

    value: int | Fraction | float

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Number):
            return NotImplemented
        return self.value == other.value and isinstance(self.value, float) == isinstance(other.value, float)

    def __hash__(self) -> int:
        return hash((self.value, isinstance(self.value, float)))

    @property
    def exact(self) -> bool:
        """Whether the number is an integer or a fraction rather than a fitted constant."""
        return not isinstance(self.value, float)


@dataclass(frozen=True, slots=True)
class Symbol:
    """A constant with a name: `pi`, or a known constant given by the user such as `G`."""

    name: str
    value: float


@dataclass(frozen=True, slots=True)
class Variable:
    """An input column, by position from 0."""

    index: int


@dataclass(frozen=True, slots=True)
class Parameter:
    """A constant placeholder that fitting fills, by position in the parameter vector."""

    index: int


@dataclass(frozen=True, slots=True)
class Apply:
    """An operator applied to its arguments.

    `operator` is a name in `physdiffuser.expressions.operators.OPERATORS`. The hash is computed
    once: trees are dictionary keys in every hot loop.
    """

    operator: str
    arguments: tuple[Expression, ...]
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.operator, self.arguments)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Callable[..., Apply], tuple[Any, tuple[Expression, ...]]]:
        # String hashes differ between processes: rebuild, so that the stored hash is this process's.
        if self.operator in RESTORED_BY:
            restore, what = RESTORED_BY[self.operator]
            return (restore, (what, self.arguments))
        return (Apply, (self.operator, self.arguments))


Expression: TypeAlias = Number | Symbol | Variable | Parameter | Apply

PI = Symbol("pi", math.pi)
ZERO = Number(0)
ONE = Number(1)


def add(left: Expression, right: Expression) -> Apply:
    """`left + right`."""
    return Apply("add", (left, right))


def sub(left: Expression, right: Expression) -> Apply:
    """`left - right`."""
    return Apply("sub", (left, right))


def mul(left: Expression, right: Expression) -> Apply:
    """`left * right`."""
    return Apply("mul", (left, right))


def div(left: Expression, right: Expression) -> Apply:
    """`left / right`."""
    return Apply("div", (left, right))


def power(base: Expression, exponent: Expression) -> Apply:
    """`base ** exponent`."""
    return Apply("pow", (base, exponent))


def call(operator: str, argument: Expression) -> Apply:
    """A unary operator, `call("sqrt", x)`."""
    return Apply(operator, (argument,))


def walk(expression: Expression) -> Iterator[Expression]:
    """Every node of the tree, parents before children, left to right."""
    stack = [expression]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, Apply):
            stack.extend(reversed(node.arguments))


def variables(expression: Expression) -> frozenset[int]:
    """Positions of the variables that occur."""
    return frozenset(node.index for node in walk(expression) if isinstance(node, Variable))


def parameter_count(expression: Expression) -> int:
    """Length of the parameter vector the expression needs: one more than the largest index."""
    return 1 + max((node.index for node in walk(expression) if isinstance(node, Parameter)), default=-1)


def number_expression(value: Fraction) -> Number:
    """A number node; an int where the fraction is whole."""
    return Number(int(value) if value.denominator == 1 else value)


def size(expression: Expression) -> int:
    """Number of nodes."""
    return sum(1 for _ in walk(expression))


def substitute(expression: Expression, replace: Callable[[Expression], Expression | None]) -> Expression:
    """Replace nodes from the top down.

    `replace` is called on each node; where it returns an expression, that stands in place of the
    whole subtree, and where it returns None the children are visited. Shared subtrees stay shared.
    """
    replacement = replace(expression)
    if replacement is not None:
        return replacement
    if not isinstance(expression, Apply):
        return expression
    arguments = tuple(substitute(argument, replace) for argument in expression.arguments)
    if all(new is old for new, old in zip(arguments, expression.arguments, strict=True)):
        return expression
    return Apply(expression.operator, arguments)


def chain(operator: str, parts: Sequence[Expression]) -> Expression:
    """`a + b + c` or `a*b*c` of one part or more, nested to the left."""
    tree, *others = parts
    for part in others:
        tree = Apply(operator, (tree, part))
    return tree


def with_columns(expression: Expression, columns: Sequence[int] | Mapping[int, int]) -> Expression:
    """The same formula over other columns: `columns[i]` in place of column i."""
    return substitute(
        expression, lambda node: Variable(columns[node.index]) if isinstance(node, Variable) else None
    )


def with_parameters(expression: Expression, numbers: Sequence[int] | Mapping[int, int]) -> Expression:
    """The same skeleton with other parameters: `numbers[i]` in place of parameter i."""
    return substitute(
        expression, lambda node: Parameter(numbers[node.index]) if isinstance(node, Parameter) else None
    )


def bind(expression: Expression, parameters: tuple[float, ...] | list[float]) -> Expression:
    """Put fitted values in place of the parameters."""

    def replace(node: Expression) -> Expression | None:
        return Number(float(parameters[node.index])) if isinstance(node, Parameter) else None

    return substitute(expression, replace)


def free_constants(expression: Expression) -> tuple[Expression, tuple[float, ...]]:
    """The skeleton with a parameter for every fitted constant, and the values they had.

    The inverse of `bind`: exact numbers and named constants stay.
    """
    values: list[float] = []

    def replace(node: Expression) -> Expression | None:
        if isinstance(node, Number) and not node.exact:
            values.append(float(node.value))
            return Parameter(len(values) - 1)
        return None

    return substitute(expression, replace), tuple(values)


def distinct_constants(expression: Expression) -> tuple[Expression, tuple[float, ...]]:
    """As `free_constants`, but one parameter for all fitted constants of the same value: they are tied."""
    position: dict[float, int] = {}

    def replace(node: Expression) -> Expression | None:
        if isinstance(node, Number) and not node.exact:
            return Parameter(position.setdefault(float(node.value), len(position)))
        return None

    skeleton = substitute(expression, replace)
    return skeleton, tuple(position)


def fitted_constants(expression: Expression) -> int:
    """How many constants of the formula were fitted."""
    return sum(1 for node in walk(expression) if isinstance(node, Number) and not node.exact)


Path = tuple[int, ...]


def positions(expression: Expression) -> list[tuple[Path, Expression]]:
    """Every node with the path of argument positions that leads to it, parents first."""
    found: list[tuple[Path, Expression]] = []
    stack: list[tuple[Path, Expression]] = [((), expression)]
    while stack:
        place = stack.pop()
        found.append(place)
        path, node = place
        if isinstance(node, Apply):
            stack.extend(((*path, index), node.arguments[index]) for index in range(len(node.arguments)))
    return found


def replace_at(expression: Expression, path: Path, new: Expression) -> Expression:
    """The tree with another subtree at a path."""
    if not path:
        return new
    assert isinstance(expression, Apply)
    arguments = list(expression.arguments)
    arguments[path[0]] = replace_at(arguments[path[0]], path[1:], new)
    return Apply(expression.operator, tuple(arguments))


def along(expression: Expression, path: Path) -> Iterator[Apply]:
    """The operators on the way from the root to a path's end, which is left out."""
    node = expression
    for index in path:
        assert isinstance(node, Apply)
        yield node
        node = node.arguments[index]
