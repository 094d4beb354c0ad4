"""Configurations: strict, with every fault named."""

from __future__ import annotations

from pathlib import Path

import pytest

from physdiffuser.config import TrainingConfig, load_training_config, recipes
from physdiffuser.errors import FileError, UsageError


def write(folder: Path, text: str) -> Path:
    path = folder / "config.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_recipes_are_valid() -> None:
    assert recipes() == ("base", "broad", "small", "tiny")
    for name in recipes():
        config = load_training_config(name)
        assert config.model.encoder.memory >= 16
        assert config.model.diffusion is not None and config.model.autoregressive is not None


def test_numbers_in_every_spelling(tmp_path: Path) -> None:
    config = load_training_config(write(tmp_path, "out: a\nsteps: 10\noptimiser:\n  rate: 5e-4\n"))
    assert config.optimiser.rate == 5e-4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("out: a\nsteps: 10\nstep: 3\n", "step: Extra inputs"),
        ("out: a\nsteps: 10\nsteps: 12\n", "'steps' stands in line 2 already"),
        ("out: a\nsteps: ten\n", "steps: Input should be a valid integer"),
        ("out: a\nsteps: '10'\n", "steps: Input should be a valid integer"),
        ("out: a\nsteps: 0\n", "steps: Input should be greater than 0"),
        ("out: a\n", "steps: Field required"),
        ("out: a\nsteps: 10\ntensorboard: no\n", "tensorboard: Input should be a valid boolean"),
        ("out: a\nsteps: 10\nbatch: 10\nmicro_batch: 4\n", "batch 10 is not a multiple of micro_batch 4"),
        ("out: a\nsteps: 10\nmodel:\n  width: 30\n  heads: 4\n", "width 30 is not a multiple of heads 4"),
        (
            "out: a\nsteps: 10\nmodel:\n  diffusion: null\n  autoregressive: null\n",
            "at least one of diffusion",
        ),
        ("out: a\nsteps: 10\nmodel:\n  encoder:\n    memroy: 16\n", "model.encoder.memroy: Extra inputs"),
        ("out: a\nsteps: 10\ndata:\n  rows: [50, 20]\n", "the smaller number comes first"),
        ("out: a\nsteps: 10\nprecision: fp16\n", "precision: Input should be 'auto', 'bf16' or 'fp32'"),
        ("out: a\nsteps: 10\nfresh: [encoder]\n", "it needs start_from"),
        ("- out\n- steps\n", "must be a mapping"),
        ("out: [a\n", "line 2"),
        ("out: a\nsteps: 10\noptimiser:\n  rate: .nan\n", "optimiser.rate"),
    ],
)
def test_faults_are_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message.replace("[", r"\[")):
        load_training_config(write(tmp_path, text))


def test_missing_and_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="one of the recipes base, broad, small, tiny"):
        load_training_config(tmp_path / "nowhere.yaml")
    path = tmp_path / "latin.yaml"
    path.write_bytes("out: caf\xe9\n".encode("latin-1"))
    with pytest.raises(UsageError, match="is not UTF-8"):
        load_training_config(path)


def test_configuration_survives_json() -> None:
    config = load_training_config("small")
    assert TrainingConfig.model_validate_json(config.model_dump_json()) == config
