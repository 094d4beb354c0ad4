"""Multi-head attention with padding and causal masks, cross-attention, positions and a key-value cache."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

if TYPE_CHECKING:
    from physdiffuser.models.attention import KeyValueCache

_POSITIONS = ("none", "sinusoidal", "learned")


def sinusoidal(positions: int, width: int) -> Tensor:
    """Sinusoidal position table, (positions, width); equation of section 3.5 of Vaswani et al. (2017)."""
    place = torch.arange(positions, dtype=torch.float32)[:, None]
    rate = torch.exp(torch.arange(0, width, 2, dtype=torch.float32) * (-math.log(10_000.0) / width))
    table = torch.zeros(positions, width)
    table[:, 0::2] = torch.sin(place * rate)
    table[:, 1::2] = torch.cos(place * rate)[:, : width // 2]
    return table


class StandardAttention(nn.Module):
    """Scaled dot-product attention with several heads.

    Parameters
    ----------
    width
        Size of the vectors; a multiple of `heads`.
    heads
        Number of heads.
    positions
        "none" for sets, "sinusoidal" or "learned" to add positions to query and memory.
    max_positions
        Longest sequence when positions are added.
    """

    def __init__(self, width: int, heads: int, *, positions: str = "none", max_positions: int = 512) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"width {width} is not a multiple of {heads} heads")
        if positions not in _POSITIONS:
            raise ValueError(f"positions must be one of {', '.join(_POSITIONS)}, not {positions!r}")
        self.width, self.heads = width, heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.output = nn.Linear(width, width)
        self.positions = positions
        if positions == "sinusoidal":
            self.register_buffer("position_table", sinusoidal(max_positions, width), persistent=False)
        elif positions == "learned":
            self.position_table = nn.Parameter(torch.randn(max_positions, width) * 0.02)

    def _place(self, vectors: Tensor, start: int = 0) -> Tensor:
        if self.positions == "none":
            return vectors
        table: Tensor = self.position_table
        length = vectors.shape[1]
        if start + length > table.shape[0]:
            raise ValueError(f"sequence of {start + length} positions; at most {table.shape[0]} are known")
        return vectors + table[start : start + length].to(vectors.dtype)

    def _split(self, vectors: Tensor) -> Tensor:
        # (batch, length, width) -> (batch, heads, length, head width)
        batch, length, _ = vectors.shape
        return vectors.view(batch, length, self.heads, self.width // self.heads).transpose(1, 2)

    def forward(
        self,
        query: Tensor,
        memory: Tensor | None = None,
        *,
        padding_mask: Tensor | None = None,
        causal: bool = False,
        coordinates: Tensor | None = None,
        need_weights: bool = False,
        cache: KeyValueCache | None = None,
        bias: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend from `query` to `memory` (to itself when None).

        Parameters
        ----------
        query, memory, padding_mask, causal, coordinates, need_weights, cache
            As in `physdiffuser.models.attention`; coordinates are not used.
        bias
            Added to the logits, (batch or 1, heads or 1, queries, keys).
        """
        start = 0 if cache is None or cache.keys is None or memory is not None else cache.keys.shape[2]
        query = self._place(query, start)
        source = query if memory is None else memory if cache is not None else self._place(memory)
        if cache is not None and cache.fixed and cache.keys is not None and cache.values is not None:
            key, value = cache.keys, cache.values
        else:
            key, value = self._split(self.key(source)), self._split(self.value(source))
            if cache is not None:
                key, value = cache.extend(key, value)
        chosen = self._split(self.query(query))
        mask = self._mask(chosen, key, padding_mask, causal, bias)
        weights = None
        # On a CPU the backward pass of the fused kernel takes several times as long as the plain products.
        plain = torch.is_grad_enabled() and chosen.requires_grad and chosen.device.type == "cpu"
        if need_weights or plain:
            logits = chosen @ key.transpose(-2, -1) / math.sqrt(chosen.shape[-1])
            if mask is not None:
                logits = logits + mask
            weights = logits.softmax(dim=-1)
            mixed = weights.to(value.dtype) @ value
        else:
            mixed = F.scaled_dot_product_attention(chosen, key, value, attn_mask=mask)
        # (batch, heads, length, head width) -> (batch, length, width)
        batch, _, length, _ = mixed.shape
        return self.output(
            mixed.transpose(1, 2).reshape(batch, length, self.width)
        ), weights if need_weights else None

    @staticmethod
    def _mask(
        query: Tensor, key: Tensor, padding_mask: Tensor | None, causal: bool, bias: Tensor | None
    ) -> Tensor | None:
        # One additive mask in the dtype of the logits; None keeps the fastest kernel.
        mask = None if bias is None else bias.to(query.dtype)
        if padding_mask is not None:
            padding = torch.zeros(padding_mask.shape, dtype=query.dtype, device=query.device)
            padding = padding.masked_fill(padding_mask, float("-inf"))[:, None, None, :]
            mask = padding if mask is None else mask + padding
        queries, keys = query.shape[2], key.shape[2]
        if causal and queries > 1:
            future = torch.ones(queries, keys, dtype=torch.bool, device=query.device).triu(keys - queries + 1)
            ahead = torch.zeros(queries, keys, dtype=query.dtype, device=query.device)
            ahead = ahead.masked_fill(future, float("-inf"))
            mask = ahead if mask is None else mask + ahead
        return mask
