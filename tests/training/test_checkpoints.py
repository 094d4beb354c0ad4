"""Files of a training run: damaged ones are named and skipped, and no step is logged twice."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from small_runs import config, metrics, settings

from physdiffuser.cli.entry import main
from physdiffuser.errors import FileError, UsageError
from physdiffuser.models.checkpoint import load_model
from physdiffuser.training.checkpoints import load_latest, save_checkpoint
from physdiffuser.training.loop import Trainer
from physdiffuser.training.metrics import METRICS, keep_rows_until


@pytest.fixture(autouse=True)
def _few_laws_to_exclude(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("physdiffuser.training.loop.benchmark_laws", list)


def flip(path: Path, place: int = -1) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(bytes(content))


def run(folder: Path, steps: int = 4) -> Path:
    Trainer(config(folder, steps=steps, checkpoint_every=1, keep=3)).run()
    return folder / "checkpoints"


def write_config(folder: Path, **changes: object) -> str:
    path = folder / "config.json"
    changes = {"steps": 6, "checkpoint_every": 1, "keep": 3, **changes}
    path.write_text(json.dumps(settings(folder / "out", **changes)), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("file", ["weights.safetensors", "optimiser.safetensors", "state.json"])
def test_resuming_skips_a_damaged_checkpoint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], file: str
) -> None:
    checkpoints = run(tmp_path / "out")
    flip(checkpoints / "step-00000004" / file, 40)
    assert main(["train", write_config(tmp_path), "--resume", "--quiet"]) == 0
    messages = capsys.readouterr().err
    assert f"step-00000004/{file}'" in messages and "checkpoint of step 3 is used" in messages
    assert "model.json" not in messages
    whole, resumed = run(tmp_path / "whole", 6), checkpoints
    expected, found = load_latest(whole), load_latest(resumed)
    assert expected is not None and found is not None and found.step == 6 and not found.damaged
    for group, tensors in expected.tensors.items():
        for name, tensor in tensors.items():
            assert torch.equal(tensor, found.tensors[group][name]), (group, name)
    assert [record["step"] for record in metrics(tmp_path / "out", "train")] == [1, 2, 3, 4, 5, 6]
    assert load_model(tmp_path / "out" / "model") is not None


def test_if_all_checkpoints_are_damaged_each_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoints = run(tmp_path / "out")
    for step, file in ((2, "state.json"), (3, "average.safetensors"), (4, "weights.safetensors")):
        (checkpoints / f"step-{step:08d}" / file).write_bytes(b"")
    assert main(["train", write_config(tmp_path), "--resume", "--quiet"]) == 4
    messages = capsys.readouterr().err
    for step, file in ((2, "state.json"), (3, "average.safetensors"), (4, "weights.safetensors")):
        assert f"step-{step:08d}/{file}'" in messages


def test_another_configuration_is_named_with_its_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoints = run(tmp_path / "out")
    flip(checkpoints / "step-00000004" / "weights.safetensors")
    before = (tmp_path / "out" / METRICS).read_bytes()
    changed = write_config(tmp_path, seed=9, optimiser={"rate": 0.1, "warmup": 2})
    assert main(["train", changed, "--resume", "--quiet"]) == 2
    messages = capsys.readouterr().err
    assert "optimiser.rate (0.003, now 0.1)" in messages and "seed (0, now 9)" in messages
    assert (tmp_path / "out" / METRICS).read_bytes() == before


def test_a_setting_that_only_the_checkpoint_has_is_a_difference(tmp_path: Path) -> None:
    checkpoints = run(tmp_path / "out", 2)
    found = load_latest(checkpoints)
    assert found is not None
    shutil.rmtree(checkpoints)
    found.state["config"]["data"]["later_version"] = True
    save_checkpoint(checkpoints, found, 2)
    with pytest.raises(UsageError, match=r"data\.later_version \(True, now None\)"):
        Trainer(config(tmp_path / "out", steps=2, checkpoint_every=1, keep=3), resume=True)


@pytest.mark.parametrize("kind", ["changed number", "renamed key", "checkpoint of another step"])
def test_a_description_that_was_changed_is_damaged(tmp_path: Path, kind: str) -> None:
    checkpoints = run(tmp_path, 3)
    newest = checkpoints / "step-00000003"
    state = newest / "state.json"
    text = state.read_text(encoding="utf-8")
    if kind == "changed number":
        state.write_text(text.replace('"batch": 8', '"batch": 9'), encoding="utf-8")
    elif kind == "renamed key":
        state.write_text(text.replace('"sum"', '"sun"'), encoding="utf-8")
    else:
        shutil.rmtree(newest)
        shutil.copytree(checkpoints / "step-00000001", newest)
    found = load_latest(checkpoints)
    assert found is not None and found.step == 2 and "step-00000003/state.json" in found.damaged[0]


def test_a_checkpoint_from_before_descriptions_had_sums_is_read(tmp_path: Path) -> None:
    checkpoints = run(tmp_path, 2)
    state = checkpoints / "step-00000002" / "state.json"
    content = json.loads(state.read_text(encoding="utf-8"))
    del content["sum"]
    state.write_text(json.dumps(content), encoding="utf-8")
    found = load_latest(checkpoints)
    assert found is not None and found.step == 2


def test_a_damaged_checkpoint_does_not_displace_a_new_one(tmp_path: Path) -> None:
    checkpoints = run(tmp_path)
    for step in (3, 4):
        flip(checkpoints / f"step-{step:08d}" / "weights.safetensors")
    trainer = Trainer(config(tmp_path, steps=3, checkpoint_every=1, keep=1), resume=True)
    assert trainer.step == 2
    trainer.run()
    assert [path.name for path in checkpoints.glob("step-*")] == ["step-00000003"]
    found = load_latest(checkpoints)
    assert found is not None and found.step == 3


def test_start_from_skips_a_damaged_checkpoint(tmp_path: Path) -> None:
    checkpoints = run(tmp_path / "first")
    flip(checkpoints / "step-00000004" / "average.safetensors")
    trainer = Trainer(config(tmp_path / "second", start_from=str(tmp_path / "first")))
    assert "step-00000004/average.safetensors" in trainer.warnings[0]


def test_a_failed_write_leaves_the_checkpoint_of_the_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints = run(tmp_path, 2)
    found = load_latest(checkpoints)
    assert found is not None

    def full(*arguments: object) -> str:
        raise FileError("disk full")

    monkeypatch.setattr("physdiffuser.training.checkpoints.write_tensors", full)
    save_checkpoint(checkpoints, found, 1)  # the same step: nothing to write, and nothing to remove first
    again = load_latest(checkpoints)
    assert again is not None and again.step == 2


def test_rows_after_the_checkpoint_and_torn_lines_are_dropped(tmp_path: Path) -> None:
    log = tmp_path / METRICS
    rows = [json.dumps({"kind": "train", "step": step}).encode() for step in (9, 10, 11)]
    log.write_bytes(b"\n".join(rows) + b'\n{"kind": "train", "st')
    keep_rows_until(tmp_path, 10)
    assert log.read_bytes() == b"\n".join(rows[:2]) + b"\n"


def test_a_killed_run_logs_each_step_once(tmp_path: Path) -> None:
    chosen = config(tmp_path / "out", steps=6, checkpoint_every=3)
    _run_until(Trainer(chosen), 5)
    with (tmp_path / "out" / METRICS).open("ab") as stream:
        stream.write(b'{"kind": "train", "step": 6, "sec')
    Trainer(chosen, resume=True).run()
    assert [record["step"] for record in metrics(tmp_path / "out", "train")] == [1, 2, 3, 4, 5, 6]
    assert [record["step"] for record in metrics(tmp_path / "out", "validation")] == [2, 4, 6]


class _Killed(Exception):
    pass


def _run_until(trainer: Trainer, last: int) -> None:
    def progress(step: int, metrics: dict[str, float]) -> None:
        if step == last:
            raise _Killed

    with pytest.raises(_Killed):
        trainer.run(progress)


def test_a_run_without_a_checkpoint_is_not_mixed_with_another(tmp_path: Path) -> None:
    chosen = config(tmp_path, steps=6, checkpoint_every=6)
    _run_until(Trainer(chosen), 3)
    with pytest.raises(UsageError, match="already holds metrics"):
        Trainer(chosen)
    Trainer(chosen, resume=True).run()
    assert [record["step"] for record in metrics(tmp_path, "train")] == [1, 2, 3, 4, 5, 6]


def test_the_model_is_complete_while_it_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path, 2)
    before = load_model(tmp_path / "model").state_dict()
    trainer = Trainer(config(tmp_path, steps=4, checkpoint_every=1, keep=3), resume=True)

    def killed(*arguments: object) -> None:
        raise _Killed

    monkeypatch.setattr("physdiffuser.models.checkpoint.write_text_atomic", killed)
    with pytest.raises(_Killed):
        trainer.run()
    after = load_model(tmp_path / "model").state_dict()
    assert all(torch.equal(tensor, after[name]) for name, tensor in before.items())
    monkeypatch.undo()
    monkeypatch.setattr("physdiffuser.training.loop.benchmark_laws", list)
    # The checkpoint of step 3 was complete: a run of three steps has nothing to do but write its model.
    Trainer(config(tmp_path, steps=3, checkpoint_every=1, keep=3), resume=True).run()
    written = json.loads((tmp_path / "model" / "model.json").read_text(encoding="utf-8"))
    assert written["training"]["steps"] == 3 and load_model(tmp_path / "model") is not None


def test_a_folder_that_cannot_be_made_ends_the_run_before_torch_is_imported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    script = (
        "import sys\nfrom physdiffuser.cli.entry import main\n"
        f"code = main(['train', 'tiny', '--out', {str(tmp_path / 'file' / 'run')!r}])\n"
        "print(code, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["4", "False"]
    assert "file/run" in done.stderr and "--out" in done.stderr


def test_a_folder_in_use_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from physdiffuser.io.folder_lock import FolderLock

    (tmp_path / "out").mkdir()
    with FolderLock(tmp_path / "out"):
        assert main(["train", write_config(tmp_path), "--quiet"]) == 4
    assert "in use by another run" in capsys.readouterr().err


def test_ctrl_c_stops_between_two_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    validate = Trainer.validate

    def interrupted(trainer: Trainer) -> dict[str, float]:
        found = validate(trainer)
        if trainer.step == 2:
            # While the parameters of the model may be those of its moving average.
            os.kill(os.getpid(), signal.SIGINT)
        return found

    monkeypatch.setattr(Trainer, "validate", interrupted)
    path = write_config(tmp_path, steps=4, checkpoint_every=4)
    assert main(["train", path, "--quiet"]) == 130
    assert "stopped after step 2 of 4" in capsys.readouterr().err
    monkeypatch.setattr(Trainer, "validate", validate)
    assert main(["train", path, "--resume", "--quiet"]) == 0
    Trainer(config(tmp_path / "whole", steps=4, checkpoint_every=4, keep=3)).run()
    expected = load_latest(tmp_path / "whole" / "checkpoints")
    found = load_latest(tmp_path / "out" / "checkpoints")
    assert expected is not None and found is not None
    for name, tensor in expected.tensors["weights"].items():
        assert torch.equal(tensor, found.tensors["weights"][name]), name
    assert [record["step"] for record in metrics(tmp_path / "out", "train")] == [1, 2, 3, 4]
