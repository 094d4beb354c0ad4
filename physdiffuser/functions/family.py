"""A family at work: the tree and the values of its template, for whole grids of constants at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.family import ARGUMENTS, FamilySpec, Grid, Use
from physdiffuser.expressions import (
    ONE,
    OPERATORS,
    ZERO,
    Apply,
    Expression,
    Number,
    Parameter,
    Symbol,
    Variable,
    parse,
)
from physdiffuser.expressions.tree import add, call, mul, sub, substitute, variables, walk

# What stands under the logarithm of an argument is at least this, relative to the largest of its values.
_LEAST = 1e-12
# The place of the argument of a curve with such small values replaced.
_CLIPPED = Variable(1)


@dataclass(frozen=True)
class Family:
    """A row of the table, compiled.

    Attributes
    ----------
    spec
        The row.
    tree
        The template: arguments as variables, the constants inside and then the coefficients as parameters.
    needs
        Operators that formulas of the family contain.
    positive
        What has to be positive on every row.
    """

    spec: FamilySpec
    tree: Expression
    needs: frozenset[str]
    positive: tuple[Expression, ...]

    @property
    def name(self) -> str:
        """As derivations have it."""
        return self.spec.name

    @property
    def constants(self) -> int:
        """Number of constants inside."""
        return len(self.spec.constants)

    def tries(self, use: Use, *arguments: FloatArray) -> FloatArray:
        """Constants to try on arguments of these values: shape (tries, constants)."""
        nothing = np.empty((0, self.constants))
        of_arguments = [condition for condition in self.positive if not _has_parameters(condition)]
        for condition in numeric(of_arguments, arguments, nothing):
            if not (condition > 0).all():
                return nothing
        grid: Grid = self.spec.grids[use]
        return grid(*arguments)

    def values(self, arguments: Sequence[FloatArray], tries: FloatArray) -> FloatArray:
        """Values of the function, shape (tries, rows); nan where a condition is not met.

        Parameters
        ----------
        arguments
            Each of shape (rows,).
        tries
            Shape (tries, constants).
        """
        shape = (len(tries), arguments[0].size)
        value, *conditions = numeric((self.tree, *self.positive), arguments, tries)
        for condition in conditions:
            met = (np.broadcast_to(condition, shape) > 0).all(axis=1, keepdims=True)
            value = np.where(met, value, np.nan)
        made: FloatArray = np.broadcast_to(value, shape)
        return made

    def build(
        self,
        arguments: Sequence[Expression],
        constants: Sequence[Expression],
        tree: Expression | None = None,
    ) -> Expression:
        """The formula of some arguments, constants and, behind these, coefficients.

        `tree` is another way to write the template (`alternatives`).
        """

        def replace(node: Expression) -> Expression | None:
            if isinstance(node, Variable):
                return arguments[node.index]
            return constants[node.index] if isinstance(node, Parameter) else None

        return substitute(self.tree if tree is None else tree, replace)


@lru_cache(maxsize=1024)
def compiled(spec: FamilySpec) -> Family:
    """The family of a row.

    Raises
    ------
    ValueError
        If a formula cannot be read, or the constants are not those that the template names.
    """
    tree = _read(spec, spec.template)
    positive = tuple(_read(spec, text) for text in spec.positive)
    named = (*spec.constants, *spec.coefficients)
    unused = [
        name for place, name in enumerate(named) if all(Parameter(place) != node for node in walk(tree))
    ]
    if unused or len(variables(tree)) < spec.arity:
        missing = unused[0] if unused else ARGUMENTS[0]
        raise ValueError(f"family {spec.name!a}: {missing!a} does not occur in {spec.template!a}")
    return Family(spec, tree, operators(tree), positive)


def _read(spec: FamilySpec, text: str) -> Expression:
    """A formula in the arguments, constants and coefficients of a row."""
    arguments = ARGUMENTS[: spec.arity]

    def replace(node: Expression) -> Expression | None:
        place = node.index - len(arguments) if isinstance(node, Variable) else -1
        return Parameter(place) if place >= 0 else None

    try:
        return substitute(parse(text, (*arguments, *spec.constants, *spec.coefficients)), replace)
    except ValueError as error:
        raise ValueError(f"family {spec.name!a}: {error}") from error


def alternatives(family: Family) -> tuple[Expression, ...]:
    """The template and the other ways to write it."""
    return (family.tree, *(_read(family.spec, text) for text in family.spec.alternatives))


def operators(tree: Expression) -> frozenset[str]:
    """The operators of a template.

    The factor and the sign of a constant do not count, for they can be written otherwise.
    """
    found: set[str] = set()
    for node in walk(tree):
        if isinstance(node, Apply):
            held = [_is_constant(argument) for argument in node.arguments]
            if not ((node.operator == "mul" and any(held)) or (node.operator == "sub" and held[1])):
                found.add(node.operator)
    return frozenset(found)


def _is_constant(tree: Expression) -> bool:
    """Whether it holds parameters and no variables."""
    return not variables(tree) and _has_parameters(tree)


def _has_parameters(tree: Expression) -> bool:
    return any(isinstance(node, Parameter) for node in walk(tree))


# -- values ------------------------------------------------------------------------------------


def numeric(
    trees: Sequence[Expression], arguments: Sequence[FloatArray], tries: FloatArray
) -> list[FloatArray]:
    """Values of formulas that share subtrees, each of a shape that broadcasts to (tries, rows).

    `exp(x) - 1` and `log(1 + x)` are computed without the loss of digits for small x.

    Parameters
    ----------
    trees
        With arguments as variables and constants as parameters.
    arguments
        Each of shape (rows,).
    tries
        Shape (tries, constants).
    """
    known: dict[Expression, FloatArray] = {}

    def value(node: Expression) -> FloatArray:
        match node:
            case Variable(index=index):
                return arguments[index]
            case Parameter(index=index):
                return tries[:, [index]]
            case Number(value=constant) | Symbol(value=constant):
                return np.float64(float(constant))  # type: ignore[return-value]  # a 0-d array broadcasts
        if node not in known:
            known[node] = special(node)
        return known[node]

    def special(node: Apply) -> FloatArray:
        match node:
            case Apply("sub", (Apply("exp", (exponent,)), one)) if one == ONE:
                return np.asarray(np.expm1(value(exponent)))
            case Apply("log", (Apply("add", (one, rest)),)) if one == ONE:
                return np.asarray(np.log1p(value(rest)))
        return OPERATORS[node.operator].evaluate(*map(value, node.arguments))

    return [value(tree) for tree in trees]


# -- linear coefficients -----------------------------------------------------------------------


@dataclass(frozen=True)
class LinearForm:
    """A formula, or its logarithm, as a sum of coefficients times terms.

    Attributes
    ----------
    terms
        In the argument, the argument with a least size (see `arguments`), and the constants inside.
    logarithmic
        Whether the terms add up to the logarithm.
    """

    terms: tuple[Expression, ...]
    logarithmic: bool

    def arguments(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What the terms are functions of. A logarithm of the argument is finite where that is 0."""
        return u, np.maximum(u, _LEAST * np.abs(u).max())


