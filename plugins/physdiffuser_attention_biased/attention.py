"""Attention whose logits carry an additive bias computed from the rows themselves.

Two forms. `barrier`: a row looks uphill, to rows whose height (a column or the target) is larger, at a
price that grows with the climb. `relative`: a small network turns the difference of two rows'
coordinates into one bias per head. Both are added before the softmax, so weights sum to one as they are.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from physdiffuser_attention_standard.attention import StandardAttention
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

# Rows of the bias made at once: bounds the hidden layer to CHUNK x rows x hidden numbers.
CHUNK = 64


def normalise(values: Tensor, padding_mask: Tensor | None) -> Tensor:
    """Zero mean and unit spread over the rows that are not padding; values is (batch, rows, ...)."""
    if padding_mask is None:
        keep = torch.ones(values.shape[:2], dtype=values.dtype, device=values.device)
    else:
        keep = (~padding_mask).to(values.dtype)
    # (batch, rows) -> (batch, rows, 1, ...)
    keep = keep.reshape(*keep.shape, *([1] * (values.dim() - 2)))
    count = keep.sum(dim=1, keepdim=True).clamp_min(1.0)
    mean = (values * keep).sum(dim=1, keepdim=True) / count
    centred = (values - mean) * keep
    spread = (centred.square().sum(dim=1, keepdim=True) / count).sqrt()
    return centred / (spread + 1e-6)


class BiasedAttention(nn.Module):
    """Self-attention of rows with a bias from their coordinates.

    Parameters
    ----------
    width, heads
        Size of the vectors, a multiple of the number of heads.
    form
        "barrier" or "relative".
    height_column
        Column of the coordinates used as height; -1 is the target.
    gate_column
        Column that weakens the barrier through a sigmoid gate, or None.
    columns
        Columns of the coordinates (form "relative").
    hidden
        Hidden units of the relative network.
    initial_strength
        Initial alpha of the barrier.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        form: str = "barrier",
        height_column: int = -1,
        gate_column: int | None = None,
        columns: int = 10,
        hidden: int = 16,
        initial_strength: float = 0.5,
    ) -> None:
        super().__init__()
        if form not in ("barrier", "relative"):
            raise ValueError(f"form must be 'barrier' or 'relative', not {form!r}")
        self.attention = StandardAttention(width, heads)
        self.form, self.heads = form, heads
        self.height_column, self.gate_column = height_column, gate_column
        self.initial_strength = initial_strength
        if form == "barrier":
            raw = torch.log(torch.expm1(torch.tensor(float(initial_strength))))
            self.strength = nn.Parameter(raw.repeat(heads))
            if gate_column is not None:
                self.gate = nn.Parameter(torch.zeros(heads))
        else:
            self.first = nn.Linear(columns, hidden)
            self.second = nn.Linear(hidden, heads, bias=False)

    @property
    def alpha(self) -> Tensor:
        """Strength of the barrier per head, always positive."""
        return F.softplus(self.strength)

    def bias(self, coordinates: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """Bias on the logits, (batch, heads, rows, rows)."""
        coordinates = coordinates.float()
        return (
            self._barrier(coordinates, padding_mask)
            if self.form == "barrier"
            else self._relative(coordinates, padding_mask)
        )

    def _barrier(self, coordinates: Tensor, padding_mask: Tensor | None) -> Tensor:
        height = normalise(coordinates[..., self.height_column], padding_mask)
        climb = F.relu(height[:, None, :] - height[:, :, None])  # [b, i, j] = max(0, h_j - h_i)
        bias = -self.alpha[None, :, None, None] * climb[:, None]
        if self.gate_column is not None:
            column = normalise(coordinates[..., self.gate_column], padding_mask)
            gate = torch.sigmoid(-self.gate[None, :, None] * column[:, None, :])
            bias = bias * gate[..., None]
        return bias

    def _relative(self, coordinates: Tensor, padding_mask: Tensor | None) -> Tensor:
        # The first layer is linear, so W(c_j - c_i) = W c_j - W c_i: it is applied to rows, not to pairs.
        scaled = normalise(coordinates, padding_mask)
        projected = F.linear(scaled, self.first.weight)
        parts = []
        for start in range(0, projected.shape[1], CHUNK):
            rows = projected[:, start : start + CHUNK]
            if torch.is_grad_enabled():
                parts.append(checkpoint(self._pairs, rows, projected, use_reentrant=False))
            else:
                parts.append(self._pairs(rows, projected))
        return torch.cat(parts, dim=2)

    def _pairs(self, rows: Tensor, projected: Tensor) -> Tensor:
        hidden = F.gelu(projected[:, None, :, :] - rows[:, :, None, :] + self.first.bias)
        result: Tensor = self.second(hidden).permute(0, 3, 1, 2)
        return result

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

        Raises
        ------
        ValueError
            For causal use or cross-attention, which have no row coordinates on both sides, or when
            the coordinates are missing.
        """
        if causal or cache is not None or memory is not None:
            raise ValueError("biased attention compares the rows of one set; it cannot be causal or cross")
        if coordinates is None:
            raise ValueError("biased attention needs the coordinates of the rows")
        bias = self.bias(coordinates, padding_mask)
        output, weights = self.attention(
            query, padding_mask=padding_mask, need_weights=need_weights, bias=bias
        )
        return output, weights
