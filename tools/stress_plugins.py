"""Run `physdiffuser solve --json` and `physdiffuser plugins check` with hostile plugins installed.

    python tools/stress_plugins.py --rounds 3
    python tools/stress_plugins.py --only endless_valid,sleeps --seed 7

Each round draws a law, rows and a budget (seconds or steps) from the seed for every kind of plugin in
`tests/plugins/hostile_plugins.py`, and runs both commands as processes. It looks at the exit code, and
whether stdout is one JSON document (of `check`: its own lines) and nothing else, the run ends in time, the
plugin's package is named, and the law is found all the same. It prints a table, and exits with 1 if anything
is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "plugins"))

from hostile_plugins import KINDS, Kind, install  # noqa: E402

LAWS = {"m*v**2/2": (1, 2, 0.5), "m*v": (1, 1, 1.0), "m/v": (1, -1, 1.0), "m**2*v": (2, 1, 1.0)}
TIMES = (8, 12)
STEPS = (60, 120)
CHECK_LIMIT = 3.0
# Seconds of a torch import after which it is given up.
TORCH_LIMITS = (0.1, 1.0)


@dataclass
class Outcome:
    """What was wrong in the runs of one kind, and the longest of them."""

    runs: int = 0
    faults: list[str] = field(default_factory=list)
    solve_seconds: float = 0.0
    check_seconds: float = 0.0


def write_table(folder: Path, law: str, rng: np.random.Generator) -> None:
    """Sixty rows of a law, without noise."""
    first, second, factor = LAWS[law]
    rows = rng.uniform(0.5, 5, (60, 2))
    target = factor * rows[:, 0] ** float(first) * rows[:, 1] ** float(second)
    table = np.column_stack([rows, target])
    np.savetxt(folder / "table.csv", table, delimiter=",", header="m,v,E", comments="", fmt="%.17g")


def run(folder: Path, limit: float, *arguments: str, **variables: str) -> tuple[int | None, str, str, float]:
    """Exit code (None if it had to be killed), stdout, stderr, seconds."""
    path = os.pathsep.join([str(folder), str(ROOT), str(ROOT / "plugins")])
    environment = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"} | variables
    started = time.monotonic()
    try:
        finished = subprocess.run(
            [sys.executable, "-m", "physdiffuser", *arguments],
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
            env=environment,
            cwd=folder,
        )
    except subprocess.TimeoutExpired:
        return None, "", "", time.monotonic() - started
    return finished.returncode, finished.stdout, finished.stderr, time.monotonic() - started


def solve_faults(name: str, kind: Kind, law: str, code: int | None, stdout: str, stderr: str) -> list[str]:
    """What is wrong with one run of `solve`."""
    if code is None:
        return ["solve: did not end in time"]
    faults = [] if code == 0 else [f"solve: exit code {code}: {stderr[-300:]}"]
    try:
        document = json.loads(stdout)
    except ValueError:
        return [*faults, f"solve: stdout is no JSON document: {stdout[:100]!r}"]
    if document["best"] is None or document["best"]["expression"] != law:
        faults.append(f"solve: found {(document['best'] or {}).get('expression')}, not {law}")
    package = f"plugin package {name.replace('_', '-')}"
    for where, text in (("the document", " ".join(document["warnings"])), ("stderr", stderr)):
        if (package in text) != kind.reported:
            faults.append(f"solve: the package is {'not ' * kind.reported}named in {where}")
    return faults


def check_faults(name: str, kind: Kind, code: int | None, stdout: str, stderr: str) -> list[str]:
    """What is wrong with one run of `plugins check`."""
    if code is None:
        return ["check: did not end in time"]
    faults = [] if code == kind.check else [f"check: exit code {code}: {stderr[-300:]}"]
    strange = [
        line
        for line in stdout.splitlines()
        if not line.startswith(("  ok  ", "generator bad", "operator bad"))
    ]
    if strange:
        faults.append(f"check: stdout holds {strange[0][:100]!r}")
    if kind.check and f"plugin package {name.replace('_', '-')}" not in stderr:
        faults.append("check: the package is not named")
    return faults


def stress(name: str, rng: np.random.Generator, slack: float, outcome: Outcome) -> None:
    """One round of one kind."""
    kind = KINDS[name]
    law = str(rng.choice(list(LAWS)))
    seconds = float(rng.choice(TIMES))
    budget = ("--time", f"{seconds:g}") if rng.random() < 0.7 else ("--steps", str(rng.choice(STEPS)))
    # Asked first, the plugin has its turn before the law is found.
    generators = {"generator": ("--generators", "bad,evolution"), "operator": ("--generators", "evolution")}
    variables = {}
    if name == "still_imports_torch":
        variables["PHYSDIFFUSER_PLUGIN_LIMIT"] = f"{rng.uniform(*TORCH_LIMITS):.2f}"
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        install(folder, name, kind.source)
        write_table(folder, law, rng)
        options = (*budget, "--seed", str(rng.integers(100)), *generators.get(kind.stage, ()))
        limit = (seconds if budget[0] == "--time" else max(TIMES)) + slack
        code, stdout, stderr, took = run(folder, limit, "solve", "table.csv", "--json", *options, **variables)
        outcome.faults += solve_faults(name, kind, law, code, stdout, stderr)
        outcome.solve_seconds = max(outcome.solve_seconds, took)
        target = name.replace("_", "-")
        arguments = ("plugins", "check", target, "--limit", f"{CHECK_LIMIT:g}")
        code, stdout, stderr, took = run(folder, 3 * CHECK_LIMIT + slack, *arguments, **variables)
        outcome.faults += check_faults(name, kind, code, stdout, stderr)
        outcome.check_seconds = max(outcome.check_seconds, took)
    outcome.runs += 2


def main() -> int:
    """Run the rounds and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=1, help="runs of each command with each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="names of kinds, separated by commas")
    parser.add_argument("--slack", type=float, default=20.0, help="seconds beyond the budget, start included")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else list(KINDS)
    outcomes = {name: Outcome() for name in names}
    print(f"{'kind':28} {'runs':>4} {'failed':>6} {'solve, s':>9} {'check, s':>9}  (longest)")
    for name, outcome in outcomes.items():
        for number in range(options.rounds):
            rng = np.random.default_rng([options.seed, number, list(KINDS).index(name)])
            stress(name, rng, options.slack, outcome)
        times = f"{outcome.solve_seconds:9.1f} {outcome.check_seconds:9.1f}"
        print(f"{name:28} {outcome.runs:4} {len(outcome.faults):6} {times}", flush=True)
        for fault in outcome.faults:
            print(f"    {fault}")
    runs = sum(outcome.runs for outcome in outcomes.values())
    failed = sum(len(outcome.faults) for outcome in outcomes.values())
    print(f"{len(outcomes)} kinds, {runs} runs, {failed} faults")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
