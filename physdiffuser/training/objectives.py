"""Losses: cross-entropy of the next token, the masked-diffusion bound, and likeness to a taught memory."""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

from physdiffuser.models.decoder import Decoder
from physdiffuser.models.denoiser import Denoiser

MIN_TIME = 1e-3


def autoregressive_loss(
    decoder: Decoder, tokens: Tensor, lengths: Tensor, memory: Tensor, mask: Tensor, begin: int
) -> tuple[Tensor, Tensor]:
    """Mean cross-entropy of the next token, the end of the sequence included.

    Parameters
    ----------
    tokens
        (batch, length) ids, filled up with end-of-sequence.
    lengths
        (batch,) tokens of each law.
    memory, mask
        As the encoder returns them.
    begin
        Id of the begin-of-sequence token.

    Returns
    -------
    loss
        Mean over all tokens that count.
    exact
        Share of laws whose every token is the most likely one given those before it.
    """
    first = torch.full_like(tokens[:, :1], begin)
    logits = decoder(torch.cat((first, tokens[:, :-1]), dim=1), memory, mask)
    counts = torch.arange(tokens.shape[1], device=tokens.device) <= lengths[:, None]
    each = F.cross_entropy(logits.transpose(1, 2), tokens, reduction="none")
    right = (logits.argmax(dim=-1) == tokens) | ~counts
    return (each * counts).sum() / counts.sum(), right.all(dim=1).float().mean()


def objective(losses: Mapping[str, Tensor]) -> Tensor:
    """What is minimised: the sum of the losses. `exact` is a rate, and not among them."""
    return torch.stack([loss for name, loss in losses.items() if name != "exact"]).sum()


def draw_masks(batch: int, length: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Mask each position with probability t, t stratified over the batch in [1e-3, 1].

    Parameters
    ----------
    batch, length
        Sequences, and positions of each.
    generator
        Source of the masks, on the processor.

    Returns
    -------
    masked
        (batch, length) bool, at least one True a row.
    times
        (batch,).
    """
    offset = torch.rand((), generator=generator)
    times = (torch.arange(batch) / batch + offset) % 1.0
    times = MIN_TIME + (1.0 - MIN_TIME) * times[torch.randperm(batch, generator=generator)]
    masked = torch.rand(batch, length, generator=generator) < times[:, None]
    # A row with no mask teaches nothing: mask one position.
    empty = ~masked.any(dim=1)
    one = torch.randint(length, (batch,), generator=generator)
    masked[empty, one[empty]] = True
    return masked, times


def diffusion_loss(
    denoiser: Denoiser, tokens: Tensor, memory: Tensor, mask: Tensor, masked: Tensor, times: Tensor
) -> Tensor:
    """Cross-entropy on masked tokens weighted by 1/t (MDLM, equation 10; LLaDA, equation 3), per position.

    Parameters
    ----------
    tokens
        (batch, length) ids; the end-of-sequence tokens that fill up the window are part of the loss.
    memory, mask
        As the encoder returns them.
    masked, times
        As `draw_masks` returns them, on the device of the tokens.
    """
    noisy = torch.where(masked, denoiser.mask_token, tokens)
    logits = denoiser(noisy, memory, mask)
    each = F.cross_entropy(logits.transpose(1, 2), tokens, reduction="none")
    # Weights above 20 occur for t < 0.05, where little is masked and the variance would be all noise.
    weights = (1.0 / times).clamp(max=20.0)[:, None]
    return (each * masked * weights).sum() / tokens.numel()


def memory_loss(memory: Tensor, taught: Tensor, mask: Tensor) -> Tensor:
    """Mean squared difference from the memory of another encoder, over the tokens that count.

    Parameters
    ----------
    memory, taught
        (batch, tokens, width).
    mask
        (batch, tokens), True where a token is ignored.
    """
    counts = (~mask).unsqueeze(-1)
    squares = (memory - taught).square() * counts
    return squares.sum() / (counts.sum() * memory.shape[-1])
