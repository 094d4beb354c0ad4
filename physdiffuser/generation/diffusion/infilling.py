"""Infilling: resample a part of a formula given the rest and the data. A learned mutation."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from physdiffuser.expressions import Apply, Expression, Variable, to_prefix
from physdiffuser.expressions.tree import free_constants, size, substitute, variables, walk
from physdiffuser.models.tokens.skeleton import without_linear_coefficients

if TYPE_CHECKING:
    import numpy as np

    from physdiffuser.core.problem import Problem
    from physdiffuser.generation.diffusion.generator import DiffusionGenerator
    from physdiffuser.models.features.reading import Reader

_HOLE = 1_000_000
# Larger parts are not written anew by `Infiller.rewritten`.
_MAX_HOLE = 9
# By how many tokens a new subtree may be longer.
_ROOM = 4


class Infiller:
    """Proposes replacements for a subtree of a formula.

    Parameters
    ----------
    generator
        Holds the weights and the way of sampling.

    Notes
    -----
    The table is encoded once; a call costs one pass of the sampler.
    """

    def __init__(
        self,
        generator: DiffusionGenerator,
        problem: Problem,
        reader: Reader | None = None,
        rng: np.random.Generator | None = None,
    ) -> None:
        from physdiffuser.models.features.reading import Reader
        from physdiffuser.models.proposing import encode_readings
        from physdiffuser.models.tokens.grammar import Grammar
        from physdiffuser.models.written import permitted_tokens

        self.generator, self.problem = generator, problem
        self.reader = Reader(problem) if reader is None else reader
        self.model = generator.model()
        self.reading = self.reader.read(problem.generator(11) if rng is None else rng)
        self.memory, self.mask = encode_readings(self.model, [self.reading])
        names = self.model.vocabulary
        permitted = permitted_tokens(self.reading, problem.operators, names.tokens)
        self.sampler = generator.sampler(self.model, Grammar(names, permitted))
        self._place = {column: place for place, column in enumerate(self.reading.columns) if column >= 0}

    def rewritten(
        self, formula: Expression, holes: int, count: int, rng: np.random.Generator
    ) -> list[Expression]:
        """Skeletons in which one of several subtrees was written anew, most often written first.

        All holes are filled in one pass: rows are filled up with the end of the sequence, as in training.

        Parameters
        ----------
        formula
            Over the problem's columns.
        holes
            How many subtrees are tried; small ones, and each at most once.
        count
            How many formulas to write, shared out over holes and lengths.
        """
        import torch

        from physdiffuser.models.shipped import inference_precision
        from physdiffuser.models.written import read_formula

        sizes = [size(node) for node in walk(formula)]
        places = [place for place in range(1, len(sizes)) if sizes[place] <= _MAX_HOLE]
        chosen = rng.permutation(places)[:holes]
        rows: list[list[int]] = []
        mask_token, end = self.sampler.denoiser.mask_token, self.sampler.grammar.end
        for place in chosen:
            sides = self._sides(formula, int(place))
            if sides is None:
                continue
            before, after = sides
            longest = min(sizes[place] + _ROOM, self.model.config.length - 1 - len(before) - len(after))
            lengths = rng.integers(1, longest + 1, max(1, count // len(chosen))) if longest > 0 else ()
            rows.extend([*before, *[mask_token] * int(hole), *after, end] for hole in lengths)
        if not rows:
            return []
        window = max(map(len, rows))
        start = torch.tensor(
            [[*row, *[end] * (window - len(row))] for row in rows], device=self.memory.device
        )
        memory, mask = self.memory.expand(len(rows), -1, -1), self.mask.expand(len(rows), -1)
        with inference_precision(memory.device):
            filled = self.sampler.fill(start, memory, mask, rng)
        names = self.model.vocabulary.tokens
        votes: Counter[Expression] = Counter()
        for written in filled:
            found = (
                None if written is None else read_formula([names[token] for token in written], self.reading)
            )
            if found is not None:
                votes[found] += 1
        return [expression for expression, _ in votes.most_common()]

    def _sides(self, formula: Expression, position: int) -> tuple[list[int], list[int]] | None:
        """Token ids before and after the hole, or None if the network cannot read them."""
        # The hole is marked by a variable that no table has, so that it survives the rewriting below.
        skeleton, _ = free_constants(_with_hole(formula, position))
        placed = self._placed(without_linear_coefficients(skeleton))
        tokens = [] if placed is None else to_prefix(placed)
        marker = f"x{_HOLE + 1}"
        if tokens.count(marker) != 1:
            return None
        place = tokens.index(marker)
        ids = self.model.vocabulary.ids
        if not all(token in ids for token in tokens if token != marker):
            return None
        encode = self.model.vocabulary.encode
        return encode(tokens[:place]), encode(tokens[place + 1 :])

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
