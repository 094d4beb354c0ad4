"""The autoregressive decoder: the next token of a formula, given the tokens before it and the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from physdiffuser.arrays import CHECK_ARRAYS, checked
from physdiffuser.models.attention import KeyValueCache, build_attention, find_attention, require
from physdiffuser.models.layers import DecoderBlock

if TYPE_CHECKING or CHECK_ARRAYS:
    from jaxtyping import Bool, Float, Int

# Feed-forward size over the width.
_FACTOR = 4


class DecoderState:
    """Keys and values of what has been decoded, one pair of caches a block."""

    def __init__(self, blocks: int) -> None:
        self.position = 0
        self.caches = [(KeyValueCache(), KeyValueCache(fixed=True)) for _ in range(blocks)]

    @checked
    def select(self, rows: Int[Tensor, " kept"]) -> None:
        """Keep the given batch rows, in that order."""
        for own, cross in self.caches:
            own.select(rows)
            cross.select(rows)


class Decoder(nn.Module):
    """Logits of the next token at every position.

    Parameters
    ----------
    width, heads, layers
        Size of the vectors, heads, blocks.
    length
        Longest sequence.
    attention
        Variant used; it must support causal and cross-attention and a cache.
    """

    def __init__(
        self,
        *,
        vocabulary: int,
        width: int,
        heads: int,
        layers: int,
        length: int,
        attention: str = "standard",
    ) -> None:
        super().__init__()
        spec = find_attention(attention)
        require(spec, ("causal", "cross", "padding_mask", "cache"), "the autoregressive decoder")
        self.length = length
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(torch.randn(length, width) * 0.02)
        nn.init.normal_(self.tokens.weight, std=0.02)
        self.blocks = nn.ModuleList(
            DecoderBlock(
                build_attention(spec, width, heads, {}),
                build_attention(spec, width, heads, {}),
                width=width,
                factor=_FACTOR,
                causal=True,
            )
            for _ in range(layers)
        )
        self.final = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary)

    def start(self) -> DecoderState:
        """A state with nothing decoded yet."""
        return DecoderState(len(self.blocks))

    @checked
    def forward(
        self,
        tokens: Int[Tensor, "batch length"],
        memory: Float[Tensor, "batch memory width"],
        memory_mask: Bool[Tensor, "batch memory"],
        state: DecoderState | None = None,
    ) -> Float[Tensor, "batch length vocabulary"]:
        """Logits, (batch, length, vocabulary).

        Parameters
        ----------
        tokens
            (batch, length) ids; with a state, only those not yet in it.
        memory, memory_mask
            As the encoder returns them.
        state
            Keys and values of the tokens before; extended in place.
        """
        start = 0 if state is None else state.position
        vectors = self.tokens(tokens) + self.positions[start : start + tokens.shape[1]]
        for index, block in enumerate(self.blocks):
            vectors = block(vectors, memory, memory_mask, None if state is None else state.caches[index])
        if state is not None:
            state.position += tokens.shape[1]
        result: Tensor = self.head(self.final(vectors)).float()
        return result
