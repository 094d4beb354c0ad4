"""What the generators wrote for a table, and which of it to look at closer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from physdiffuser.expressions import Expression
from physdiffuser.generation.autoregressive.sampler import Written, beam_search
from physdiffuser.inspection.capture import Capture, captured
from physdiffuser.inspection.networks import quiet_networks
from physdiffuser.inspection.session import Showing
from physdiffuser.inspection.tokens import shown_formula
from physdiffuser.inspection.trajectories import Trajectory, grammar_of
from physdiffuser.models.tokens.vocabulary import BOS
from physdiffuser.models.written import Fitter, read_formula

_MAX_FITTED = 24
_ROUNDING = 2.0**-22


@dataclass(frozen=True)
class Choice:
    """A formula that was written.

    Attributes
    ----------
    index
        Its number in what was given.
    text
        In the table's names, `C` where a constant is to be fitted.
    loss
        What is left of the target's variance when its constants are fitted; None if it has no finite value.
    votes
        How often it was written.
    """

    index: int
    text: str
    loss: float | None
    votes: int


def ranked(showing: Showing, written: Sequence[tuple[int, ...] | None]) -> list[Choice]:
    """Distinct formulas, the best fit first; those that could not be fitted last, in the order given.

    Parameters
    ----------
    written
        Token ids, None for a failure.
    """
    tokens = showing.networks.model.vocabulary.tokens
    fitter = Fitter(showing.problem, showing.reader)
    first: dict[Expression | tuple[int, ...], int] = {}
    votes: dict[Expression | tuple[int, ...], int] = {}
    for index, ids in enumerate(written):
        if ids is None:
            continue
        key = read_formula([tokens[token] for token in ids], showing.reading) or ids
        first.setdefault(key, index)
        votes[key] = votes.get(key, 0) + 1
    likely = sorted(first, key=lambda key: (-votes[key], first[key]))[:_MAX_FITTED]
    found = []
    for key in likely:
        ids = written[first[key]]
        assert ids is not None
        with np.errstate(all="ignore"):
            fitted = None if isinstance(key, tuple) else fitter.fit(key)
        text = shown_formula([tokens[token] for token in ids], showing.reading, showing.subject.names)
        loss = None if fitted is None else float(fitted.loss)
        found.append(Choice(first[key], text, loss, votes[key]))
    # Below the rounding of half precision, in which networks read numbers, the shorter of two is the better.
    return sorted(
        found, key=lambda choice: (choice.loss is None, max(choice.loss or 0.0, _ROUNDING), len(choice.text))
    )


def beams(showing: Showing) -> list[Written]:
    """The decoder's likeliest formulas for this table, likeliest first."""
    model = showing.networks.model
    assert model.decoder is not None
    width = model.config.autoregressive_sampling.beams or 16
    with quiet_networks():
        return beam_search(
            model.decoder,
            grammar_of(showing),
            showing.memory,
            showing.mask,
            places=model.config.length - 1,
            beams=width,
        )


def read_by_decoder(showing: Showing, ids: Sequence[int]) -> Capture:
    """The decoder's attention while it reads a formula: query i has read the start and i tokens."""
    model = showing.networks.model
    assert model.decoder is not None
    tokens = torch.tensor([[model.vocabulary.ids[BOS], *ids]])
    with quiet_networks(), captured(model) as heard:
        model.decoder(tokens, showing.memory, showing.mask)
    return heard


def read_by_denoiser(showing: Showing, state: Sequence[int]) -> Capture:
    """The denoiser's attention over a window."""
    model = showing.networks.model
    assert model.denoiser is not None
    with quiet_networks(), captured(model) as heard:
        model.denoiser(torch.tensor([[int(token) for token in state]]), showing.memory, showing.mask)
    return heard


def state_of(trajectory: Trajectory, step: int) -> list[int]:
    """Ids of a window after a step (0: before the first)."""
    return [int(token) for token in trajectory.states[step]]
