"""Writing formulas token by token: sampling and beam search, with the grammar as a hard constraint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from physdiffuser.config import AutoregressiveSampling
from physdiffuser.models.decoder import Decoder
from physdiffuser.models.tokens.grammar import Grammar
from physdiffuser.models.tokens.vocabulary import BOS


@dataclass(frozen=True)
class Written:
    """A finished sequence.

    Attributes
    ----------
    tokens
        Ids without specials.
    score
        Sum of the log-probabilities of its tokens, the end included.
    """

    tokens: tuple[int, ...]
    score: float


def _log_probabilities(logits: Tensor) -> np.ndarray[Any, np.dtype[np.float64]]:
    return torch.log_softmax(logits[:, -1].double(), dim=-1).cpu().numpy()


def truncated(
    found: np.ndarray[Any, np.dtype[np.float64]], top_k: int, nucleus: float
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Log-probabilities (batch, tokens), -inf outside of what may be sampled.

    Parameters
    ----------
    found
        Log-probabilities; -inf for what the grammar forbids.
    top_k
        How many of the most likely tokens are left; 0 for all.
    nucleus
        The most likely tokens that together have this share of the probability are left (Holtzman et al.,
        "The curious case of neural text degeneration", ICLR 2020).
    """
    if not top_k and nucleus >= 1.0:
        return found
    order = np.argsort(-found, axis=1, kind="stable")
    ranked = np.take_along_axis(found, order, axis=1)
    kept = np.ones(ranked.shape, dtype=np.bool_)
    if top_k:
        kept[:, top_k:] = False
    if nucleus < 1.0:
        shares = np.exp(ranked - np.logaddexp.reduce(ranked, axis=1, keepdims=True))
        kept &= np.cumsum(shares, axis=1) - shares < nucleus
    result = np.full_like(found, -np.inf)
    np.put_along_axis(result, order, np.where(kept, ranked, -np.inf), axis=1)
    return result


@torch.inference_mode()
def sample(
    decoder: Decoder,
    grammar: Grammar,
    memory: Tensor,
    mask: Tensor,
    *,
    places: int,
    options: AutoregressiveSampling,
    rng: np.random.Generator,
) -> list[Written]:
    """One formula for each row of the memory, tokens drawn with Gumbel noise in double precision.

    Parameters
    ----------
    decoder, grammar
        The network, and what it may write.
    memory, mask
        (batch, tokens, width) and (batch, tokens), as the encoder returns them.
    places
        Longest formula in tokens.
    options
        Temperature (0 takes the most likely token everywhere, 1 samples from the model), `top_k` and
        `nucleus` (see `truncated`).
    """
    batch = memory.shape[0]
    state = decoder.start()
    open_arguments = np.ones(batch, dtype=np.int64)
    scores = np.zeros(batch)
    finished = np.zeros(batch, dtype=np.bool_)
    written: list[list[int]] = [[] for _ in range(batch)]
    last = torch.full((batch, 1), grammar.vocabulary.ids[BOS], dtype=torch.long, device=memory.device)
    for place in range(places + 1):
        found = _log_probabilities(decoder(last, memory, mask, state))
        found = np.where(grammar.permitted(open_arguments, places - place), found, -np.inf)
        likely = truncated(found, options.top_k, options.nucleus)
        if options.temperature:
            likely = likely + options.temperature * rng.gumbel(size=found.shape)
        chosen = likely.argmax(axis=1)
        scores += np.where(finished, 0.0, found[np.arange(batch), chosen])
        ending = chosen == grammar.end
        for row in np.flatnonzero(~finished & ~ending):
            written[row].append(int(chosen[row]))
        finished |= ending
        if finished.all():
            break
        open_arguments = grammar.advance(open_arguments, chosen)
        last = torch.from_numpy(chosen)[:, None].to(memory.device)
    return [Written(tuple(tokens), float(score)) for tokens, score in zip(written, scores, strict=True)]


@torch.inference_mode()
def beam_search(
    decoder: Decoder, grammar: Grammar, memory: Tensor, mask: Tensor, *, places: int, beams: int
) -> list[Written]:
    """The most likely formulas for one table, best first.

    Parameters
    ----------
    decoder, grammar, places
        As in `sample`.
    memory, mask
        Of one table, (1, tokens, width) and (1, tokens).
    beams
        How many hypotheses are kept, and how many formulas are returned at most.
    """
    state = decoder.start()
    device = memory.device
    tokens: list[tuple[int, ...]] = [()]
    scores = np.zeros(1)
    open_arguments = np.ones(1, dtype=np.int64)
    done: list[Written] = []
    last = torch.full((1, 1), grammar.vocabulary.ids[BOS], dtype=torch.long, device=device)
    for place in range(places + 1):
        width = len(tokens)
        found = _log_probabilities(decoder(last, memory.expand(width, -1, -1), mask.expand(width, -1), state))
        found = np.where(grammar.permitted(open_arguments, places - place), found, -np.inf)
        totals = scores[:, None] + found
        ended = np.flatnonzero(np.isfinite(totals[:, grammar.end]))
        done.extend(Written(tokens[row], float(totals[row, grammar.end])) for row in ended)
        totals[:, grammar.end] = -np.inf
        order = np.argsort(-totals, axis=None, kind="stable")[:beams]
        order = order[np.isfinite(totals.flat[order])]
        done.sort(key=lambda item: -item.score)
        # Scores only fall: once enough are finished and better than every open one, nothing changes.
        enough = len(done) >= beams and (not order.size or done[beams - 1].score >= totals.flat[order[0]])
        if enough or not order.size:
            break
        rows, chosen = np.unravel_index(order, totals.shape)
        tokens = [(*tokens[row], int(token)) for row, token in zip(rows, chosen, strict=True)]
        scores = totals[rows, chosen]
        open_arguments = grammar.advance(open_arguments[rows], chosen)
        state.select(torch.from_numpy(rows).to(device))
        last = torch.from_numpy(chosen)[:, None].to(device)
    return done[:beams]
