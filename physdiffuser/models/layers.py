"""Blocks that encoder and decoders share: attention with a residual, then a feed-forward network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from physdiffuser.arrays import CHECK_ARRAYS, checked
from physdiffuser.models.attention import KeyValueCache

if TYPE_CHECKING or CHECK_ARRAYS:
    from jaxtyping import Bool, Float


class FeedForward(nn.Module):
    """Two linear layers with a GELU between them."""

    def __init__(self, width: int, factor: int) -> None:
        super().__init__()
        self.inner = nn.Linear(width, factor * width)
        self.outer = nn.Linear(factor * width, width)

    @checked
    def forward(self, vectors: Float[Tensor, "batch length width"]) -> Float[Tensor, "batch length width"]:
        """(batch, length, width) to the same shape."""
        result: Tensor = self.outer(nn.functional.gelu(self.inner(vectors), approximate="tanh"))
        return result


class AttentionBlock(nn.Module):
    """Pre-norm attention from a sequence to itself or to another, and a feed-forward network.

    Parameters
    ----------
    attention
        An attention module, injected; see `physdiffuser.models.attention`.
    width
        Size of the vectors.
    factor
        Hidden size of the feed-forward network over the width.
    cross
        Whether the block attends to another sequence.
    """

    def __init__(self, attention: nn.Module, *, width: int, factor: int, cross: bool) -> None:
        super().__init__()
        self.attention = attention
        self.norm = nn.LayerNorm(width)
        self.memory_norm = nn.LayerNorm(width) if cross else None
        self.feed_norm = nn.LayerNorm(width)
        self.feed = FeedForward(width, factor)

    @checked
    def forward(
        self,
        vectors: Float[Tensor, "batch length width"],
        memory: Float[Tensor, "batch tokens width"] | None = None,
        **options: Any,
    ) -> Float[Tensor, "batch length width"]:
        """(batch, length, width) to the same shape; `options` go to the attention module."""
        source = None if memory is None or self.memory_norm is None else self.memory_norm(memory)
        mixed, _ = self.attention(self.norm(vectors), source, **options)
        vectors = vectors + mixed
        return vectors + self.feed(self.feed_norm(vectors))  # type: ignore[no-any-return]


class DecoderBlock(nn.Module):
    """Self-attention over the formula, cross-attention to the table, feed-forward.

    Parameters
    ----------
    own, cross
        Attention modules, injected.
    width, factor
        Size of the vectors, and hidden size of the feed-forward network over it.
    causal
        Whether a position sees earlier positions only.
    """

    def __init__(self, own: nn.Module, cross: nn.Module, *, width: int, factor: int, causal: bool) -> None:
        super().__init__()
        self.own, self.cross, self.causal = own, cross, causal
        self.own_norm, self.cross_norm, self.feed_norm = (nn.LayerNorm(width) for _ in range(3))
        self.feed = FeedForward(width, factor)

    @checked
    def forward(
        self,
        vectors: Float[Tensor, "batch length width"],
        memory: Float[Tensor, "batch tokens width"],
        memory_mask: Bool[Tensor, "batch tokens"],
        caches: tuple[KeyValueCache, KeyValueCache] | None = None,
    ) -> Float[Tensor, "batch length width"]:
        """(batch, length, width) to the same shape; memory is (batch, tokens, width)."""
        own_cache, cross_cache = caches if caches is not None else (None, None)
        mixed, _ = self.own(self.own_norm(vectors), causal=self.causal, cache=own_cache)
        vectors = vectors + mixed
        mixed, _ = self.cross(self.cross_norm(vectors), memory, padding_mask=memory_mask, cache=cross_cache)
        vectors = vectors + mixed
        return vectors + self.feed(self.feed_norm(vectors))  # type: ignore[no-any-return]
