"""The loop: it learns, resumes to the bit, survives being killed, and works on two processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_runs import config, metrics, settings

from physdiffuser.config import parse_training_config
from physdiffuser.core.problem import Budget, Problem
from physdiffuser.errors import UsageError
from physdiffuser.expressions.tree import variables
from physdiffuser.generation.autoregressive import build as build_autoregressive
from physdiffuser.generation.diffusion import build as build_diffusion
from physdiffuser.models.checkpoint import load_model
from physdiffuser.models.tokens.vocabulary import Vocabulary
from physdiffuser.search.archive import ParetoArchive
from physdiffuser.training.checkpoints import load_latest
from physdiffuser.training.decontamination import Excluded
from physdiffuser.training.loop import Trainer, learning_rate


@pytest.fixture(autouse=True)
def _few_laws_to_exclude(monkeypatch: pytest.MonkeyPatch) -> None:
    # Making the keys of all benchmark laws takes most of a second; one test elsewhere does it.
    monkeypatch.setattr("physdiffuser.training.loop.benchmark_laws", list)


def test_losses_fall(tmp_path: Path) -> None:
    Trainer(config(tmp_path, steps=30, checkpoint_every=30, validate_every=15, batch=16)).run()
    records = metrics(tmp_path, "train")
    for name in ("autoregressive", "diffusion"):
        early = sum(record[name] for record in records[:5])
        late = sum(record[name] for record in records[-5:])
        assert late < 0.85 * early
    assert len(metrics(tmp_path, "validation")) == 2
    assert all(record["laws_per_second"] > 0 for record in records)


def test_hidden_summaries_leave_the_rows(tmp_path: Path) -> None:
    trainer = Trainer(config(tmp_path, hide_summaries=0.5))
    trainer.run()
    last = metrics(tmp_path, "validation")[-1]
    assert last["autoregressive_rows_only"] > 0 and last["diffusion_rows_only"] > 0
    assert last["autoregressive_rows_only"] != last["autoregressive"]
    batch = trainer.stream.batch(0, 2, 0)
    rows, used = torch.from_numpy(batch.rows), torch.from_numpy(batch.used)
    padding = torch.zeros(rows.shape[:2], dtype=torch.bool)
    model = trainer.model.eval()
    with torch.no_grad():
        whole, seen = model.encode(rows, padding, used)
        hidden, unseen = model.encode(rows, padding, used, None, None, torch.tensor([False, True]))
        # Other summary rows change nothing where they are hidden.
        others, _ = model.encode(rows, padding, used, rows.flip(0), padding, torch.tensor([False, True]))
    memory = len(model.encoder.seeds)
    assert torch.equal(seen[0], unseen[0]) and unseen[1, memory:].all() and not unseen[1, :memory].any()
    torch.testing.assert_close(whole[0], hidden[0])
    torch.testing.assert_close(hidden[1, :memory], others[1, :memory])


def test_hiding_summaries_needs_summaries(tmp_path: Path) -> None:
    network = {**settings(tmp_path)["model"], "encoder": {"layers": 1, "statistics": False}}
    with pytest.raises(UsageError, match="hide_summaries"):
        config(tmp_path, hide_summaries=0.3, model=network)


@pytest.mark.parametrize("kind", ["adamw", "muon"])
def test_resuming_gives_the_same_weights_to_the_bit(tmp_path: Path, kind: str) -> None:
    rates = {"kind": kind, "rate": 3e-3, "warmup": 2}
    Trainer(config(tmp_path / "whole", optimiser=rates)).run()
    interrupted = Trainer(config(tmp_path / "parts", optimiser=rates))
    batches = interrupted.stream.batches(0, 8)
    for _ in range(2):
        interrupted.train_step(next(batches))
    interrupted.save()
    resumed = Trainer(config(tmp_path / "parts", optimiser=rates), resume=True)
    assert resumed.step == 2
    resumed.run()
    whole = load_latest(tmp_path / "whole" / "checkpoints")
    parts = load_latest(tmp_path / "parts" / "checkpoints")
    assert whole is not None and parts is not None and whole.step == parts.step == 4
    for group in whole.tensors:
        assert whole.tensors[group].keys() == parts.tensors[group].keys()
        for name, tensor in whole.tensors[group].items():
            assert torch.equal(tensor, parts.tensors[group][name]), (group, name)


def test_a_run_that_runs_out_of_time_goes_on_later(tmp_path: Path) -> None:
    Trainer(config(tmp_path / "whole", checkpoint_every=100)).run()
    short = Trainer(config(tmp_path / "parts", checkpoint_every=100))
    short.run(minutes=1e-9)
    assert short.step == 1
    resumed = Trainer(config(tmp_path / "parts", checkpoint_every=100), resume=True)
    assert resumed.step == 1
    resumed.run(minutes=10)
    whole, parts = (load_latest(tmp_path / name / "checkpoints") for name in ("whole", "parts"))
    assert whole is not None and parts is not None and parts.step == 4
    for name, tensor in whole.tensors["weights"].items():
        assert torch.equal(tensor, parts.tensors["weights"][name]), name


@pytest.mark.parametrize("kind", ["adamw", "muon"])
def test_a_step_without_a_finite_gradient_changes_nothing(tmp_path: Path, kind: str) -> None:
    trainer = Trainer(config(tmp_path, optimiser={"kind": kind}))
    trainer.train_step(trainer.stream.batch(0, 8))
    before = {name: tensor.clone() for name, tensor in trainer.model.state_dict().items()}
    hook = trainer.model.nothing.register_hook(lambda gradient: gradient * float("nan"))
    found = trainer.train_step(trainer.stream.batch(1, 8))
    assert not torch.isfinite(found["gradient"])
    for name, tensor in trainer.model.state_dict().items():
        assert torch.equal(tensor, before[name]), name
    hook.remove()
    trainer.train_step(trainer.stream.batch(2, 8))
    assert not torch.equal(trainer.model.state_dict()["encoder.seeds"], before["encoder.seeds"])


def test_several_masks_of_each_law(tmp_path: Path) -> None:
    once, thrice = (Trainer(config(tmp_path / str(masks), masks=masks, micro_batch=8)) for masks in (1, 3))
    batch = once.stream.batch(0, 8)
    first, third = once.train_step(batch), thrice.train_step(batch)
    torch.testing.assert_close(first["autoregressive"], third["autoregressive"])
    assert first["diffusion"] != third["diffusion"]


def test_a_run_is_not_overwritten_or_continued_with_another_network(tmp_path: Path) -> None:
    Trainer(config(tmp_path, steps=2)).run()
    with pytest.raises(UsageError, match="already holds a run of 2 steps"):
        Trainer(config(tmp_path, steps=2))
    with pytest.raises(UsageError, match="changed: seed"):
        Trainer(config(tmp_path, steps=3, seed=9), resume=True)
    assert Trainer(config(tmp_path, steps=3), resume=True).step == 2


def test_old_checkpoints_are_removed(tmp_path: Path) -> None:
    Trainer(config(tmp_path, steps=4, checkpoint_every=1, keep=2)).run()
    names = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert names == ["step-00000003", "step-00000004"]


def test_an_unfinished_checkpoint_is_ignored(tmp_path: Path) -> None:
    Trainer(config(tmp_path, steps=2)).run()
    (tmp_path / "checkpoints" / ".step-00000009.tmp").mkdir()
    found = load_latest(tmp_path / "checkpoints")
    assert found is not None and found.step == 2
    assert load_latest(tmp_path / "nowhere") is None


def test_the_model_it_writes_can_be_used(tmp_path: Path) -> None:
    trainer = Trainer(config(tmp_path, steps=2))
    trainer.run()
    model = load_model(tmp_path / "model")
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter, trainer.average[name].bfloat16().float())
    only = load_model(tmp_path / "model", ("diffusion",))
    assert only.decoder is None and only.denoiser is not None


def test_a_model_of_derivations_can_be_used(tmp_path: Path) -> None:
    data = {**settings(tmp_path)["data"], "chains": 0.7}
    Trainer(config(tmp_path, steps=12, batch=16, micro_batch=16, data=data)).run()
    model = load_model(tmp_path / "model")
    assert model.vocabulary == Vocabulary.with_names()
    rng = np.random.default_rng(0)
    inputs = rng.uniform(1.0, 3.0, (40, 2))
    problem = Problem(inputs=inputs, target=inputs[:, 0] * inputs[:, 1], names=("a", "b"), seed=0)
    for build in (build_autoregressive, build_diffusion):
        generator = build(weights=str(tmp_path / "model"), candidates=32, rounds=1, device="cpu")
        found = list(generator.propose(problem, ParetoArchive(problem), Budget(steps=10**6)))
        # Hardly trained, it writes little that makes sense; what is proposed is a formula of the columns.
        assert all(variables(candidate.expression) <= {0, 1} for candidate in found)


def test_precision_is_chosen_by_the_processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # On a processor without bfloat16 products, autocast to it was 12 times slower than single precision.
    for fast in (True, False):
        monkeypatch.setattr("physdiffuser.training.loop.fast_bfloat16", lambda kind, fast=fast: fast)
        trainer = Trainer(config(tmp_path / str(fast)))
        seen: list[bool] = []
        encode = trainer.model.encode

        def spy(*arguments: Any, encode: Any = encode, seen: list[bool] = seen) -> Any:
            seen.append(torch.is_autocast_enabled("cpu"))
            return encode(*arguments)

        monkeypatch.setattr(trainer.model, "encode", spy)
        trainer.train_step(next(iter(trainer.stream.batches(0, 8))))
        assert set(seen) == {fast}


@pytest.mark.parametrize("part", ["diffusion", "autoregressive"])
def test_one_generator_alone(tmp_path: Path, part: str) -> None:
    model = settings(tmp_path)["model"]
    model[part] = None
    Trainer(config(tmp_path, steps=2, model=model)).run()
    assert part not in metrics(tmp_path, "train")[-1]
    with pytest.raises(UsageError, match=f"hold no {part} generator"):
        load_model(tmp_path / "model", (part,))


def test_learning_rate_warms_up_and_decays(tmp_path: Path) -> None:
    chosen = config(tmp_path, steps=100)
    rates = [learning_rate(chosen, step) for step in range(101)]
    assert rates[0] == pytest.approx(1.5e-3) and max(rates) == pytest.approx(3e-3)
    assert rates[-1] == pytest.approx(0.05 * 3e-3) and rates[10:] == sorted(rates[10:], reverse=True)


def test_a_cooldown_leaves_the_rate_alone_until_it_begins(tmp_path: Path) -> None:
    rates = {"rate": 3e-3, "warmup": 2, "cooldown": 0.25, "final": 0.0}
    chosen, longer = (config(tmp_path, steps=steps, optimiser=rates) for steps in (100, 400))
    assert all(learning_rate(chosen, step) == learning_rate(longer, step) for step in range(76))
    assert learning_rate(chosen, 75) == 3e-3
    assert learning_rate(chosen, 88) == pytest.approx(0.48 * 3e-3)
    assert learning_rate(chosen, 100) == 0.0


def test_no_gpu_is_said(tmp_path: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(UsageError, match="torch sees no GPU"):
        Trainer(config(tmp_path, device="cuda"))


def test_tensorboard_is_an_extra(tmp_path: Path) -> None:
    try:
        import tensorboard  # noqa: F401
    except ImportError:
        with pytest.raises(UsageError, match=r"physdiffuser\[tensorboard\]"):
            Trainer(config(tmp_path, tensorboard=True))
    else:
        Trainer(config(tmp_path, tensorboard=True, steps=2)).run()
        assert list((tmp_path / "tensorboard").iterdir())


def test_excluded_laws_are_noted(tmp_path: Path) -> None:
    trainer = Trainer(config(tmp_path))
    assert trainer.notes()["excluded_laws"] == Excluded([]).long == 0


def run_command(folder: Path, *options: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    path = folder / "config.json"
    path.write_text(json.dumps(settings(folder / "out", steps=400, checkpoint_every=3)), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "physdiffuser",
        "train",
        str(path),
        "--quiet",
        *options,
    ]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)


def test_killed_and_resumed(tmp_path: Path) -> None:
    process = run_command(tmp_path)
    checkpoints = tmp_path / "out" / "checkpoints"
    deadline = time.monotonic() + 120
    while load_latest(checkpoints) is None and time.monotonic() < deadline:
        assert process.poll() is None, process.stderr.read() if process.stderr else ""
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    found = load_latest(checkpoints)
    assert found is not None and found.step % 3 == 0
    resumed = Trainer(
        parse_training_config(settings(tmp_path / "out", steps=400, checkpoint_every=3), "test"), resume=True
    )
    assert resumed.step == found.step


def test_two_processes_agree(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(settings(tmp_path / "out", steps=2)), encoding="utf-8")
    command = [
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
        "-m", "physdiffuser", "train", str(path), "--quiet", "--minutes", "10",
    ]  # fmt: skip
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    found = load_latest(tmp_path / "out" / "checkpoints")
    assert found is not None and found.step == 2
    # The same two batches, one after the other in one process: the averaged gradient is theirs.
    description = json.loads((tmp_path / "out" / "model" / "model.json").read_text(encoding="utf-8"))
    assert description["training"]["tables"] == 2 * 8 * 2
    alone = load_latest(_alone(tmp_path))
    assert alone is not None
    assert any(
        not torch.equal(tensor, alone.tensors["weights"][name])
        for name, tensor in found.tensors["weights"].items()
    )


LEAVING = """
import os
import torch
from physdiffuser.training.processes import Processes
from torch import nn

processes = Processes.join(torch.device("cpu"))
weight = nn.Parameter(torch.ones(3))
torch.optim.AdamW([weight])
processes.average([weight])
processes.leave()
threads = [open(f"/proc/self/task/{task}/comm").read() for task in os.listdir("/proc/self/task")]
raise SystemExit(any("gloo" in name for name in threads))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts threads in /proc")
def test_leaving_ends_the_threads_of_the_group(tmp_path: Path) -> None:
    script = tmp_path / "leaving.py"
    script.write_text(LEAVING, encoding="utf-8")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", script]
    done = subprocess.run(command, capture_output=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2000:]


def _alone(folder: Path) -> Path:
    Trainer(config(folder / "alone", steps=2)).run()
    return folder / "alone" / "checkpoints"