@lru_cache(maxsize=1024)
def linear_form(family: Family) -> LinearForm:
    """How a family depends on its coefficients; without any, on a factor.

    Raises
    ------
    ValueError
        If neither the formula nor its logarithm is linear in them.
    """
    if not family.spec.coefficients:
        return LinearForm((family.tree,), False)
    places = range(family.constants, family.constants + len(family.spec.coefficients))
    for tree, logarithmic in ((family.tree, False), (_logarithm(family.tree), True)):
        if _is_linear(tree, frozenset(map(Parameter, places))):
            terms = (_with_coefficients(tree, places, chosen) for chosen in places)
            return LinearForm(tuple(terms), logarithmic)
    raise ValueError(
        f"family {family.name!a}: neither the formula nor its logarithm is linear in "
        f"{', '.join(family.spec.coefficients)}"
    )


def _logarithm(node: Expression) -> Expression:
    """The logarithm of a product, as a sum."""
    match node:
        case Apply("mul", (left, right)):
            return add(_logarithm(left), _logarithm(right))
        case Apply("div", (left, right)):
            return sub(_logarithm(left), _logarithm(right))
        case Apply("pow", (base, exponent)):
            return mul(exponent, _logarithm(base))
        case Apply("exp", (exponent,)):
            return exponent
    return call("log", _CLIPPED if node == Variable(0) else node)


def _is_linear(node: Expression, coefficients: frozenset[Parameter]) -> bool:
    """Whether each term holds one coefficient, as a factor."""
    match node:
        case Apply("add" | "sub", arguments):
            return all(_is_linear(argument, coefficients) for argument in arguments)
        case Apply("mul", (left, right)):
            if coefficients.isdisjoint(walk(left)):
                return _is_linear(right, coefficients)
            return coefficients.isdisjoint(walk(right)) and _is_linear(left, coefficients)
        case Apply("div", (above, below)):
            return coefficients.isdisjoint(walk(below)) and _is_linear(above, coefficients)
        case Apply("neg", (argument,)):
            return _is_linear(argument, coefficients)
    return node in coefficients


def _with_coefficients(node: Expression, places: range, chosen: int) -> Expression:
    """A formula with 1 for one coefficient and 0 for the others."""
    if isinstance(node, Parameter) and node.index in places:
        return ONE if node.index == chosen else ZERO
    if not isinstance(node, Apply):
        return node
    parts = tuple(_with_coefficients(argument, places, chosen) for argument in node.arguments)
    match node.operator, parts:
        case (("mul" | "div" | "neg"), (first, *_)) if first == ZERO:
            return ZERO
        case "mul", (_, second) if second == ZERO:
            return ZERO
        case ("mul", (first, second)) if first == ONE:
            return second
        case ("mul" | "div", (first, second)) if second == ONE:
            return first
        case ("add", (first, second)) if first == ZERO:
            return second
        case ("add" | "sub", (first, second)) if second == ZERO:
            return first
    return Apply(node.operator, parts)
