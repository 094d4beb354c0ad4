"""The weights in the package: whole, small enough, and of use by themselves."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pandas as pd
import pytest
import torch

from physdiffuser.expressions import evaluate, parse, to_text
from physdiffuser.models.checkpoint import load_model
from physdiffuser.models.shipped import shipped, weights_folder
from physdiffuser.pipeline import solve

MIB = 1024 * 1024

pytestmark = pytest.mark.skipif(not shipped(), reason="no weights ship with this version")


def test_files_are_whole_and_small() -> None:
    total = 0
    for folder in sorted(path.parent for path in weights_folder().rglob("model.json")):
        description = json.loads((folder / "model.json").read_text(encoding="utf-8"))
        # An encoder that was taught by another has seen fewer tables, and says so.
        notes = description["training"]
        assert notes["tables"] > (5_000 if "teacher" in notes else 100_000)
        for file, expected in description["files"].items():
            data = (folder / file).read_bytes()
            assert hashlib.sha256(data).hexdigest() == expected
            assert len(data) <= 15 * MIB
            total += len(data) if file == (folder / file).name else 0  # a shared file counts where it lies
        own = {file for file in description["files"] if "/" not in file}
        assert {path.name for path in folder.glob("*.safetensors")} == own
    assert total <= 40 * MIB


@pytest.mark.parametrize("name", shipped())
def test_they_load(name: str) -> None:
    model = load_model(weights_folder() / name)
    assert model.denoiser is not None and model.decoder is not None


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        ("physics-slice/slices-4", "slices", 4),
        ("physics-slice/slices-8", "slices", 8),
        ("physics-slice/slices-16", "slices", 16),
        ("biased/gated", "gate_column", -1),
    ],
)
def test_encoders_with_other_options_lie_beside_the_shipped_ones(name: str, option: str, value: int) -> None:
    other = load_model(weights_folder() / name)
    beside = load_model((weights_folder() / name).parent, ()).state_dict()
    for tensor, values in other.encoder.state_dict().items():
        # Taught in their blocks alone: all that stands before and after them is the shipped encoder's.
        assert tensor.startswith("blocks.") or torch.equal(values, beside[f"encoder.{tensor}"])
    attention = other.encoder.blocks[0].attention
    assert isinstance(attention, torch.nn.Module) and getattr(attention, option) == value
    assert other.denoiser is not None and other.decoder is not None


def pendulum() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    length, gravity = rng.uniform(0.2, 3.0, 80), rng.uniform(1.0, 12.0, 80)
    return pd.DataFrame({"L": length, "g": gravity, "T": 2 * np.pi * np.sqrt(length / gravity)})


def coulomb() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    first, second, distance = rng.uniform(1.0, 5.0, (3, 80))
    return pd.DataFrame({"q": first, "p": second, "r": distance, "F": 0.75 * first * second / distance**2})


@pytest.mark.parametrize(
    ("generator", "table", "target", "expected"),
    [
        ("autoregressive", pendulum, "T", "2*pi*sqrt(L/g)"),
        ("diffusion", coulomb, "F", "0.75*q*p/r**2"),
    ],
)
def test_a_learned_generator_recovers_a_law_by_itself(
    generator: str, table: object, target: str, expected: str
) -> None:
    rows = table()  # type: ignore[operator]
    solution = solve(rows, target=target, generators=[generator], steps=60, seed=0)
    assert solution.status == "exact"
    names = [name for name in rows.columns if name != target]
    found = to_text(solution.best.expression, names)
    assert evaluate(parse(found, names), rows[names].to_numpy()) == pytest.approx(rows[target].to_numpy())
    assert len(found) <= len(expected)


@pytest.mark.parametrize("name", [name for name in shipped() if name != "standard"])
def test_every_shipped_attention_recovers_a_law(name: str) -> None:
    options = {"generators": ["autoregressive"], "attention": name, "steps": 40, "seed": 0}
    solution = solve(pendulum(), target="T", **options)
    assert solution.status == "exact"
    assert to_text(solution.best.expression, ["L", "g"]) == "2*pi*sqrt(L/g)"


def test_taught_encoders_serve_the_generators_that_ship() -> None:
    """Retraining the default weights without teaching the others again must not go unnoticed."""
    for name in shipped():
        description = json.loads((weights_folder() / name / "model.json").read_text(encoding="utf-8"))
        if "teacher" in description["training"]:
            teacher = weights_folder() / description["training"]["teacher"] / "model.json"
            files = json.loads(teacher.read_text(encoding="utf-8"))["files"]
            shared = {
                file.split("/")[-1]: total for file, total in description["files"].items() if "/" in file
            }
            assert shared and shared.items() <= files.items()
