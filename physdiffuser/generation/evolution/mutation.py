"""Variations: formulas in, formulas out.

A variation that is not blind (a learned infilling model that masks a subtree and fills it in given the
data, say) is one more `Mutation` in the list that the generator is built with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from physdiffuser.expressions import ONE, OPERATORS, Apply, Expression, Number, Symbol, Variable
from physdiffuser.expressions.places import Path, positions, replace_at
from physdiffuser.generation.evolution.blocks import Blocks
from physdiffuser.generation.evolution.population import Individual
from physdiffuser.generation.evolution.scoring import Scorer
from physdiffuser.generation.evolution.semantic import answers
from physdiffuser.library.subtree_target import SubtreeTarget, subtree_target


@dataclass(frozen=True)
class Surroundings:
    """What a variation may use.

    Attributes
    ----------
    blocks
        Ready-made subtrees.
    scorer
        The rows, in scaled columns; evaluates subtrees.
    unary, binary
        Names of the allowed operators.
    constants
        Named constants that may occur.
    columns
        Input columns that are worth using.
    to_table, from_table
        A formula from scaled columns to the table's own, up to a constant factor, and back: for
        variations that know the table only.
    """

    blocks: Blocks
    scorer: Scorer
    unary: tuple[str, ...]
    binary: tuple[str, ...]
    constants: tuple[Symbol, ...]
    columns: tuple[int, ...]
    to_table: Callable[[Expression], Expression]
    from_table: Callable[[Expression], Expression]


class Mutation(Protocol):
    """Makes new formulas from parents."""

    name: str

    def propose(
        self, parents: Sequence[Individual], around: Surroundings, rng: np.random.Generator
    ) -> list[Expression]:
        """New formulas, in scaled columns, any number of them; random only through `rng`."""
        ...


# Odds of the blind variations.
_ODDS = {
    "subtree": 0.22,
    "insert": 0.20,
    "remove": 0.10,
    "operator": 0.10,
    "constant": 0.08,
    "parameter": 0.10,
    "crossover": 0.20,
}
_EXPONENTS = (Number(2), Number(3), Number(-1), Number(-2), Number(4), Number(0.5))


class BlindMutation:
    """Subtrees exchanged, inserted, removed and crossed over at random; constants perturbed and added."""

    name = "variation"

    def propose(
        self, parents: Sequence[Individual], around: Surroundings, rng: np.random.Generator
    ) -> list[Expression]:
        """One formula for each parent; the parents are each other's mates."""
        kinds = rng.choice(list(_ODDS), len(parents), p=list(_ODDS.values())).tolist()
        mates = rng.permutation(len(parents)).tolist()
        return [
            self._vary(kind, parent.expression, parents[mate].expression, around, rng)
            for kind, parent, mate in zip(kinds, parents, mates, strict=True)
        ]

    def _vary(
        self,
        kind: str,
        parent: Expression,
        mate: Expression,
        around: Surroundings,
        rng: np.random.Generator,
    ) -> Expression:
        places = positions(parent)
        path, node = places[int(rng.integers(len(places)))]
        match kind:
            case "subtree":
                new = self._leaf(around, rng) if rng.random() < 0.3 else around.blocks.draw(rng)
            case "insert":
                new = self._insert(node, around, rng)
            case "remove":
                new = self._remove(node, rng)
            case "operator":
                new = self._other_operator(node, around, rng)
            case "constant":
                return self._perturb(parent, rng)
            case "parameter":
                new = self._parameter(node, rng)
            case _:
                others = positions(mate)
                new = others[int(rng.integers(len(others)))][1]
        return replace_at(parent, path, new)

    def _leaf(self, around: Surroundings, rng: np.random.Generator) -> Expression:
        draw = rng.random()
        if draw < 0.15:
            return Number(_log_uniform(rng))
        if draw < 0.25 and around.constants:
            return around.constants[int(rng.integers(len(around.constants)))]
        return Variable(around.columns[int(rng.integers(len(around.columns)))])

    def _insert(self, node: Expression, around: Surroundings, rng: np.random.Generator) -> Expression:
        if around.unary and rng.random() < 0.35:
            return Apply(around.unary[int(rng.integers(len(around.unary)))], (node,))
        if not around.binary:
            return node
        operator = around.binary[int(rng.integers(len(around.binary)))]
        if operator == "pow":
            exponent: Expression = _EXPONENTS[int(rng.integers(len(_EXPONENTS)))]
            if rng.random() < 0.2:
                exponent = self._leaf(around, rng)
            return Apply("pow", (node, exponent))
        other = self._leaf(around, rng) if rng.random() < 0.6 else around.blocks.draw(rng)
        pair = (node, other) if rng.random() < 0.6 else (other, node)
        return Apply(operator, pair)

    def _remove(self, node: Expression, rng: np.random.Generator) -> Expression:
        if not isinstance(node, Apply):
            return node
        return node.arguments[int(rng.integers(len(node.arguments)))]

    def _other_operator(self, node: Expression, around: Surroundings, rng: np.random.Generator) -> Expression:
        if not isinstance(node, Apply):
            return self._leaf(around, rng)
        choice = around.unary if OPERATORS[node.operator].arity == 1 else around.binary
        operator = choice[int(rng.integers(len(choice)))] if choice else node.operator
        if operator == "pow" and node.operator != "pow":
            return Apply("pow", (node.arguments[0], Number(2)))
        arguments = node.arguments
        if len(arguments) == 2 and rng.random() < 0.3 and operator != "pow":
            arguments = (arguments[1], arguments[0])
        return Apply(operator, arguments)

    def _perturb(self, parent: Expression, rng: np.random.Generator) -> Expression:
        places = [
            (path, node)
            for path, node in positions(parent)
            if isinstance(node, Number) and (isinstance(node.value, float) or path[-1:] == (1,))
        ]
        if not places:
            return parent
        path, node = places[int(rng.integers(len(places)))]
        assert isinstance(node, Number)
        if node.exact and rng.random() < 0.5:
            new: Expression = _EXPONENTS[int(rng.integers(len(_EXPONENTS)))]
        else:
            value = float(node.value) * float(np.exp(rng.normal(0.0, 0.5)))
            new = Number(-value if rng.random() < 0.1 else value)
        return replace_at(parent, path, new)

    def _parameter(self, node: Expression, rng: np.random.Generator) -> Expression:
        """A constant to fit: `c*f`, `f + c`, `f**c`."""
        constant = Number(_log_uniform(rng))
        draw = rng.random()
        if isinstance(node, Number):
            return constant
        if draw < 0.4:
            return Apply("mul", (constant, node))
        if draw < 0.85:
            return Apply("add" if rng.random() < 0.5 else "sub", (node, constant))
        return Apply("pow", (node, constant))


