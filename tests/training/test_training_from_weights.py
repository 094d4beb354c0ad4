"""Training that starts from weights: of another network, frozen, taught, shared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from small_runs import config, settings

from physdiffuser.errors import FileError, UsageError
from physdiffuser.models.checkpoint import load_model
from physdiffuser.training.loop import Trainer


@pytest.fixture(autouse=True)
def _few_laws_to_exclude(monkeypatch: pytest.MonkeyPatch) -> None:
    # Making the keys of all benchmark laws takes most of a second; one test elsewhere does it.
    monkeypatch.setattr("physdiffuser.training.loop.benchmark_laws", list)


def test_starting_from_earlier_weights(tmp_path: Path) -> None:
    first = Trainer(config(tmp_path / "first", steps=2))
    first.run()
    second = Trainer(config(tmp_path / "second", start_from=str(tmp_path / "first")))
    assert second.step == 0
    for name, parameter in second.model.named_parameters():
        assert torch.equal(parameter.detach(), first.average[name])
    with pytest.raises(FileError, match="no complete checkpoint"):
        Trainer(config(tmp_path / "third", start_from=str(tmp_path / "nowhere")))


def test_starting_from_weights_with_another_encoder(tmp_path: Path) -> None:
    Trainer(config(tmp_path / "first", steps=2)).run()
    source = tmp_path / "first" / "model"
    model = settings(tmp_path)["model"]
    other = {**model, "encoder": {**model["encoder"], "attention": "physics-slice"}}
    with pytest.raises(UsageError, match=r"has no encoder\.blocks.* under 'fresh'"):
        Trainer(config(tmp_path / "second", start_from=str(source), model=other))
    trainer = Trainer(
        config(tmp_path / "third", start_from=str(source), fresh=["encoder.blocks"], model=other)
    )
    earlier = load_model(source).state_dict()
    taken = {
        name for name, tensor in trainer.average.items() if torch.equal(tensor, earlier.get(name, tensor))
    }
    assert any(name.startswith("encoder.blocks") for name in trainer.average)
    assert {name for name in trainer.average if not name.startswith("encoder.blocks")} <= taken


def test_frozen_parts_stay_and_the_rest_learns(tmp_path: Path) -> None:
    trainer = Trainer(config(tmp_path, steps=2, frozen=["encoder."]))
    before = {name: tensor.clone() for name, tensor in trainer.model.state_dict().items()}
    trainer.run()
    after = trainer.model.state_dict()
    same = {name for name in before if torch.equal(before[name], after[name])}
    assert same == {name for name in before if name.startswith("encoder.")}


def test_an_encoder_is_taught_by_another(tmp_path: Path) -> None:
    Trainer(config(tmp_path / "first", steps=2)).run()
    source = str(tmp_path / "first" / "model")
    model = settings(tmp_path)["model"]
    other = {**model, "encoder": {**model["encoder"], "attention": "physics-slice"}}
    trainer = Trainer(
        config(
            tmp_path / "second",
            steps=12,
            model=other,
            start_from=source,
            teacher=source,
            fresh=["encoder.blocks"],
            frozen=["decoder", "denoiser"],
        )
    )
    trainer.run()
    records = [json.loads(line) for line in (trainer.folder / "metrics.jsonl").read_text().splitlines()]
    taught = [record["memory"] for record in records if record["kind"] == "validation"]
    assert taught[-1] < taught[0]
    # Validation also says what the generators, which learn nothing, make of the memory.
    assert all("autoregressive" in record for record in records if record["kind"] == "validation")
    notes = json.loads((trainer.folder / "model" / "model.json").read_text())["training"]
    assert notes["teacher"] == source
    with pytest.raises(FileError, match="teacher: no weights"):
        Trainer(config(tmp_path / "third", teacher=str(tmp_path / "nowhere")))


def test_generators_can_be_shared_between_encoders(tmp_path: Path) -> None:
    Trainer(config(tmp_path / "run", steps=2)).run()
    first, second = tmp_path / "run" / "model", tmp_path / "run" / "other"
    second.mkdir()
    description = json.loads((first / "model.json").read_text())
    inside = "step-00000002"
    description["files"] = {
        Path(name).name if "encoder" in name else f"../model/{name}": total
        for name, total in description["files"].items()
    }
    (second / "model.json").write_text(json.dumps(description))
    encoder = (first / inside / "encoder.safetensors").read_bytes()
    (second / "encoder.safetensors").write_bytes(encoder)
    for (name, left), right in zip(
        load_model(first).state_dict().items(), load_model(second).state_dict().values(), strict=True
    ):
        assert torch.equal(left, right), name
    (first / inside / "diffusion.safetensors").write_bytes(b"retrained")
    with pytest.raises(FileError, match="damaged"):
        load_model(second)
