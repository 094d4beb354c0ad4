"""The tools around the stream: what it holds, laws packed beforehand, training in parts."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest
from small_runs import settings

from physdiffuser.models.checkpoint import load_model
from physdiffuser.models.network import LawModel
from physdiffuser.models.tokens.vocabulary import Vocabulary

TOOLS = Path(__file__).parents[2] / "tools"


def _tool(name: str) -> ModuleType:
    if not TOOLS.exists():
        pytest.skip("the tools are not part of an installed package")
    spec = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def _no_benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys of all benchmark laws take seconds."""
    monkeypatch.setattr("physdiffuser.training.stream.benchmark_laws", list)
    monkeypatch.setattr("physdiffuser.training.loop.benchmark_laws", list)
    monkeypatch.syspath_prepend(TOOLS)


def test_two_streams_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    _tool("measure_stream").main(["tiny", "broad", "--tables", "128"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "| | tiny | broad |"
    figures = {line.split("|")[1].strip(): line.split("|")[2:4] for line in lines[2:]}
    assert {"laws of at most 9 tokens", "damped waves", "tables a second"} <= set(figures)
    assert all(cell.strip() for cells in figures.values() for cell in cells)


def test_a_run_in_two_parts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(json.dumps(settings(tmp_path / "run", steps=6)), encoding="utf-8")
    packed = tmp_path / "laws.npz"
    # `packed` of the tool runs in another process, which has the benchmark laws.
    tool = _tool("pack_laws")
    tool.packed(str(config), 1, 40).write(packed)
    part = _tool("train_part")
    given = [str(config), "--laws", str(packed)]
    part.main([*given, "--minutes", "0", "--out", str(tmp_path / "one")])
    first = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert first["steps"][0] == 0 < first["steps"][1] < 6
    assert max(first["MiB"].values()) < 16
    (tmp_path / "run").rename(tmp_path / "gone")
    part.main([*given, "--minutes", "5", "--out", str(tmp_path / "two"), "--state", str(tmp_path / "one")])
    second = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert second["steps"] == [first["steps"][1], 6]
    assert (tmp_path / "two" / "metrics.jsonl").is_file()


def test_a_whole_run_leaves_the_newest_model(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(json.dumps(settings(tmp_path / "run", steps=3, checkpoint_every=1)), encoding="utf-8")
    _tool("train_part").main([str(config), "--whole", "--minutes", "5", "--out", str(tmp_path / "out")])
    assert load_model(tmp_path / "out" / "model").decoder is not None
    assert len(list((tmp_path / "out" / "model").rglob("*.safetensors"))) == 3


def test_all_but_the_blocks_of_an_encoder_stay_as_they_are(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(json.dumps(settings(tmp_path / "run", steps=1)), encoding="utf-8")
    _tool("train_part").main([str(config), "--whole", "--minutes", "5", "--out", str(tmp_path / "out")])
    model = tmp_path / "out" / "model"
    made = _tool("train_blocks").configuration(model, "biased", tmp_path, "laws.npz", taught=True)
    assert (made.model.encoder.attention, made.teacher) == ("biased", str(model))
    network = LawModel(made.model, Vocabulary())
    learning = [name for name, _ in network.named_parameters() if not name.startswith(made.frozen)]
    assert learning and all(name.startswith("encoder.blocks") for name in learning)