# Without its offset a formula may need none once the right part is in.
_NO_OUTER = (1.0, 0.0)
_OUTER = ("sqrt", "exp", "log")


class SemanticMutation:
    """A subtree replaced by the building block that comes closest to what the data ask of its place."""

    name = "replacement by what the data ask"

    def __init__(self, parsimony: tuple[float, ...] = (0.01, 0.1, 0.4)) -> None:
        self.parsimony = parsimony

    def propose(
        self, parents: Sequence[Individual], around: Surroundings, rng: np.random.Generator
    ) -> list[Expression]:
        """Up to one formula for each parent and price of complexity."""
        asked: list[tuple[_Place, SubtreeTarget]] = []
        for parent in parents:
            found = positions(parent.expression)
            path, node = found[int(rng.integers(len(found)))]
            outer = (parent.factor, parent.offset) if rng.random() < 0.5 else _NO_OUTER
            asked += self._ask(parent.expression, path, node, outer, around)
        return self._fill(asked, around)

    def everywhere(self, parent: Individual, around: Surroundings) -> list[Expression]:
        """Formulas for every place in one parent."""
        asked: list[tuple[_Place, SubtreeTarget]] = []
        for path, node in positions(parent.expression):
            asked += self._ask(parent.expression, path, node, (parent.factor, parent.offset), around)
            if parent.offset:
                asked += self._ask(parent.expression, path, node, _NO_OUTER, around)
        return self._fill(asked, around)

    def pairs(self, count: int, around: Surroundings, rng: np.random.Generator) -> list[Expression]:
        """Random blocks, each under a random outer function, with the best block beside it."""
        asked: list[tuple[_Place, SubtreeTarget]] = []
        outer = [name for name in _OUTER if name in around.unary]
        for _ in range(count):
            block = around.blocks.draw(rng)
            draw = rng.random()
            whole: Expression = block
            path: Path = ()
            if draw < 0.2 and "div" in around.binary:
                whole, path = Apply("div", (ONE, block)), (1,)
            elif draw < 0.5 and outer:
                whole, path = Apply(outer[int(rng.integers(len(outer)))], (block,)), (0,)
            asked += self._ask(whole, path, block, _NO_OUTER, around)
        return self._fill(asked, around)

    def _ask(
        self,
        whole: Expression,
        path: Path,
        node: Expression,
        outer: tuple[float, float],
        around: Surroundings,
    ) -> list[tuple[_Place, SubtreeTarget]]:
        """What should stand in a place, be added to what stands there, or be multiplied with it."""
        wanted = subtree_target(around.scorer, whole, path, *outer)
        if wanted is None:
            return []
        asked = [(_Place(whole, path), wanted)]
        present = around.scorer.values([node])[0]
        for operator in ("add", "mul"):
            extra = wanted.beside(operator, present)
            if extra is not None:
                asked.append((_Place(whole, path, operator, node), extra))
        return asked

    def _fill(self, asked: list[tuple[_Place, SubtreeTarget]], around: Surroundings) -> list[Expression]:
        found = answers([wanted for _, wanted in asked], around.blocks, self.parsimony)
        return [place.fill(term) for (place, _), terms in zip(asked, found, strict=True) for term in terms]


@dataclass(frozen=True)
class _Place:
    """Where a term goes: in place of a subtree, or beside it under an operator."""

    whole: Expression
    path: Path
    operator: str | None = None
    kept: Expression | None = None

    def fill(self, term: Expression) -> Expression:
        if self.operator is not None and self.kept is not None:
            term = Apply(self.operator, (self.kept, term))
        return replace_at(self.whole, self.path, term)


def _log_uniform(rng: np.random.Generator) -> float:
    return float(np.exp(rng.uniform(np.log(0.05), np.log(20.0))))
