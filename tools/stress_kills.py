"""Kill `train`, `evaluate` and `solve` while they write, run them again, and check what is on the disk.

    python tools/stress_kills.py --train 80 --evaluate 60 --solve 60

Each case runs the command in a forked process. It ends itself with SIGKILL at a chosen operation on a file
(in the middle of a write, before or after a rename, a removal or a sync), or is killed at a random time. Then
the command is run again, with --resume where it has that option. Checked are, after the kill: every file can
be read, the files of a run folder are of one run, no completed result is missing. After the second run: no
step and no problem is recorded twice, and weights of training are, to the bit, those of a run that was not
interrupted. The exit code is 1 if anything was not as it must be.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from killing import in_child, kill_at, wait

TRAIN_STEPS = 5
LAWS = ("I.12.1", "I.12.5", "I.14.4", "I.25.13", "I.29.4", "I.34.27")


class Scenario(Protocol):
    """A command that is killed and run again."""

    def prepare(self, folder: Path) -> None:
        """Make what the command finds."""

    def work(self, folder: Path, again: bool) -> int:
        """Run the command; returns its exit code."""

    def check(self, folder: Path, final: bool) -> list[str]:
        """What is wrong with the files."""


class Train:
    """Training of some steps with a small network."""

    def __init__(self, reference: Path) -> None:
        import torch
        import torch._dynamo  # optimisers import it; a forked process then need not

        from physdiffuser.training import loop

        torch.set_num_threads(1)
        loop.benchmark_laws = list  # type: ignore[attr-defined]  # the laws to exclude do not matter here
        self.reference = reference
        self.prepare(reference)
        if wait(in_child(lambda: self.work(reference, False), reference / "log")):
            raise SystemExit((reference / "log").read_text())

    def prepare(self, folder: Path) -> None:
        """Write the configuration."""
        network: dict[str, Any] = {"width": 16, "heads": 2, "length": 24, "diffusion": {"layers": 1}}
        network["encoder"] = {"rows": 16, "layers": 1, "inducing": 4, "mixing": 1}
        settings = {
            "out": str(folder / "out"), "steps": TRAIN_STEPS, "batch": 4, "micro_batch": 4, "device": "cpu",
            "checkpoint_every": 2, "keep": 2, "log_every": 1, "validate_every": 2, "validation_laws": 4,
            "threads": 1, "data": {"rows": [16, 24]}, "model": network, "optimiser": {"warmup": 2},
        }  # fmt: skip
        (folder / "config.json").write_text(json.dumps(settings), encoding="utf-8")

    def work(self, folder: Path, again: bool) -> int:
        """Train; the second time with --resume."""
        from physdiffuser.cli.entry import main

        resume = ["--resume"] if again else []
        return main(["train", str(folder / "config.json"), "--quiet", *resume])

    def check(self, folder: Path, final: bool) -> list[str]:
        """Checkpoints, model, metrics."""
        import torch

        from physdiffuser.models.checkpoint import load_model
        from physdiffuser.training.checkpoints import load_latest

        wrong = []
        out = folder / "out"
        found = load_latest(out / "checkpoints")
        if found is not None and found.damaged:
            wrong.append(f"damaged checkpoint: {found.damaged[0]}")
        if (out / "model" / "model.json").exists():
            load_model(out / "model")
        if not final:
            return wrong
        expected = load_latest(self.reference / "out" / "checkpoints")
        assert expected is not None
        if found is None or found.step != TRAIN_STEPS:
            return [*wrong, "did not end with its last checkpoint"]
        wrong += [
            f"other {group} {name}"
            for group, tensors in expected.tensors.items()
            for name, tensor in tensors.items()
            if not torch.equal(tensor, found.tensors[group][name])
        ][:1]
        if _losses(out) != _losses(self.reference / "out"):
            wrong.append("metrics are not those of an uninterrupted run, each row once")
        notes = json.loads((out / "model" / "model.json").read_text(encoding="utf-8"))["training"]
        if notes["steps"] != TRAIN_STEPS:
            wrong.append(f"the model is of step {notes['steps']}")
        return wrong


def _losses(out: Path) -> list[tuple[Any, ...]]:
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return [(row["kind"], row["step"], row["diffusion"]) for row in rows]


class Evaluate:
    """A benchmark run whose answers come at once, so that only the result file is tested."""

    def prepare(self, folder: Path) -> None:
        """Nothing: the result file does not exist."""

    def work(self, folder: Path, again: bool) -> int:
        """Run the problems that have no result."""
        from benchmarks_feynman.running import run_tasks
        from benchmarks_feynman.tasks import Task

        def answers(tasks: Sequence[Task]) -> Iterator[tuple[Task, dict[str, Any]]]:
            for task in tasks:
                time.sleep(0.002)
                yield task, {"status": "done", "expression": "x", "seconds": 0.1}

        path = folder / "results.jsonl"
        found = run_tasks(_tasks(), answers, path, resume=again or path.exists(), quiet=True)
        return 0 if len(found) == len(LAWS) else 1

    def check(self, folder: Path, final: bool) -> list[str]:
        """Each result once, and at most one incomplete line, which the next run removes."""
        from benchmarks_feynman.results import read_results

        path = folder / "results.jsonl"
        if not path.exists():
            return ["no results"] if final else []
        lines = read_results(path)
        count = len(path.read_bytes().splitlines()) - len(lines.problems)
        wrong = [] if count == len(lines.results) else ["a result is there twice"]
        if len(lines.problems) > (0 if final else 1):
            wrong.append(f"unreadable: {lines.problems[0]}")
        marker = folder / "complete"
        before = json.loads(marker.read_text()) if marker.exists() else []
        now = [result["id"] for result in lines.results]
        if not set(before) <= set(now):
            wrong.append("a completed result was lost")
        marker.write_text(json.dumps(now))
        if final and sorted(now) != sorted(LAWS):
            wrong.append(f"{len(now)} results of {len(LAWS)}")
        return wrong


def _tasks() -> list[Any]:
    from benchmarks_feynman.suites import select
    from benchmarks_feynman.tasks import KNOWN_SYSTEM, Settings, make_tasks

    return make_tasks(select(["fsred"], LAWS), [KNOWN_SYSTEM], [0], [0.0], Settings())


class Solve:
    """A search whose folder holds the result for another table."""

    def __init__(self, reference: Path) -> None:
        import physdiffuser.pipeline  # noqa: F401  (forked processes need not import it)

        self.reference = reference
        reference.joinpath("first.csv").write_text(
            _table("first", lambda a, b: a * b * b + 3.0), encoding="utf-8"
        )
        reference.joinpath("second.csv").write_text(
            _table("second", lambda a, b: a / (b + 1.0)), encoding="utf-8"
        )
        if wait(in_child(lambda: self._solve("first.csv", reference / "out"), reference / "log")):
            raise SystemExit((reference / "log").read_text())

    def _solve(self, table: str, out: Path) -> int:
        from physdiffuser.cli.entry import main

        options = ["--steps", "12", "--no-plugins", "--generators", "enumeration", "--quiet"]
        return main(["solve", str(self.reference / table), "--out", str(out), *options])

    def prepare(self, folder: Path) -> None:
        """The folder of the run on the first table."""
        import shutil

        shutil.copytree(self.reference / "out", folder / "out")

    def work(self, folder: Path, again: bool) -> int:
        """Search the second table."""
        return self._solve("second.csv", folder / "out")

    def check(self, folder: Path, final: bool) -> list[str]:
        """All files are of the run that `result.json` is of."""
        from physdiffuser.report.runfolder import load_solution

        out = folder / "out"
        load_solution(out)
        content = json.loads((out / "result.json").read_text(encoding="utf-8"))
        wrong = []
        table = out / "pareto.csv"
        if table.exists():
            with table.open(encoding="utf-8", newline="") as stream:
                listed = [row["rmse"] for row in csv.DictReader(stream)]
            if listed != [str(row["rmse"]) for row in content["pareto"]]:
                wrong.append("pareto.csv is of another run than result.json")
        page = out / "report.html"
        target = content["target"]
        if page.exists() and target not in page.read_text(encoding="utf-8"):
            wrong.append("report.html is of another run than result.json")
        if final and not (table.exists() and page.exists() and target == "second_target"):
            wrong.append("the second run did not replace the first")
        return wrong


def _table(target: str, law: Callable[[float, float], float]) -> str:
    source = random.Random(1)
    rows = [(source.uniform(1, 3), source.uniform(1, 4)) for _ in range(30)]
    return f"a,b,{target}_target\n" + "".join(f"{a!r},{b!r},{law(a, b)!r}\n" for a, b in rows)


def run_case(scenario: Scenario, folder: Path, kill: int | float) -> list[str]:
    """Kill one run at an operation (int) or after seconds (float), and run it again.

    Returns
    -------
    What was wrong.
    """
    folder.mkdir()
    scenario.prepare(folder)

    def first() -> int:
        if isinstance(kill, int):
            kill_at(kill, folder)
        return scenario.work(folder, False)

    pid = in_child(first, folder / "log")
    if isinstance(kill, float):
        time.sleep(kill)
        os.kill(pid, signal.SIGKILL)
    code = wait(pid)
    wrong = [] if code in (0, -signal.SIGKILL) else [f"ended with {code} before it was killed"]
    wrong += _checked(scenario, folder, False)
    code = wait(in_child(lambda: scenario.work(folder, True), folder / "again"))
    text = (folder / "again").read_text(encoding="utf-8", errors="replace")
    if code:
        wrong.append(f"the second run ended with {code}: {text.strip()[-300:]}")
    if "Traceback" in text or "internal error" in text:
        wrong.append(f"traceback: {text.strip()[-300:]}")
    return wrong + _checked(scenario, folder, True)


def _checked(scenario: Scenario, folder: Path, final: bool) -> list[str]:
    when = "after the second run" if final else "after the kill"
    try:
        return [f"{when}: {problem}" for problem in scenario.check(folder, final)]
    except Exception as error:
        return [f"{when}: unreadable: {type(error).__name__}: {error}"]


def measure(scenario: Scenario, folder: Path) -> tuple[int, float]:
    """Operations and seconds of a run that is not killed."""
    folder.mkdir()
    scenario.prepare(folder)

    def work() -> int:
        count = kill_at(0, folder)
        code = scenario.work(folder, False)
        (folder / "operations").write_text(str(count()))
        return code

    began = time.monotonic()
    if wait(in_child(work, folder / "log")):
        raise SystemExit((folder / "log").read_text())
    return int((folder / "operations").read_text()), time.monotonic() - began


def stress(scenario: Scenario, cases: int, seed: int, folder: Path) -> dict[str, Any]:
    """Kill a command at operations spread over the whole run, and every fifth time at a random moment."""
    operations, seconds = measure(scenario, folder / "measured")
    source = random.Random(seed)
    failures: list[str] = []
    for case in range(cases):
        kill: int | float = 1 + case * operations // cases
        if case % 5 == 4:
            kill = source.uniform(0.0, seconds)
        wrong = run_case(scenario, folder / f"case-{case}", kill)
        failures += [f"case {case}, killed at {kill}: {problem}" for problem in wrong]
    kinds = Counter(failure.split(": ", 1)[1].split(":")[0] for failure in failures)
    return {
        "cases": cases,
        "operations": operations,
        "failures": len(failures),
        "kinds": dict(kinds),
        "first": failures[:8],
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the counts as JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name, cases in (("train", 80), ("evaluate", 60), ("solve", 60)):
        parser.add_argument(f"--{name}", type=int, default=cases, help=f"kills of {name}")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args(arguments)
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        makers: dict[str, Callable[[Path], Scenario]] = {
            "solve": Solve,
            "evaluate": lambda _: Evaluate(),
            "train": Train,
        }
        for scenario, make in makers.items():
            cases = getattr(chosen, scenario)
            if cases:
                (folder / scenario / "reference").mkdir(parents=True)
                made = make(folder / scenario / "reference")
                found[scenario] = stress(made, cases, chosen.seed, folder / scenario)
    print(json.dumps(found, indent=1))
    return 1 if any(part["failures"] for part in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
