"""The networks together: one encoder, and a denoiser and a decoder that read its memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from physdiffuser.arrays import CHECK_ARRAYS, checked
from physdiffuser.config import ModelConfig
from physdiffuser.models.decoder import Decoder
from physdiffuser.models.denoiser import Denoiser
from physdiffuser.models.encoder import SetEncoder
from physdiffuser.models.tokens.vocabulary import MASK, Vocabulary

if TYPE_CHECKING or CHECK_ARRAYS:
    from jaxtyping import Bool, Float, Float16


class LawModel(nn.Module):
    """A shared encoder with one or both generators.

    Parameters
    ----------
    vocabulary
        What the generators write.
    """

    def __init__(self, config: ModelConfig, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.config, self.vocabulary = config, vocabulary
        encoder = config.encoder
        self.encoder = SetEncoder(
            width=config.width,
            heads=config.heads,
            layers=encoder.layers,
            inducing=encoder.inducing,
            memory=encoder.memory,
            attention=encoder.attention,
            options=dict(encoder.options),
            statistics=encoder.statistics,
            values=encoder.values,
            curves=encoder.curves,
            mixing=encoder.mixing,
        )
        self.nothing = nn.Parameter(torch.randn(1, config.width) * 0.3)
        self.denoiser: Denoiser | None = None
        self.decoder: Decoder | None = None
        if config.diffusion is not None:
            self.denoiser = Denoiser(
                vocabulary=len(vocabulary),
                mask_token=vocabulary.ids[MASK],
                width=config.width,
                heads=config.heads,
                layers=config.diffusion.layers,
                length=config.length,
                soft_mask=config.soft_mask,
                attention=config.diffusion.attention,
            )
        if config.autoregressive is not None:
            self.decoder = Decoder(
                vocabulary=len(vocabulary),
                width=config.width,
                heads=config.heads,
                layers=config.autoregressive.layers,
                length=config.length + 1,
                attention=config.autoregressive.attention,
            )

    @checked
    def encode(
        self,
        rows: Float16[Tensor, "batch rows places"],
        padding_mask: Bool[Tensor, "batch rows"],
        used: Bool[Tensor, "batch columns"],
        summary_rows: Tensor | None = None,
        summary_mask: Tensor | None = None,
        hidden: Tensor | None = None,
    ) -> tuple[Float[Tensor, "batch tokens width"], Bool[Tensor, "batch tokens"]]:
        """Memory of tables and its mask; see `SetEncoder.forward`."""
        memory, mask = self.encoder(rows, padding_mask, used, summary_rows, summary_mask, hidden)
        return memory, mask

    @checked
    def without_condition(
        self,
        memory: Float[Tensor, "batch tokens width"],
        mask: Bool[Tensor, "batch tokens"],
        dropped: Bool[Tensor, " batch"],
    ) -> tuple[Float[Tensor, "batch tokens width"], Bool[Tensor, "batch tokens"]]:
        """Replace the memory of the chosen batch entries by the learned memory of no table.

        Parameters
        ----------
        memory, mask
            As `encode` returns them.
        dropped
            (batch,) bool.
        """
        nothing = self.nothing.to(memory.dtype).expand_as(memory)
        chosen = dropped[:, None]
        return torch.where(chosen[..., None], nothing, memory), mask & ~chosen
