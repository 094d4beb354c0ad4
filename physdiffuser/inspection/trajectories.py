"""How the diffusion generator fills a window: what stood where before every step, and how sure it was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from physdiffuser.arrays import BoolArray, FloatArray, IndexArray, IntArray
from physdiffuser.config import DiffusionSampling
from physdiffuser.errors import UsageError
from physdiffuser.generation.diffusion.sampler import DiffusionSampler
from physdiffuser.inspection.networks import quiet_networks
from physdiffuser.inspection.session import Showing
from physdiffuser.inspection.tokens import kind_of
from physdiffuser.models.tokens.grammar import Grammar
from physdiffuser.models.tokens.vocabulary import EOS
from physdiffuser.models.written import permitted_tokens

if TYPE_CHECKING:
    from collections.abc import Sequence


class RecordingSampler(DiffusionSampler):
    """The sampler of `solve`, which also keeps what it saw and did at every step.

    It draws the same numbers and returns the same formulas.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.before: list[IntArray] = []
        self.after: list[IntArray] = []
        self.found: list[FloatArray] = []
        self.final: dict[int, IntArray] = {}

    def _log_probabilities(
        self, tokens: Tensor, memory: Tensor, mask: Tensor, rows: IndexArray | None = None
    ) -> FloatArray:
        # Finished rows are kept as well: every state has all of them.
        found = super()._log_probabilities(tokens, memory, mask)
        self.before.append(tokens.cpu().numpy().astype(np.int64))
        self.found.append(found.copy())
        return found if rows is None else found[rows]

    def _remask(
        self, tokens: npt.NDArray[Any], sure: FloatArray, given: npt.NDArray[Any], rng: np.random.Generator
    ) -> tuple[npt.NDArray[Any], FloatArray]:
        self.after.append(tokens.astype(np.int64))
        return super()._remask(tokens, sure, given, rng)

    def _formula(
        self, row: int, tokens: npt.NDArray[Any], given: npt.NDArray[Any], found: FloatArray
    ) -> tuple[int, ...] | None:
        self.final[row] = tokens.astype(np.int64)
        return super()._formula(row, tokens, given, found)


@dataclass(frozen=True)
class Trajectory:
    """One window from all masks to a formula.

    Attributes
    ----------
    states
        (steps + 1, places) ids before the first step, after it, ...
    confidence
        (steps, places): probability of the likeliest token at a mask, and of the token that was put there
        from the step that put it.
    revealed, remasked
        (steps, places): places that a step filled, and places that it took back.
    written
        Ids of the formula without specials, or None.
    projected
        Whether the last state was no formula, and the likeliest formula took its place.
    """

    states: IntArray
    confidence: FloatArray
    revealed: BoolArray
    remasked: BoolArray
    written: tuple[int, ...] | None
    projected: bool

    @property
    def steps(self) -> int:
        """Number of steps taken."""
        return len(self.confidence)

    def resolved(self) -> IntArray:
        """(places,) the step, from 1, that filled a place for good."""
        last: IntArray = self.steps - self.revealed[::-1].argmax(axis=0)
        return last

    def halfway(self) -> int:
        """The first state of which at most half is masked."""
        mask = int(self.states[0, 0])
        share = (self.states == mask).mean(axis=1)
        return int(np.flatnonzero(share <= 0.5)[0])


def grammar_of(showing: Showing) -> Grammar:
    """What may be written for this table."""
    names = showing.networks.model.vocabulary
    return Grammar(names, permitted_tokens(showing.reading, showing.problem.operators, names.tokens))


def sampling_options(showing: Showing, remask: float | None = None) -> DiffusionSampling:
    """How the weights are configured to sample, with another share of re-masking if one is given."""
    options = showing.networks.model.config.diffusion_sampling
    return options if remask is None else options.model_copy(update={"remask": remask})


def record(
    showing: Showing, options: DiffusionSampling, count: int, rng: np.random.Generator
) -> list[Trajectory]:
    """Fill windows of the configured lengths, an equal share of each, and keep how.

    Raises
    ------
    UsageError
        If the weights hold no diffusion generator.
    """
    model = showing.networks.model
    if model.denoiser is None:
        raise UsageError("these weights hold no diffusion generator")

    def nothing(memory: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        everyone = torch.ones(memory.shape[0], dtype=torch.bool)
        return model.without_condition(memory, mask, everyone)

    found: list[Trajectory] = []
    for position, length in enumerate(options.windows):
        share = count // len(options.windows) + (position < count % len(options.windows))
        if not share:
            continue
        sampler = RecordingSampler(model.denoiser, grammar_of(showing), options, nothing)
        window = min(length, model.config.length)
        start = torch.full((share, window), model.denoiser.mask_token)
        memory, mask = showing.memory.expand(share, -1, -1), showing.mask.expand(share, -1)
        with quiet_networks():
            written = sampler.fill(start, memory, mask, rng)
        found += [_trajectory(sampler, row, written[row]) for row in range(share)]
    return found


def _trajectory(sampler: RecordingSampler, row: int, written: tuple[int, ...] | None) -> Trajectory:
    mask = sampler.denoiser.mask_token
    states = [state[row] for state in sampler.before]
    # Rows of a batch end together, but a row that is full early has nothing left to tell.
    steps = next((k for k, state in enumerate(states) if k and not (state == mask).any()), len(states))
    states = [*states[:steps], states[steps] if steps < len(states) else sampler.final[row]]
    confidence = np.zeros((steps, len(states[0])))
    revealed = np.zeros(confidence.shape, dtype=np.bool_)
    remasked = np.zeros(confidence.shape, dtype=np.bool_)
    for step in range(steps):
        before, following = states[step], states[step + 1]
        # Without re-masking a step's result is the next step's start.
        filled = sampler.after[step][row] if step < len(sampler.after) else following
        revealed[step] = (before == mask) & (filled != mask)
        remasked[step] = (filled != mask) & (following == mask)
        found = np.exp(sampler.found[step][row])
        places = np.arange(len(before))
        certain = np.where(revealed[step], found[places, filled], found.max(axis=-1))
        kept = confidence[step - 1] if step else certain
        confidence[step] = np.where(before == mask, certain, kept)
    last = states[-1]
    projected = written is None or list(written) != _spelled(last, sampler.grammar.end)
    return Trajectory(np.array(states), confidence, revealed, remasked, written, projected)


def _spelled(tokens: IntArray, end: int) -> list[int]:
    ends = np.flatnonzero(tokens == end)
    return [int(token) for token in (tokens[: ends[0]] if ends.size else tokens)]


def order_of_kinds(
    trajectories: Sequence[Trajectory], tokens: Sequence[str], formulas_only: bool = True
) -> dict[str, list[float]]:
    """When tokens of each kind were filled for good, as shares of the steps, one entry a token.

    Parameters
    ----------
    trajectories
        Windows that were filled. The `end` tokens after a formula, many and alike, are left out.
    tokens
        The vocabulary.
    formulas_only
        Leave out a trajectory whose last state is no formula.
    """
    found: dict[str, list[float]] = {}
    for trajectory in trajectories:
        if trajectory.projected and formulas_only:
            continue
        for token, step in zip(trajectory.states[-1], trajectory.resolved(), strict=True):
            name = tokens[int(token)]
            if name != EOS:
                found.setdefault(kind_of(name), []).append(float(step) / trajectory.steps)
    return found
