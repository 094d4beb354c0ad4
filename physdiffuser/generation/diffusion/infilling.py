"""Infilling: resample a part of a formula given the rest and the data. A learned mutation."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from physdiffuser.expressions import Apply, Expression, Variable, to_prefix
from physdiffuser.expressions.tree import free_constants, size, substitute, variables, walk
from physdiffuser.models.tokens.skeleton import with_linear_coefficients, without_linear_coefficients

if TYPE_CHECKING:
    import numpy as np

    from physdiffuser.core.problem import Problem
    from physdiffuser.generation.diffusion.generator import DiffusionGenerator
    from physdiffuser.models.features.reading import Reader

_HOLE = 1_000_000
# Larger parts are not written anew by `Infiller.rewritten`.
_LARGEST_HOLE = 9


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
        chosen = self.reader.chosen

        def replace(node: Expression) -> Expression | None:
            return Variable(chosen[node.index]) if isinstance(node, Variable) else None

        written = self.bare_infill(formula, position, count, rng, room)
        return [with_linear_coefficients(substitute(skeleton, replace)) for skeleton in written]

    def bare_infill(
        self, formula: Expression, position: int, count: int, rng: np.random.Generator, room: int = 4
    ) -> list[Expression]:
        """As `infill`, but over the reader's columns and without linear coefficients."""
        import torch

        from physdiffuser.models.shipped import inference_precision
        from physdiffuser.models.written import read_formula

        nodes = list(walk(formula))
        if not 0 <= position < len(nodes):
            raise ValueError(f"position {position} is not in the formula of {len(nodes)} nodes")
        length = size(nodes[position])
        sides = self._sides(formula, position)
        if sides is None:
            return []
        before, after = sides
        longest = min(length + room, self.model.config.length - 1 - len(before) - len(after))
        votes: Counter[Expression] = Counter()
        for hole in range(1, longest + 1):
            share = count // longest + (hole <= count % longest)
            if share == 0:
                continue
            row = [*before, *[self.sampler.denoiser.mask_token] * hole, *after, self.sampler.grammar.end]
            start = torch.tensor([row] * share, device=self.memory.device)
            memory, mask = self.memory.expand(share, -1, -1), self.mask.expand(share, -1)
            with inference_precision(memory.device):
                filled = self.sampler.fill(start, memory, mask, rng)
            for written in filled:
                if written is None:
                    continue
                names = self.model.vocabulary.tokens
                found = read_formula([names[token] for token in written], self.reading)
                if found is not None:
                    votes[found] += 1
        return [expression for expression, _ in votes.most_common()]

    def rewritten(
        self, formula: Expression, holes: int, count: int, rng: np.random.Generator, room: int = 4
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
        rng
            Source of all noise.
        room
            By how many tokens a new subtree may be longer.
        """
        import torch

        from physdiffuser.models.shipped import inference_precision
        from physdiffuser.models.written import read_formula

        sizes = [size(node) for node in walk(formula)]
        places = [place for place in range(1, len(sizes)) if sizes[place] <= _LARGEST_HOLE]
        chosen = rng.permutation(places)[:holes]
        rows: list[list[int]] = []
        mask_token, end = self.sampler.denoiser.mask_token, self.sampler.grammar.end
        for place in chosen:
            sides = self._sides(formula, int(place))
            if sides is None:
                continue
            before, after = sides
            longest = min(sizes[place] + room, self.model.config.length - 1 - len(before) - len(after))
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


def subtrees(formula: Expression) -> list[int]:
    """Positions at which a subtree can be replaced: every operator but the root."""
    return [index for index, node in enumerate(walk(formula)) if index > 0 and isinstance(node, Apply)]
