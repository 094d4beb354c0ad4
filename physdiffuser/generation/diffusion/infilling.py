"""Infilling: resample a part of a formula given the rest and the data. A learned mutation."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from physdiffuser.expressions import Apply, Expression, Variable, to_prefix
from physdiffuser.expressions.tree import free_constants, size, substitute, variables, walk
from physdiffuser.models.skeleton import bare, dressed

if TYPE_CHECKING:
    import numpy as np

    from physdiffuser.generation.diffusion.generator import DiffusionGenerator
    from physdiffuser.models.reading import Reader
    from physdiffuser.search.problem import Problem

_HOLE = 1_000_000


class Infiller:
    """Proposes replacements for a subtree of a formula.

    Parameters
    ----------
    generator
        Holds the weights and the way of sampling.
    problem
        The data.

    Notes
    -----
    The table is encoded once; a call costs one pass of the sampler.
    """

    def __init__(self, generator: DiffusionGenerator, problem: Problem) -> None:
        from physdiffuser.models.grammar import Grammar
        from physdiffuser.models.proposing import encode_readings
        from physdiffuser.models.reading import Reader
        from physdiffuser.models.writing import permitted_tokens

        self.generator, self.problem = generator, problem
        self.reader: Reader = Reader(problem)
        self.model = generator.model()
        self.reading = self.reader.read(problem.generator(11))
        self.memory, self.mask = encode_readings(self.model, [self.reading])
        names = self.model.vocabulary
        permitted = permitted_tokens(self.reading, problem.operators, names.tokens)
        self.sampler = generator.sampler(self.model, Grammar(names, permitted))
        self._place = {column: place for place, column in enumerate(self.reading.columns) if column >= 0}

    def infill(
        self, formula: Expression, position: int, count: int, rng: np.random.Generator, room: int = 4
    ) -> list[Expression]:
        """Skeletons in which the subtree at `position` was written anew.

        Parameters
        ----------
        formula
            Over the problem's columns. Its fitted constants become constant placeholders.
        position
            Of the root of the subtree, in the order of `physdiffuser.expressions.tree.walk`.
        count
            How many to write. Lengths from one token to `room` more than the subtree has are shared
            out evenly.
        rng
            Source of all noise.
        room
            By how many tokens the new subtree may be longer.

        Returns
        -------
        Distinct skeletons over the problem's columns, most often written first, with a parameter
        wherever a constant is to be fitted. Empty when the formula uses columns or numbers that the
        network cannot read, or is too long.
        """
        import torch

        from physdiffuser.models.shipped import inference_precision
        from physdiffuser.models.writing import read_formula

        nodes = list(walk(formula))
        if not 0 <= position < len(nodes):
            raise ValueError(f"position {position} is not in the formula of {len(nodes)} nodes")
        length = size(nodes[position])
        # The hole is marked by a variable that no table has, so that it survives the rewriting below.
        skeleton, _ = free_constants(_with_hole(formula, position))
        placed = self._placed(bare(skeleton))
        if placed is None:
            return []
        tokens = to_prefix(placed)
        hole_token = f"x{_HOLE + 1}"
        if tokens.count(hole_token) != 1:
            return []
        position = tokens.index(hole_token)
        names = self.model.vocabulary
        first, second = tokens[:position], tokens[position + 1 :]
        if not all(token in names.ids for token in (*first, *second)):
            return []
        before, after = names.encode(first), names.encode(second)
        longest = min(length + room, self.model.config.length - 1 - len(before) - len(after))
        votes: Counter[Expression] = Counter()
        for hole in range(1, longest + 1):
            share = count // longest + (hole <= count % longest)
            if share == 0:
                continue
            masks = [self.sampler.denoiser.mask_token] * hole
            row = [*before, *masks, *after, self.sampler.grammar.end]
            start = torch.tensor([row] * share, device=self.memory.device)
            memory, mask = self.memory.expand(share, -1, -1), self.mask.expand(share, -1)
            with inference_precision(memory.device):
                filled = self.sampler.fill(start, memory, mask, rng)
            for written in filled:
                if written is None:
                    continue
                found = read_formula([names.tokens[token] for token in written], self.reading)
                if found is not None:
                    votes[self._restored(found)] += 1
        return [expression for expression, _ in votes.most_common()]

    def _placed(self, skeleton: Expression) -> Expression | None:
        """The skeleton with the places of its columns as variables; None if a column was not read."""
        position = {column: index for index, column in enumerate(self.reader.chosen)}
        if variables(skeleton) - set(position) - {_HOLE}:
            return None

        def replace(node: Expression) -> Expression | None:
            if not isinstance(node, Variable) or node.index == _HOLE:
                return None
            return Variable(self._place[position[node.index]])

        return substitute(skeleton, replace)

    def _restored(self, skeleton: Expression) -> Expression:
        def replace(node: Expression) -> Expression | None:
            return Variable(self.reader.chosen[node.index]) if isinstance(node, Variable) else None

        return dressed(substitute(skeleton, replace))


def _with_hole(formula: Expression, position: int) -> Expression:
    """The formula with the hole's variable in place of the subtree at a position."""
    count = -1

    def visit(node: Expression) -> Expression:
        nonlocal count
        count += 1
        if count == position:
            count += size(node) - 1
            return Variable(_HOLE)
        if not isinstance(node, Apply):
            return node
        return Apply(node.operator, tuple(visit(argument) for argument in node.arguments))

    return visit(formula)


def subtrees(formula: Expression) -> list[int]:
    """Positions at which a subtree can be replaced: every operator but the root."""
    return [index for index, node in enumerate(walk(formula)) if index > 0 and isinstance(node, Apply)]
