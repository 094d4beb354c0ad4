"""The program with its real search, from a table to an exported law."""

from __future__ import annotations

import csv
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cli_program import program_environment


def program(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "physdiffuser", *words],
        cwd=folder,
        env=program_environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def pendulum(tmp_path: Path) -> Path:
    """Periods of a pendulum, `T = 2*pi*sqrt(L/g)`, for lengths and gravities of some planets."""
    rng = np.random.default_rng(1)
    length, gravity = rng.uniform(0.1, 5.0, 200), rng.uniform(1.5, 25.0, 200)
    period = 2 * np.pi * np.sqrt(length / gravity)
    with (tmp_path / "pendulum.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["L (m)", "g", "T"])
        writer.writerows(zip(length, gravity, period, strict=True))
    return tmp_path


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_an_error_of_usage(pendulum: Path) -> None:
    done = program(pendulum, "solve", "pendulum.csv", "--device", "cuda", "--json")
    assert (done.returncode, done.stdout) == (2, "")
    assert "device 'cuda' was asked for, but torch sees no GPU; use 'cpu' or 'auto'" in done.stderr
    assert "Traceback" not in done.stderr


def test_from_a_table_to_an_exported_law(pendulum: Path) -> None:
    done = program(pendulum, "solve", "pendulum.csv", "--out", "run", "--time", "30")
    assert done.returncode == 0, done.stderr
    assert "L_m is the column 'L (m)'" in done.stdout
    document = json.loads((pendulum / "run" / "result.json").read_text())
    assert (document["status"], document["best"]["verdict"]) == ("exact", "verified")

    (pendulum / "new.csv").write_text("g,L (m)\n9.81,1\n1.62,2.5\n")
    done = program(pendulum, "predict", "run", "new.csv")
    found = [float(line) for line in done.stdout.splitlines()[1:]]
    np.testing.assert_allclose(found, 2 * np.pi * np.sqrt([1 / 9.81, 2.5 / 1.62]), rtol=1e-9)

    done = program(pendulum, "export", "run")
    scope: dict[str, Any] = {}
    exec(compile(done.stdout, "exported", "exec"), scope)  # noqa: S102 - written by us
    np.testing.assert_allclose(scope["predict_T"](1.0, 9.81), found[0], rtol=1e-12)


def test_the_same_steps_give_the_same_document(pendulum: Path) -> None:
    texts = []
    for _ in range(2):
        done = program(pendulum, "solve", "pendulum.csv", "--json", "--steps", "40", "--seed", "7")
        assert done.returncode == 0, done.stderr
        document = json.loads(done.stdout)
        del document["timing"]
        texts.append(json.dumps(document, sort_keys=True))
    assert texts[0] == texts[1]


def test_resuming_never_loses_a_formula(pendulum: Path) -> None:
    first = program(pendulum, "solve", "pendulum.csv", "--out", "run", "--json", "--time", "20")
    again = program(pendulum, "solve", "pendulum.csv", "--out", "run", "--json", "--resume", "--steps", "1")
    assert (first.returncode, again.returncode) == (0, 0), again.stderr
    before, after = json.loads(first.stdout)["best"], json.loads(again.stdout)["best"]
    assert after["max_relative_error"] <= max(before["max_relative_error"], 1e-12)


def test_the_program_ends_near_its_time_limit(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    rows = random.uniform(1, 5, (300, 4))
    target = rows[:, 0] * np.exp(-rows[:, 1] / 3) * np.sin(rows[:, 2]) + 0.3 * random.normal(size=300)
    path = tmp_path / "waves.csv"
    np.savetxt(path, np.column_stack([rows, target]), delimiter=",", header="a,b,c,d,y", comments="")
    started = time.monotonic()
    done = program(tmp_path, "solve", path.name, "--time", "8", "--quiet")
    assert done.returncode == 0, done.stderr
    # Generous: other tests keep the processors busy. Without a limit this table takes half a minute.
    assert "y = " in done.stdout and time.monotonic() - started < 20.0


@pytest.mark.parametrize("groups", [2, 10])
def test_a_search_of_groups_keeps_its_time_limit(tmp_path: Path, groups: int) -> None:
    random = np.random.default_rng(3)
    code, x, v = np.repeat(np.arange(groups), 100), *random.uniform(0.2, 4, (2, 100 * groups))
    y = random.uniform(1, 5, groups)[code] * np.exp(-0.6 * x) * v + 0.02 * random.normal(size=code.size)
    path = tmp_path / "groups.csv"
    np.savetxt(path, np.column_stack([code, x, v, y]), delimiter=",", header="g,x,v,y", comments="")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = program(tmp_path, "solve", path.name, "--group", "g", "--time", "4", "--quiet")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    # Of the processor, which other tests keep busy. Without a limit the searches take half a minute.
    assert "y = " in done.stdout and after.ru_utime - before.ru_utime < 6.0
