"""The tool that puts weights into the package: nothing is written twice, and it loads as it was."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
import torch

from physdiffuser.config import DecoderConfig, EncoderConfig, ModelConfig
from physdiffuser.models.checkpoint import load_model, save_model
from physdiffuser.models.network import LawModel
from physdiffuser.models.tokens.vocabulary import Vocabulary

PATH = Path(__file__).parents[2] / "tools" / "ship_weights.py"


@pytest.fixture(name="tool")
def _tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    if not PATH.exists():
        pytest.skip("the tools are not part of an installed package")
    spec = importlib.util.spec_from_file_location("ship_weights", PATH)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "weights_folder", lambda: tmp_path / "weights")
    return module


def model(slices: int | None) -> LawModel:
    torch.manual_seed(0)
    if slices is None:
        encoder = EncoderConfig(layers=1, memory=4, mixing=1)
    else:
        options = {"slices": slices}
        encoder = EncoderConfig(layers=1, memory=4, mixing=1, attention="physics-slice", options=options)
    parts = {"diffusion": DecoderConfig(layers=1), "autoregressive": DecoderConfig(layers=1)}
    return LawModel(ModelConfig(width=16, heads=2, length=20, encoder=encoder, **parts), Vocabulary())


def saved(folder: Path, made: LawModel) -> Path:
    save_model(folder, made.config, made.vocabulary, dict(made.named_parameters()), {"tables": 1})
    return folder


def test_only_what_differs_is_written(tool: ModuleType, tmp_path: Path) -> None:
    first, second = model(8), model(4)
    kept = first.state_dict()
    for name, tensor in second.state_dict().items():
        if not name.startswith("encoder.blocks"):
            tensor.copy_(kept[name])
    tool.main([str(saved(tmp_path / "eight", first)), "slice"])
    tool.main([str(saved(tmp_path / "four", second)), "slice/few", "--blocks-of", "slice"])
    few = tmp_path / "weights" / "slice" / "few"
    assert sorted(path.name for path in few.iterdir()) == ["blocks.safetensors", "model.json"]
    expected = load_model(tmp_path / "four").state_dict()
    found = load_model(few).state_dict()
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], tensor) for name, tensor in expected.items())


def test_blocks_may_lack_what_the_base_has(tool: ModuleType, tmp_path: Path) -> None:
    induced, sliced = model(None), model(4)
    kept = induced.state_dict()
    assert any(name.startswith("encoder.points") for name in kept)
    for name, tensor in sliced.state_dict().items():
        if not name.startswith("encoder.blocks"):
            tensor.copy_(kept[name])
    tool.main([str(saved(tmp_path / "induced", induced)), "standard"])
    tool.main([str(saved(tmp_path / "sliced", sliced)), "slice", "--blocks-of", "standard"])
    found = load_model(tmp_path / "weights" / "slice").state_dict()
    expected = load_model(tmp_path / "sliced").state_dict()
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], tensor) for name, tensor in expected.items())
