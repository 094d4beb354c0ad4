"""Blind variations: subtrees exchanged, inserted, removed and crossed over; constants perturbed and added.

Each variation is a function, registered with its odds where it is defined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from physdiffuser.core.registry import Registry
from physdiffuser.expressions import OPERATORS, Apply, Expression, Number, Variable
from physdiffuser.expressions.tree import Path, positions, replace_at
from physdiffuser.generation.evolution.mutation import Surroundings
from physdiffuser.generation.evolution.population import Individual

_EXPONENTS = (Number(2), Number(3), Number(-1), Number(-2), Number(4), Number(0.5))


class Place(NamedTuple):
    """A random place in a parent, what stands there, and another formula of the population."""

    parent: Expression
    path: Path
    node: Expression
    mate: Expression

    def put(self, new: Expression) -> Expression:
        """The parent with another subtree in the place."""
        return replace_at(self.parent, self.path, new)


Variation = Callable[[Place, Surroundings, np.random.Generator], Expression]
# Each with its odds, which need not add up to 1.
VARIATIONS: Registry[tuple[float, Variation]] = Registry("evolution variation")


def variation(name: str, odds: float) -> Callable[[Variation], Variation]:
    """Register a blind variation: a decorator."""

    def register(vary: Variation) -> Variation:
        VARIATIONS.add(name, (odds, vary))
        return vary

    return register


class BlindMutation:
    """One of the registered variations for each parent."""

    name = "variation"

    def propose(
        self, parents: Sequence[Individual], around: Surroundings, rng: np.random.Generator
    ) -> list[Expression]:
        """One formula for each parent; the parents are each other's mates."""
        variations = list(VARIATIONS.parts().values())
        odds = np.array([odds for odds, _ in variations])
        chosen = rng.choice(len(variations), len(parents), p=odds / odds.sum()).tolist()
        mates = rng.permutation(len(parents)).tolist()
        found: list[Expression] = []
        for parent, which, mate in zip(parents, chosen, mates, strict=True):
            places = positions(parent.expression)
            path, node = places[int(rng.integers(len(places)))]
            place = Place(parent.expression, path, node, parents[mate].expression)
            found.append(variations[which][1](place, around, rng))
        return found


@variation("subtree", 0.22)
def exchange(place: Place, around: Surroundings, rng: np.random.Generator) -> Expression:
    """A leaf or a building block in the place."""
    return place.put(_leaf(around, rng) if rng.random() < 0.3 else around.blocks.draw(rng))


@variation("insert", 0.20)
def insert(place: Place, around: Surroundings, rng: np.random.Generator) -> Expression:
    """An operator above the place, with another argument where it has two."""
    node = place.node
    if around.unary and rng.random() < 0.35:
        return place.put(Apply(around.unary[int(rng.integers(len(around.unary)))], (node,)))
    if not around.binary:
        return place.put(node)
    operator = around.binary[int(rng.integers(len(around.binary)))]
    if operator == "pow":
        exponent: Expression = _EXPONENTS[int(rng.integers(len(_EXPONENTS)))]
        if rng.random() < 0.2:
            exponent = _leaf(around, rng)
        return place.put(Apply("pow", (node, exponent)))
    other = _leaf(around, rng) if rng.random() < 0.6 else around.blocks.draw(rng)
    pair = (node, other) if rng.random() < 0.6 else (other, node)
    return place.put(Apply(operator, pair))


@variation("remove", 0.10)
def remove(place: Place, around: Surroundings, rng: np.random.Generator) -> Expression:
    """One of the arguments instead of an operator."""
    if not isinstance(place.node, Apply):
        return place.put(place.node)
    return place.put(place.node.arguments[int(rng.integers(len(place.node.arguments)))])


@variation("operator", 0.10)
def other_operator(place: Place, around: Surroundings, rng: np.random.Generator) -> Expression:
    """Another operator on the same arguments, at times exchanged; another leaf instead of a leaf."""
    node = place.node
    if not isinstance(node, Apply):
        return place.put(_leaf(around, rng))
    choice = around.unary if OPERATORS[node.operator].arity == 1 else around.binary
    operator = choice[int(rng.integers(len(choice)))] if choice else node.operator
    if operator == "pow" and node.operator != "pow":
        return place.put(Apply("pow", (node.arguments[0], Number(2))))
    arguments = node.arguments
    if len(arguments) == 2 and rng.random() < 0.3 and operator != "pow":
        arguments = (arguments[1], arguments[0])
    return place.put(Apply(operator, arguments))


@variation("constant", 0.08)
def perturb(place: Place, around: Surroundings, rng: np.random.Generator) -> Expression:
    """A constant or an exponent of the parent, in whatever place, with another value."""
    places = [
        (path, node)
        for path, node in positions(place.parent)
        if isinstance(node, Number) and (isinstance(node.value, float) or path[-1:] == (1,))
    ]
    if not places:
        return place.parent
    path, node = places[int(rng.integers(len(places)))]
    if node.exact and rng.random() < 0.5:
        new: Expression = _EXPONENTS[int(rng.integers(len(_EXPONENTS)))]
    else:
        value = float(node.value) * float(np.exp(rng.normal(0.0, 0.5)))
        new = Number(-value if rng.random() < 0.1 else value)
    return replace_at(place.parent, path, new)


@variation("parameter", 0.10)
def add_parameter(place: Place, around: Surroundings, rng: np.random.Generator) -> Expression:
    """A constant to fit: `c*f`, `f + c`, `f**c`."""
    constant = Number(_log_uniform(rng))
    draw = rng.random()
    if isinstance(place.node, Number):
        return place.put(constant)
    if draw < 0.4:
        return place.put(Apply("mul", (constant, place.node)))
    if draw < 0.85:
        return place.put(Apply("add" if rng.random() < 0.5 else "sub", (place.node, constant)))
    return place.put(Apply("pow", (place.node, constant)))


@variation("crossover", 0.20)
def cross_over(place: Place, around: Surroundings, rng: np.random.Generator) -> Expression:
    """A subtree of another formula in the place."""
    others = positions(place.mate)
    return place.put(others[int(rng.integers(len(others)))][1])


def _leaf(around: Surroundings, rng: np.random.Generator) -> Expression:
    draw = rng.random()
    if draw < 0.15:
        return Number(_log_uniform(rng))
    if draw < 0.25 and around.constants:
        return around.constants[int(rng.integers(len(around.constants)))]
    return Variable(around.columns[int(rng.integers(len(around.columns)))])


def _log_uniform(rng: np.random.Generator) -> float:
    return float(np.exp(rng.uniform(np.log(0.05), np.log(20.0))))
