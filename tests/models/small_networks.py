"""Small networks that tests share."""

from __future__ import annotations

import torch

from physdiffuser.config import DecoderConfig, EncoderConfig, ModelConfig
from physdiffuser.models.network import LawModel
from physdiffuser.models.tokens.vocabulary import Vocabulary


def small_config(**encoder: object) -> ModelConfig:
    """A configuration of some ten thousand parameters."""
    return ModelConfig(
        width=32,
        heads=2,
        length=24,
        encoder=EncoderConfig(layers=1, inducing=6, memory=16, mixing=1, **encoder),  # type: ignore[arg-type]
        diffusion=DecoderConfig(layers=2),
        autoregressive=DecoderConfig(layers=2),
    )


def small_model() -> LawModel:
    """A network with random weights, large enough to have opinions."""
    torch.manual_seed(0)
    network = LawModel(small_config(), Vocabulary())
    with torch.no_grad():
        for part in (network.denoiser, network.decoder):
            assert part is not None
            part.head.weight.mul_(8.0)
    return network.eval()
