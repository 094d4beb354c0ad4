"""Variations: formulas in, formulas out.

A variation that is not blind (a learned infilling model that masks a subtree and fills it in given the
data, say) is one more `Mutation` in the list that the generator is built with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from physdiffuser.expressions import ONE, Apply, Expression, Symbol
from physdiffuser.expressions.tree import Path, positions, replace_at
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


# Without its offset a formula may need none once the right part is in.
_NO_OUTER = (1.0, 0.0)
_OUTER = ("sqrt", "exp", "log")
# Prices of a unit of complexity; a block is taken for each.
_PARSIMONY = (0.01, 0.1, 0.4)


class SemanticMutation:
    """A subtree replaced by the building block that comes closest to the target of its place."""

    name = "replacement by the nearest building block"

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
        found = answers([wanted for _, wanted in asked], around.blocks, _PARSIMONY)
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
