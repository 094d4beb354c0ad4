"""Writing formulas by masked diffusion: from all masks, or from a formula with a hole, to no masks.

At every step the denoiser says what it would put at each mask; the places it is surest of are revealed,
the rest wait. Practices from MDLM (Sahoo et al., 2024), LLaDA (Nie et al., 2025) and ReMDM (Wang et al.,
2025). What comes out is projected onto the grammar: if the tokens are no formula, the most likely formula
under the last step's probabilities takes their place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from physdiffuser.arrays import IndexArray
from physdiffuser.config import DiffusionSampling
from physdiffuser.models.denoiser import Denoiser
from physdiffuser.models.tokens.grammar import Grammar
from physdiffuser.models.tokens.vocabulary import BOS, END_STEP, PAD, STEP, complete

if TYPE_CHECKING:
    from collections.abc import Callable

FloatArray = np.ndarray[Any, np.dtype[np.float64]]
# How much a token that was sampled counts against one that was not, when repairing a formula.
_SAMPLED = 2.0


def masked_share(schedule: str, time: float) -> float:
    """Share of places still masked when `time`, from 0 to 1, of the steps is over."""
    return float(np.cos(0.5 * np.pi * time)) if schedule == "cosine" else 1.0 - time


class DiffusionSampler:
    """Samples from a denoiser.

    Parameters
    ----------
    denoiser, grammar
        The network, and what it may write: the same in every row, or with as many rows as a batch.
    options
        Steps, schedule, order of revealing, temperature, re-masking, guidance.
    unconditional
        Makes the memory of no table from a memory and its mask; needed for guidance.
    """

    def __init__(
        self,
        denoiser: Denoiser,
        grammar: Grammar,
        options: DiffusionSampling,
        unconditional: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]],
    ) -> None:
        self.denoiser, self.grammar, self.options = denoiser, grammar, options
        self.unconditional = unconditional
        ids = grammar.vocabulary.ids
        self._mask = ids[grammar.vocabulary.tokens[denoiser.mask_token]]
        allowed = grammar.symbols.copy()
        allowed[:, grammar.end] = True
        # (rows or 1, 1, vocabulary), against logits of (rows, places, vocabulary)
        self._forbidden = torch.from_numpy(~allowed)[:, None, :]
        steps = () if grammar.vocabulary.chains else (STEP, END_STEP)
        self._specials = [ids[name] for name in (PAD, BOS, *steps)]

    def _log_probabilities(
        self, tokens: Tensor, memory: Tensor, mask: Tensor, rows: IndexArray | None = None
    ) -> FloatArray:
        forbidden = self._forbidden
        if rows is not None:
            tokens, memory, mask = tokens[rows], memory[rows], mask[rows]
            forbidden = forbidden if len(forbidden) == 1 else forbidden[rows]
        logits = self.denoiser(tokens, memory, mask).double()
        if self.options.guidance:
            free = self.denoiser(tokens, *self.unconditional(memory, mask)).double()
            logits = torch.log_softmax(logits, -1) * (1.0 + self.options.guidance) - torch.log_softmax(
                free, -1
            ) * (self.options.guidance)
            logits = torch.nan_to_num(logits, nan=float("-inf"))
        logits = logits.masked_fill(forbidden.to(logits.device), float("-inf"))
        result: FloatArray = torch.log_softmax(logits, dim=-1).cpu().numpy()
        return result

    @torch.inference_mode()
    def fill(
        self, start: Tensor, memory: Tensor, mask: Tensor, rng: np.random.Generator
    ) -> list[tuple[int, ...] | None]:
        """Fill the masks of each row.

        Parameters
        ----------
        start
            (batch, places) ids; masks are to be filled, everything else stays.
        memory, mask
            (batch, tokens, width) and (batch, tokens), as the encoder returns them.

        Returns
        -------
        For each row the ids of a formula, without specials, or None if none fits what was given.
        """
        options = self.options
        tokens = start.cpu().numpy().copy()
        given = tokens != self._mask
        sure = np.where(given, np.inf, -np.inf)
        holes = (~given).sum(axis=1)
        found = self._log_probabilities(start, memory, mask)
        for step in range(1, options.steps + 1):
            masked = tokens == self._mask
            if not masked.any():
                break
            if step > 1:
                # Formulas without masks are finished; with a confidence, that happens at different steps.
                open_rows = np.flatnonzero(masked.any(axis=1))
                shown = torch.from_numpy(tokens).to(memory.device)
                if len(open_rows) < len(tokens):
                    found[open_rows] = self._log_probabilities(shown, memory, mask, open_rows)
                else:
                    found = self._log_probabilities(shown, memory, mask)
            noisy = (
                found + options.temperature * rng.gumbel(size=found.shape) if options.temperature else found
            )
            chosen = noisy.argmax(axis=-1)
            certainty = self._certainty(found, chosen, rng)
            # How many stay masked after this step, for each row.
            left = np.floor(holes * masked_share(options.schedule, step / options.steps) + 1e-9).astype(int)
            left = np.minimum(left, masked.sum(axis=1) - 1).clip(0)
            order = np.argsort(np.argsort(np.where(masked, -certainty, np.inf), axis=1), axis=1)
            reveal = masked & (order < (masked.sum(axis=1) - left)[:, None])
            if options.confidence < 1.0:
                reveal |= masked & (found.max(axis=-1) >= np.log(max(options.confidence, 1e-9)))
            tokens = np.where(reveal, chosen, tokens)
            sure = np.where(reveal, certainty, sure)
            if options.remask and step < options.steps:
                tokens, sure = self._remask(tokens, sure, given, rng)
        return [self._formula(row, tokens[row], given[row], found[row]) for row in range(len(tokens))]

    def _certainty(
        self, found: FloatArray, chosen: np.ndarray[Any, Any], rng: np.random.Generator
    ) -> FloatArray:
        match self.options.reveal:
            case "random":
                drawn: FloatArray = rng.random(chosen.shape)
                return drawn
            case "margin":
                top = np.sort(np.exp(found), axis=-1)
                margin: FloatArray = top[..., -1] - top[..., -2]
                return margin
            case _:
                picked: FloatArray = np.take_along_axis(found, chosen[..., None], axis=-1)[..., 0]
                return picked

    def _remask(
        self,
        tokens: np.ndarray[Any, Any],
        sure: FloatArray,
        given: np.ndarray[Any, Any],
        rng: np.random.Generator,
    ) -> tuple[np.ndarray[Any, Any], FloatArray]:
        """Take back some of what was revealed, the less sure the likelier (ReMDM, confidence)."""
        revealed = (tokens != self._mask) & ~given
        weight = np.where(revealed, 1.0 - np.exp(np.minimum(sure, 0.0)), 0.0)
        again = rng.random(tokens.shape) < self.options.remask * weight
        return np.where(again, self._mask, tokens), np.where(again, -np.inf, sure)

    def _formula(
        self, row: int, tokens: np.ndarray[Any, Any], given: np.ndarray[Any, Any], found: FloatArray
    ) -> tuple[int, ...] | None:
        names = self.grammar.vocabulary
        words = names.decode(tokens.tolist())
        rest = tokens[len(words) :]
        if complete(words) and (rest == self.grammar.end).all():
            return tuple(int(token) for token in tokens[: len(words)])
        scores = np.maximum(found, -30.0)
        scores[:, self._specials] = -np.inf
        scores[:, self._mask] = -np.inf
        places = np.arange(len(tokens))
        scores[places, tokens] += _SAMPLED
        fixed = scores[given, tokens[given]]
        scores[given] = -np.inf
        scores[given, tokens[given]] = fixed
        projected = self.grammar.row(row).project(scores)
        if projected is None:
            return None
        return tuple(int(token) for token in projected if token != self.grammar.end)
