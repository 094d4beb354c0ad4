"""The tools around the stream: what it holds, laws packed beforehand, training in parts."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest
from small_runs import settings

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
