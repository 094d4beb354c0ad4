"""The set encoder: rows of a table to a short memory that the generators read.

Set Transformer (Lee et al., ICML 2019): every scalar enters as the 16 bits of its half-precision form,
induced set attention blocks mix the rows, and pooling by multihead attention leaves `memory` vectors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from physdiffuser.arrays import CHECK_ARRAYS, checked
from physdiffuser.models.attention import build_attention, find_attention, require
from physdiffuser.models.features.statistics import (
    COLUMN_FEATURES,
    CURVE_FEATURES,
    ROW_FEATURES,
    TABLE_FEATURES,
    partial_residual_curves,
    row_features,
    summarise,
)
from physdiffuser.models.layers import AttentionBlock
from physdiffuser.models.tokens.vocabulary import MAX_VARIABLES

if TYPE_CHECKING or CHECK_ARRAYS:
    from jaxtyping import Bool, Float, Float16, Int16

BITS = 16
SCALARS = MAX_VARIABLES + 1


@checked
def to_bits(rows: Float16[Tensor, "batch rows places"]) -> Int16[Tensor, "batch rows bits"]:
    """The bits of half-precision rows: (batch, rows, 10) float16 to (batch, rows, 160) of 0 and 1."""
    places = torch.arange(BITS, device=rows.device, dtype=torch.int16)
    bits = (rows.contiguous().view(torch.int16).unsqueeze(-1) >> places) & 1
    return bits.flatten(-2)  # (batch, rows, places, 16) -> (batch, rows, places * 16)


# Feed-forward size over the width.
_FACTOR = 2


class SetEncoder(nn.Module):
    """Encodes a table into memory vectors.

    More than eight parameters: the fields of the encoder's configuration, all keywords.

    Parameters
    ----------
    width, heads, layers
        Size of the vectors, heads of each attention, number of blocks over the rows.
    inducing
        Inducing points of a block, where the attention can cross from one set to another.
    memory
        Vectors that pooling leaves; at least 1, and 16 or more for attention to have a choice.
    attention, options
        Name of the attention variant inside the blocks, and its options.
    statistics
        Whether the memory also holds a token for each column and one for the table, made from the
        summaries of `physdiffuser.models.features.statistics`.
    values
        Whether each row also enters as real numbers (`row_features`): bits say a number exactly,
        but that 1.99 and 2.01 are neighbours has to be learned from them.
    curves
        Whether the token of a column also holds its partial residual curve (`partial_residual_curves`).
    mixing
        Self-attention blocks over the memory.
    """

    def __init__(
        self,
        *,
        width: int,
        heads: int,
        layers: int,
        inducing: int,
        memory: int,
        attention: str,
        options: dict[str, Any],
        statistics: bool,
        values: bool = False,
        curves: bool = False,
        mixing: int,
    ) -> None:
        super().__init__()
        spec = find_attention(attention)
        require(spec, ("padding_mask",), "the set encoder")
        standard = find_attention("standard")

        def block(cross: bool, plain: bool = False) -> AttentionBlock:
            module = build_attention(standard if plain else spec, width, heads, {} if plain else options)
            return AttentionBlock(module, width=width, factor=_FACTOR, cross=cross)

        self.width, self.heads = width, heads
        self.coordinates = "coordinates" in spec.supports
        self.rows = nn.Linear(SCALARS * BITS, width)
        self.flags = nn.Linear(MAX_VARIABLES, width, bias=False)
        self.values = nn.Linear(ROW_FEATURES, width) if values else None
        self.row_norm = nn.LayerNorm(width)
        self.row_inner = nn.Linear(width, 2 * width)
        self.row_outer = nn.Linear(2 * width, width)
        self.induced = "cross" in spec.supports
        self.blocks = nn.ModuleList()
        self.points = nn.ParameterList()
        for _ in range(layers):
            if self.induced:
                self.points.append(nn.Parameter(torch.randn(inducing, width) * 0.5))
                self.blocks.append(nn.ModuleList((block(cross=True), block(cross=True))))
            else:
                self.blocks.append(block(cross=False))
        self.seeds = nn.Parameter(torch.randn(memory, width) * 0.5)
        self.pooling = block(cross=True, plain=True)
        self.statistics = statistics
        if statistics:
            self.column_tokens = _TokenMaker(COLUMN_FEATURES, width)
            self.table_token = _TokenMaker(TABLE_FEATURES, width)
            self.places = nn.Parameter(torch.randn(MAX_VARIABLES, width) * 0.3)
        self.curves = _TokenMaker(CURVE_FEATURES, width) if statistics and curves else None
        self.mixing = nn.ModuleList(block(cross=False, plain=True) for _ in range(mixing))
        self.final = nn.LayerNorm(width)

    @checked
    def forward(
        self,
        rows: Float16[Tensor, "batch rows 10"],
        padding_mask: Bool[Tensor, "batch rows"],
        used: Bool[Tensor, "batch 9"],
        summary_rows: Float16[Tensor, "batch more 10"] | None = None,
        summary_mask: Bool[Tensor, "batch more"] | None = None,
        hidden: Bool[Tensor, " batch"] | None = None,
    ) -> tuple[Float[Tensor, "batch tokens width"], Bool[Tensor, "batch tokens"]]:
        """Encode tables.

        Parameters
        ----------
        rows
            (batch, rows, 10) float16: nine places and the target.
        padding_mask
            (batch, rows), True where a row is padding.
        used
            (batch, 9), True where a place holds a column.
        summary_rows, summary_mask
            More rows of the same tables for the summaries, which are cheap; the same when None.
        hidden
            (batch,), True where the summaries are not shown, so that the rows have to be read.

        Returns
        -------
        memory
            (batch, tokens, width).
        mask
            (batch, tokens), True where a token is to be ignored (places without a column).
        """
        flags = self.flags(used.to(self.flags.weight.dtype)).unsqueeze(1)
        vectors = self.rows(to_bits(rows).to(self.rows.weight.dtype)) + flags
        if self.values is not None:
            with torch.autocast(device_type=rows.device.type, enabled=False):
                features = row_features(rows, padding_mask, used)
            vectors = vectors + self.values(features.to(self.values.weight.dtype))
        inner = nn.functional.gelu(self.row_inner(self.row_norm(vectors)), approximate="tanh")
        vectors = vectors + self.row_outer(inner)
        extra = {"coordinates": rows} if self.coordinates else {}
        for position, block in enumerate(self.blocks):
            if self.induced:
                gather, spread = block[0], block[1]  # type: ignore[index]
                points = self.points[position].expand(rows.shape[0], -1, -1)
                points = gather(points, vectors, padding_mask=padding_mask)
                vectors = spread(vectors, points)
            else:
                vectors = block(vectors, padding_mask=padding_mask, **extra)
        memory = self.pooling(self.seeds.expand(rows.shape[0], -1, -1), vectors, padding_mask=padding_mask)
        mask = torch.zeros(memory.shape[:2], dtype=torch.bool, device=memory.device)
        if self.statistics:
            with torch.autocast(device_type=rows.device.type, enabled=False):
                shown = (
                    rows if summary_rows is None else summary_rows,
                    padding_mask if summary_mask is None else summary_mask,
                    used,
                )
                columns, table = summarise(*shown)
                bent = None if self.curves is None else partial_residual_curves(*shown)
            tokens = self.column_tokens(columns) + self.places
            if self.curves is not None and bent is not None:
                tokens = tokens + self.curves(bent)
            memory = torch.cat((memory, tokens, self.table_token(table).unsqueeze(1)), dim=1)
            unseen = torch.cat((~used, torch.zeros_like(mask[:, :1])), dim=1)
            if hidden is not None:
                unseen = unseen | hidden[:, None]
            mask = torch.cat((mask, unseen), dim=1)
        for block in self.mixing:
            memory = block(memory, padding_mask=mask)
        return self.final(memory), mask


class _TokenMaker(nn.Module):
    """Features to a memory token."""

    def __init__(self, features: int, width: int) -> None:
        super().__init__()
        self.inner = nn.Linear(features, 2 * width)
        self.outer = nn.Linear(2 * width, width)

    def forward(self, features: Tensor) -> Tensor:
        features = features.to(self.inner.weight.dtype)
        result: Tensor = self.outer(nn.functional.gelu(self.inner(features), approximate="tanh"))
        return result
