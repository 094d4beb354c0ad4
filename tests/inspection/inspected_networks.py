"""Small networks that the tests look into, in memory and on disk."""

from __future__ import annotations

from pathlib import Path

import torch

from physdiffuser.config import (
    AutoregressiveSampling,
    DecoderConfig,
    DiffusionSampling,
    EncoderConfig,
    ModelConfig,
)
from physdiffuser.inspection.networks import Networks
from physdiffuser.models.checkpoint import save_model
from physdiffuser.models.network import LawModel
from physdiffuser.models.tokens.vocabulary import Vocabulary

SLICES = {"attention": "physics-slice", "options": {"slices": 8}}
BARRIER = {"attention": "biased", "options": {"form": "barrier", "gate_column": 0}}
RELATIVE = {"attention": "biased", "options": {"form": "relative"}}


def small_config(**encoder: object) -> ModelConfig:
    """Two heads, two encoder blocks, one block a generator."""
    return ModelConfig(
        width=16,
        heads=2,
        length=24,
        encoder=EncoderConfig(layers=2, inducing=5, memory=4, mixing=1, **encoder),  # type: ignore[arg-type]
        diffusion=DecoderConfig(layers=2),
        autoregressive=DecoderConfig(layers=2),
        diffusion_sampling=DiffusionSampling(steps=6, windows=(6, 12), temperature=1.0),
        autoregressive_sampling=AutoregressiveSampling(beams=4),
    )


def random_model(**encoder: object) -> LawModel:
    """Random weights with opinions: attention that is far from even, and output that is."""
    torch.manual_seed(0)
    model = LawModel(small_config(**encoder), Vocabulary())
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith((".query.weight", ".key.weight", "slice_logits.weight")):
                parameter.mul_(4.0)
        for part in (model.denoiser, model.decoder):
            assert part is not None
            part.head.weight.mul_(4.0)
    return model.eval().requires_grad_(False)


def networks(**encoder: object) -> Networks:
    """Random weights that say they are random."""
    model = random_model(**encoder)
    return Networks(model, model.config.encoder.attention, "random", 0, "")


def saved(folder: Path, tables: int = 0, **encoder: object) -> Path:
    """The same on disk; `tables` is what the description says they were trained on."""
    model = random_model(**encoder)
    save_model(folder, model.config, Vocabulary(), dict(model.named_parameters()), {"tables": tables})
    return folder
