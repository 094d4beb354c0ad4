"""A package that `plugins new` wrote, installed outside the repository, is used by `train` and by `solve`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from physdiffuser.cli.plugins import write_plugin

ROOT = Path(__file__).resolve().parents[2]

CONFIG = """
out: trained
steps: 2
batch: 8
micro_batch: 8
device: cpu
threads: 1
checkpoint_every: 2
validate_every: 2
validation_laws: 8
data:
  rows: [16, 24]
model:
  width: 16
  heads: 2
  length: 24
  encoder:
    rows: 16
    attention: tempered
    layers: 1
    inducing: 4
    mixing: 1
  diffusion: null
  autoregressive:
    layers: 1
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory with a table in it."""
    rows = np.random.default_rng(0).uniform(0.5, 5, (60, 2))
    table = np.column_stack([rows, rows[:, 0] * rows[:, 1] ** 2 / 2])
    np.savetxt(tmp_path / "table.csv", table, delimiter=",", header="m,v,E", comments="", fmt="%.17g")
    return tmp_path


def run(folder: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    places = os.pathsep.join([str(folder / "installed"), str(ROOT), str(ROOT / "plugins")])
    return subprocess.run(
        [sys.executable, "-m", *command],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=os.environ
        | {"PYTHONPATH": places, "OMP_NUM_THREADS": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        | environment,
        cwd=folder,
    )


def install(folder: Path, name: str, kind: str) -> None:
    write_plugin(name, kind, folder / "source")
    options = ("--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--target", "installed")
    finished = run(folder, "pip", "install", *options, str(folder / "source"))
    assert finished.returncode == 0, finished.stderr


def test_an_attention_is_trained_and_solves(folder: Path) -> None:
    install(folder, "tempered", "attention")
    (folder / "config.yaml").write_text(CONFIG, encoding="utf-8")
    trained = run(folder, "physdiffuser", "train", "config.yaml", "--quiet")
    assert trained.returncode == 0, trained.stderr
    model = json.loads((folder / "trained" / "model" / "model.json").read_text(encoding="utf-8"))
    assert model["attention"]["tempered"] == {"package": "physdiffuser-tempered", "version": "0.1.0"}
    options = ("--generators", "autoregressive", "--attention", "tempered", "--steps", "30", "--json")
    solve = ("physdiffuser", "solve", "table.csv", "--quiet", *options)
    solved = run(folder, *solve, PHYSDIFFUSER_WEIGHTS="trained/model")
    assert solved.returncode == 0, solved.stderr
    document = json.loads(solved.stdout)
    # Two steps teach nothing, but the network's formulas were fitted and beat the mean.
    assert document["timing"]["steps_autoregressive"] > 0
    assert document["best"]["r2"] > 0
    without = run(folder, *solve)
    assert without.returncode == 2
    assert "no weights for the attention 'tempered'" in without.stderr


def test_a_generator_solves(folder: Path) -> None:
    install(folder, "power-law", "generator")
    options = ("--generators", "power-law", "--json", "--quiet", "--steps", "5")
    solved = run(folder, "physdiffuser", "solve", "table.csv", *options)
    assert solved.returncode == 0, solved.stderr
    assert json.loads(solved.stdout)["best"]["expression"] == "m*v**2/2"
