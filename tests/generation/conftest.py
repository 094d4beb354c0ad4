"""Weights that the tests of learned generators share."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from physdiffuser.config import (
    AutoregressiveSampling,
    DecoderConfig,
    DiffusionSampling,
    EncoderConfig,
    ModelConfig,
)
from physdiffuser.models.checkpoint import save_model
from physdiffuser.models.network import LawModel
from physdiffuser.models.tokens.vocabulary import Vocabulary


@pytest.fixture(scope="session", name="weights")
def _weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random weights on disk, opinionated enough to write different formulas."""
    torch.manual_seed(0)
    config = ModelConfig(
        width=32,
        heads=2,
        length=20,
        encoder=EncoderConfig(layers=1, inducing=4, memory=16, mixing=1),
        diffusion=DecoderConfig(layers=1),
        autoregressive=DecoderConfig(layers=1),
        diffusion_sampling=DiffusionSampling(steps=6, windows=(6, 12), temperature=2.0),
        autoregressive_sampling=AutoregressiveSampling(beams=4),
    )
    model = LawModel(config, Vocabulary())
    with torch.no_grad():
        for part in (model.denoiser, model.decoder):
            assert part is not None
            part.head.weight.mul_(2.0)
    folder = tmp_path_factory.mktemp("weights")
    save_model(folder, config, Vocabulary(), dict(model.named_parameters()), {"tables": 0})
    return folder
