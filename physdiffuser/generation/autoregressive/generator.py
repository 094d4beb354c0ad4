"""The autoregressive generator: beam search and samples from the decoder, constants fitted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.models.proposing import LearnedGenerator

if TYPE_CHECKING:
    from torch import Tensor

    from physdiffuser.core.problem import Problem
    from physdiffuser.expressions import Expression
    from physdiffuser.models.likelihood import FormLikelihood
    from physdiffuser.models.network import LawModel
    from physdiffuser.models.tokens.grammar import Grammar

_JUDGING = 12
"""Marks the random numbers of `form_nats`."""


class AutoregressiveGenerator(LearnedGenerator):
    """Writes formulas from the first token to the last.

    Parameters
    ----------
    temperature, beams, top_k, nucleus
        Instead of those in the configuration of the weights (`physdiffuser.config.AutoregressiveSampling`).
    options
        Those of `LearnedGenerator`.
    """

    name = "autoregressive"
    part = "autoregressive"

    def __init__(
        self,
        *,
        temperature: float | None = None,
        beams: int | None = None,
        top_k: int | None = None,
        nucleus: float | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        given = {"temperature": temperature, "beams": beams, "top_k": top_k, "nucleus": nucleus}
        self.changes = {name: value for name, value in given.items() if value is not None}
        self._read: tuple[Problem, FormLikelihood] | None = None

    def write(
        self, model: LawModel, memory: Tensor, mask: Tensor, grammar: Grammar, rng: np.random.Generator
    ) -> Iterator[list[tuple[int, tuple[int, ...]]]]:
        """See `LearnedGenerator.write`: a part by beam search, the rest sampled."""
        import torch

        from physdiffuser.generation.autoregressive.sampler import beam_search, sample

        decoder = model.decoder
        if decoder is None:
            raise ValueError("the model was loaded without its autoregressive decoder")
        options = model.config.autoregressive_sampling.model_copy(update=self.changes)
        beams = options.beams
        places = model.config.length - 1
        count = 0
        if beams:
            # One reading is enough: the beams of the others would mostly be the same formulas.
            found = beam_search(
                decoder,
                grammar.row(0),
                memory[:1],
                mask[:1],
                places=places,
                beams=min(beams, self.candidates),
            )
            count = len(found)
            yield [(0, item.tokens) for item in found]
        rows = np.arange(self.candidates - count) % len(memory)
        if len(rows):
            chosen = torch.from_numpy(rows).to(memory.device)
            found = sample(
                decoder,
                grammar.repeated(rows),
                memory[chosen],
                mask[chosen],
                places=places,
                options=options,
                rng=rng,
            )
            yield [(int(row), item.tokens) for row, item in zip(rows, found, strict=True)]

    def form_nats(self, problem: Problem, formulas: Sequence[Expression]) -> FloatArray:
        """See `physdiffuser.core.generator.FormPrior`."""
        from physdiffuser.models.likelihood import FormLikelihood

        if self._read is None or self._read[0] is not problem:
            rng = problem.generator(_JUDGING)
            self._read = problem, FormLikelihood(self.model(), problem, readings=self.readings, rng=rng)
        return self._read[1].nats(formulas)
