"""Seeded samples of what the stress tools do: damaged checkpoints, and commands that are killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TOOLS = Path(__file__).parents[2] / "tools"


def run(tool: str, *options: str) -> dict[str, Any]:
    path = TOOLS / tool
    if not path.exists():
        pytest.skip("the tools are not part of an installed package")
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    # In a process of its own, which forks before it has threads.
    done = subprocess.run(
        [sys.executable, str(path), *options], env=environment, capture_output=True, text=True, check=False
    )
    found: dict[str, Any] = json.loads(done.stdout)
    assert (done.returncode, found) == (0, found), done.stderr
    return found


def test_damaged_checkpoints_are_never_used() -> None:
    found = run("stress_checkpoints.py", "--count", "40", "--commands", "4", "--seed", "1")
    assert found["accepted wrongly"] == found["tracebacks"] == found["wrong exit codes"] == 0
    assert found["fallbacks that worked"] > 25 and found["failures"] == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks processes")
@pytest.mark.parametrize(("command", "cases"), [("train", 4), ("evaluate", 8), ("solve", 4)])
def test_killed_commands_leave_files_that_can_be_used(command: str, cases: int) -> None:
    counts = {"train": 0, "evaluate": 0, "solve": 0, command: cases}
    options = [option for name, count in counts.items() for option in (f"--{name}", str(count))]
    found = run("stress_kills.py", *options)
    assert found[command]["cases"] == cases and found[command]["failures"] == 0
