"""Physics-attention of Transolver (Wu et al., ICML 2024), with the options of Transolver++ (2025).

Rows are assigned softly to a few slices; a slice is the mean of its rows; the slices attend to each
other; every row gets back the slices it was made of. The cost is linear in the number of rows.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class PhysicsSliceAttention(nn.Module):
    """Self-attention of a set through `slices` slice tokens per head.

    Parameters
    ----------
    width, heads
        Size of the vectors, a multiple of the number of heads.
    slices
        Slice tokens per head, 4 to 64.
    content_projection
        Project what is averaged into slices separately from what decides the assignment.
    point_temperature
        Transolver++: a temperature for every row, and Gumbel noise on the assignment in training.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        slices: int = 32,
        content_projection: bool = True,
        point_temperature: bool = False,
    ) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"width {width} is not a multiple of {heads} heads")
        if not 4 <= slices <= 64:
            raise ValueError(f"slices must be between 4 and 64, not {slices}")
        self.width, self.heads, self.slices = width, heads, slices
        head = width // heads
        self.assign = nn.Linear(width, width)
        self.content = nn.Linear(width, width) if content_projection else None
        self.slice_logits = nn.Linear(head, slices)
        nn.init.orthogonal_(self.slice_logits.weight)
        self.temperature = nn.Parameter(torch.full((heads, 1, 1), 0.5))
        self.point_temperature = nn.Linear(head, 1) if point_temperature else None
        self.query = nn.Linear(head, head, bias=False)
        self.key = nn.Linear(head, head, bias=False)
        self.value = nn.Linear(head, head, bias=False)
        self.output = nn.Linear(width, width)

    def _split(self, vectors: Tensor) -> Tensor:
        # (batch, rows, width) -> (batch, heads, rows, head width)
        batch, rows, _ = vectors.shape
        return vectors.view(batch, rows, self.heads, self.width // self.heads).transpose(1, 2)

    def assignment(self, vectors: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """Weights of each row over the slices, (batch, heads, rows, slices); zero for padded rows."""
        split = self._split(self.assign(vectors))
        temperature = self.temperature.clamp(0.1, 5.0)
        logits = self.slice_logits(split).float()
        if self.point_temperature is not None:
            temperature = (temperature + self.point_temperature(split).float()).clamp_min(0.01)
            if self.training:
                uniform = torch.rand_like(logits).clamp_(1e-9, 1 - 1e-7)
                logits = logits - torch.log(-torch.log(uniform))
        weights: Tensor = (logits / temperature).softmax(dim=-1)
        if padding_mask is not None:
            weights = weights.masked_fill(padding_mask[:, None, :, None], 0.0)
        return weights

    def forward(
        self,
        query: Tensor,
        memory: Tensor | None = None,
        *,
        padding_mask: Tensor | None = None,
        causal: bool = False,
        coordinates: Tensor | None = None,
        need_weights: bool = False,
        cache: object | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend within the set; see `physdiffuser.models.attention`.

        The weights returned are those of rows over slices, (batch, heads, rows, slices).

        Raises
        ------
        ValueError
            For causal use or cross-attention: a slice mixes all positions of one set.
        """
        if causal or cache is not None:
            raise ValueError("physics-slice attention mixes all positions and cannot be causal")
        if memory is not None:
            raise ValueError("physics-slice attention works within one set, not across two")
        weights = self.assignment(query, padding_mask)
        content = self._split(query if self.content is None else self.content(query))
        mass = weights.sum(dim=2).unsqueeze(-1)  # (batch, heads, slices, 1)
        # Sums over rows in float32: with 1e6 rows bfloat16 would stop counting at 256.
        total = weights.transpose(2, 3) @ content.float()
        tokens = (total / (mass + 1e-6)).to(content.dtype)  # (batch, heads, slices, head width)
        mixed = F.scaled_dot_product_attention(self.query(tokens), self.key(tokens), self.value(tokens))
        rows = weights.to(mixed.dtype) @ mixed  # (batch, heads, rows, head width)
        batch, _, length, _ = rows.shape
        # (batch, heads, rows, head width) -> (batch, rows, width)
        output = self.output(rows.transpose(1, 2).reshape(batch, length, self.width))
        return output, (weights if need_weights else None)
