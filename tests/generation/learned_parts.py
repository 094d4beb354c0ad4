"""Problems, proposals and networks for tests of learned generators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from physdiffuser.core.generator import Generator
from physdiffuser.core.problem import Budget, Problem
from physdiffuser.generation.autoregressive import build as build_autoregressive
from physdiffuser.generation.diffusion import build as build_diffusion
from physdiffuser.models.checkpoint import load_model
from physdiffuser.models.features.reading import Reader
from physdiffuser.models.network import LawModel
from physdiffuser.models.proposing import encode_readings
from physdiffuser.models.tokens.grammar import Grammar
from physdiffuser.search.archive import ParetoArchive

BUILDERS = {"diffusion": build_diffusion, "autoregressive": build_autoregressive}


def problem(columns: int = 3, rows: int = 40, **changes: Any) -> Problem:
    rng = np.random.default_rng(0)
    inputs = rng.uniform(1.0, 4.0, (rows, columns))
    target = 3.0 * inputs[:, 0] / inputs[:, -1]
    names = tuple(f"v{index}" for index in range(columns))
    return Problem(inputs=inputs, target=target, names=names, **changes)


def proposals(name: str, weights: Path, given: Problem, steps: int = 10_000, **options: Any) -> list[Any]:
    generator = BUILDERS[name](weights=str(weights), **{"candidates": 16, "rounds": 1, **options})
    assert isinstance(generator, Generator) and generator.name == name
    return list(generator.propose(given, ParetoArchive(given), Budget(steps)))


def parts(weights: Path) -> tuple[LawModel, torch.Tensor, torch.Tensor, Grammar]:
    model = load_model(weights)
    reading = Reader(problem()).read(np.random.default_rng(0))
    memory, mask = encode_readings(model, [reading])
    return model, memory.float(), mask, Grammar(model.vocabulary, ["x1", "x2", "add", "mul", "sin", "C"])
