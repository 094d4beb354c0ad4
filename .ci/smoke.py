"""What the installed wheel must do, in a folder with kepler.csv: `python -I smoke.py`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

PROGRAM = str(Path(sys.executable).with_name("physdiffuser"))
HELP_SECONDS = 0.5


def run(*words: str) -> str:
    """Standard output of the program, which must succeed."""
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=False, timeout=300)
    print("$ physdiffuser", *words, flush=True)
    if done.returncode != 0:
        raise SystemExit(f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def seconds_of_help() -> tuple[float, float]:
    """Processor and wall seconds, the best of five: the machine may be busy."""
    taken = []
    for _ in range(5):
        before, start = os.times(), time.perf_counter()
        run("--help")
        after, wall = os.times(), time.perf_counter() - start
        user = after.children_user - before.children_user
        taken.append((user + after.children_system - before.children_system, wall))
    return min(processor for processor, _ in taken), min(wall for _, wall in taken)


def main() -> None:
    """Every check, loudly."""
    processor, wall = seconds_of_help()
    print(f"--help takes {wall:.2f} s, {processor:.2f} s of them on a processor")
    assert processor < HELP_SECONDS, f"more than {HELP_SECONDS} s"

    document = json.loads(run("solve", "kepler.csv", "--json", "--out", "run", "--time", "60"))
    law = document["best"]["expression"]
    print("T =", law)
    assert law == "a**1.5", law
    for name in ("result.json", "pareto.csv", "fit.png", "report.html"):
        assert (Path("run") / name).stat().st_size > 0, name

    predicted = run("predict", "run", "kepler.csv").split()
    assert predicted[0] == "T" and len(predicted) == 9, predicted
    assert abs(float(predicted[3]) - 1.0) < 1e-4, predicted
    assert "pow" in run("export", "run", "--format", "c")

    plugins = run("plugins", "list")
    for name in ("enumeration", "sparse", "evolution", "standard", "physics-slice", "biased", "evaluate"):
        assert name in plugins, f"plugins list does not name {name}:\n{plugins}"
    # Its laws and tables are data files of the wheel.
    run("evaluate", "--suite", "fsred", "--only", "I.12.1", "--time", "10", "--results", "one.jsonl")
    assert Path("one.jsonl").read_text(encoding="utf-8").count("\n") == 1
    done = subprocess.run(
        [sys.executable, "-m", "physdiffuser", "--version"], capture_output=True, text=True, check=True
    )
    print(done.stdout.strip())


if __name__ == "__main__":
    main()
