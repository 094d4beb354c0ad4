"""The denoiser of masked diffusion: which token stands at each masked position, given the rest.

The network knows nothing of schedules or sampling (`physdiffuser.generation.diffusion`). Masked
diffusion after MDLM (Sahoo et al., 2024) and LLaDA (Nie et al., 2025): no time input, bidirectional
attention.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from physdiffuser.arrays import CHECK_ARRAYS, checked
from physdiffuser.models.attention import build_attention, find_attention, require
from physdiffuser.models.layers import DecoderBlock

if TYPE_CHECKING or CHECK_ARRAYS:
    from jaxtyping import Bool, Float, Int

# Feed-forward size over the width.
_FACTOR = 4


class Denoiser(nn.Module):
    """Logits for every position of a partly masked formula.

    Parameters
    ----------
    vocabulary
        Number of tokens.
    mask_token
        Id of the mask.
    width, heads, layers
        Size of the vectors, heads, blocks.
    length
        Longest window.
    soft_mask
        Whether the embedding of a mask also tells how large a part of the window is masked.
    attention
        Variant used for self- and cross-attention; it must support both.
    """

    def __init__(
        self,
        *,
        vocabulary: int,
        mask_token: int,
        width: int,
        heads: int,
        layers: int,
        length: int,
        soft_mask: bool,
        attention: str = "standard",
    ) -> None:
        super().__init__()
        spec = find_attention(attention)
        require(spec, ("cross", "padding_mask"), "the denoiser, which attends to the encoded table")
        self.mask_token, self.length = mask_token, length
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(torch.randn(length, width) * 0.02)
        self.ratio = nn.Parameter(torch.zeros(width)) if soft_mask else None
        nn.init.normal_(self.tokens.weight, std=0.02)
        self.blocks = nn.ModuleList(
            DecoderBlock(
                build_attention(spec, width, heads, {}),
                build_attention(spec, width, heads, {}),
                width=width,
                factor=_FACTOR,
                causal=False,
            )
            for _ in range(layers)
        )
        self.final = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary)

    @checked
    def forward(
        self,
        tokens: Int[Tensor, "batch length"],
        memory: Float[Tensor, "batch memory width"],
        memory_mask: Bool[Tensor, "batch memory"],
    ) -> Float[Tensor, "batch length vocabulary"]:
        """Logits, (batch, length, vocabulary); the mask itself has minus infinity.

        Parameters
        ----------
        tokens
            (batch, length) ids, masks where the formula is unknown.
        memory, memory_mask
            As the encoder returns them.
        """
        vectors = self.tokens(tokens) + self.positions[: tokens.shape[1]]
        if self.ratio is not None:
            masked = tokens == self.mask_token
            share = masked.to(vectors.dtype).mean(dim=1, keepdim=True)
            vectors = vectors + (masked.to(vectors.dtype) * share).unsqueeze(-1) * self.ratio
        for block in self.blocks:
            vectors = block(vectors, memory, memory_mask)
        logits: Tensor = self.head(self.final(vectors)).float()
        logits[..., self.mask_token] = float("-inf")
        return logits
