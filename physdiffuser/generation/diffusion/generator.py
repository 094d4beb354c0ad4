"""The diffusion generator: samples from the denoiser, constants fitted; and infilling of a given formula."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from physdiffuser.config import DiffusionSampling
from physdiffuser.errors import UsageError
from physdiffuser.models.proposing import LearnedGenerator

if TYPE_CHECKING:
    from torch import Tensor

    from physdiffuser.core.archive import Archive
    from physdiffuser.core.problem import Problem
    from physdiffuser.expressions import Expression
    from physdiffuser.generation.diffusion.sampler import DiffusionSampler
    from physdiffuser.models.features.reading import Reader
    from physdiffuser.models.network import LawModel
    from physdiffuser.models.tokens.grammar import Grammar

# Formulas of the front that are rewritten in a round, and subtrees masked in each.
_REWRITTEN = 4
_HOLES = 4


class DiffusionGenerator(LearnedGenerator):
    """Writes formulas in any order, the surest tokens first.

    Parameters
    ----------
    sampling
        Fields of `physdiffuser.config.DiffusionSampling` to use instead of those of the weights.
    options
        Those of `LearnedGenerator`.
    """

    name = "diffusion"
    part = "diffusion"

    def __init__(self, *, sampling: Mapping[str, Any] | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.changes = dict(sampling or {})

    def skeletons(
        self, problem: Problem, reader: Reader, archive: Archive, number: int
    ) -> Iterator[tuple[Expression, int] | None]:
        """See `LearnedGenerator.skeletons`: after the first round, every other round rewrites parts.

        It takes the best formulas so far, from whichever generator, masks random subtrees of each
        and lets the network write it anew, given the rest and the rows.
        """
        best = archive.front()[-_REWRITTEN:] if number % 2 else []
        if not best:
            yield from super().skeletons(problem, reader, archive, number)
            return
        from physdiffuser.generation.diffusion.infilling import Infiller

        rng = problem.generator(23, number)
        infiller = Infiller(self, problem, reader, rng)
        yield None
        votes: Counter[Expression] = Counter()
        for entry in best:
            formula = entry.candidate.expression
            votes.update(infiller.rewritten(formula, _HOLES, max(1, self.candidates // len(best)), rng))
            yield None
        yield from votes.most_common()

    def options(self, model: LawModel) -> DiffusionSampling:
        """How to sample: the weights' configuration with the changes asked for.

        Raises
        ------
        UsageError
            If a change is not a valid setting.
        """
        from pydantic import ValidationError

        settings = {**model.config.diffusion_sampling.model_dump(), **self.changes}
        try:
            return DiffusionSampling.model_validate(settings)
        except ValidationError as error:
            first = error.errors()[0]
            raise UsageError(f"diffusion sampling, {first['loc']}: {first['msg']}") from error

    def sampler(self, model: LawModel, grammar: Grammar) -> DiffusionSampler:
        """A sampler that writes what the grammar permits."""
        import torch

        from physdiffuser.generation.diffusion.sampler import DiffusionSampler

        if model.denoiser is None:
            raise ValueError("the model was loaded without its denoiser")

        def nothing(memory: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
            everyone = torch.ones(memory.shape[0], dtype=torch.bool, device=memory.device)
            return model.without_condition(memory, mask, everyone)

        return DiffusionSampler(model.denoiser, grammar, self.options(model), nothing)

    def write(
        self, model: LawModel, memory: Tensor, mask: Tensor, grammar: Grammar, rng: np.random.Generator
    ) -> Iterator[list[tuple[int, tuple[int, ...]]]]:
        """See `LearnedGenerator.write`: windows of several lengths, an equal share of each."""
        import torch

        options = self.options(model)
        for position, length in enumerate(options.windows):
            window = min(length, model.config.length)
            share = self.candidates // len(options.windows)
            share += position < self.candidates % len(options.windows)
            if share == 0:
                continue
            rows = np.arange(share) % len(memory)
            chosen = torch.from_numpy(rows).to(memory.device)
            sampler = self.sampler(model, grammar.repeated(rows))
            start = torch.full((share, window), sampler.denoiser.mask_token, device=memory.device)
            filled = sampler.fill(start, memory[chosen], mask[chosen], rng)
            yield [(int(row), ids) for row, ids in zip(rows, filled, strict=True) if ids is not None]
