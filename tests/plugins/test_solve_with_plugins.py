"""`physdiffuser solve` with plugins installed: good ones are used, bad ones cost nothing but a warning."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hostile_plugins import FAILS_TO_LOAD, GENERATOR_FAULTS, NOISY, install

ROOT = Path(__file__).resolve().parents[2]

LANGEVIN = """
import numpy as np
from physdiffuser.hookspecs import hookimpl
from physdiffuser.specs import OperatorSpec

def evaluate(x):
    return 1.0 / np.tanh(x) - 1.0 / x

def derivative(x, value):
    return 1.0 / x**2 - 1.0 / np.sinh(x) ** 2

def to_sympy(x):
    import sympy
    return sympy.coth(x) - 1 / x

@hookimpl
def physdiffuser_operators():
    return OperatorSpec("langevin", 1, 2, evaluate, (derivative,), to_sympy, domain="not 0")
"""


def solve(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)]),
        "PHYSDIFFUSER_PLUGIN_LIMIT": "1",
        "OMP_NUM_THREADS": "1",
    }
    return subprocess.run(
        [sys.executable, "-m", "physdiffuser", "solve", "table.csv", "--json", *options],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        env=environment,
        cwd=folder,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory on the path, with a table whose law is easy for the built-in generators."""
    rows = np.random.default_rng(0).uniform(0.5, 5, (60, 2))
    write(tmp_path, rows, rows[:, 0] * rows[:, 1] ** 2 / 2)
    return tmp_path


def write(folder: Path, rows: np.ndarray, target: np.ndarray) -> None:
    table = np.column_stack([rows, target])
    np.savetxt(folder / "table.csv", table, delimiter=",", header="m,v,E", comments="", fmt="%.17g")


def test_all_hostile_plugins_at_once_leave_the_core_working(folder: Path) -> None:
    assert len(FAILS_TO_LOAD) >= 12
    for name, source in FAILS_TO_LOAD.items():
        install(folder, name, source)
    finished = solve(folder, "--time", "30")
    assert finished.returncode == 0, finished.stderr
    document = json.loads(finished.stdout)
    assert document["best"]["expression"] == "m*v**2/2"
    for name in FAILS_TO_LOAD:
        (message,) = [
            text for text in document["warnings"] if f"package {name.replace('_', '-')} 1.0" in text
        ]
        assert message in finished.stderr


def test_no_plugins_silences_them(folder: Path) -> None:
    install(folder, "import_error", FAILS_TO_LOAD["import_error"])
    finished = solve(folder, "--time", "30", "--no-plugins")
    assert json.loads(finished.stdout)["best"]["expression"] == "m*v**2/2"
    assert "import-error" not in finished.stdout + finished.stderr


@pytest.mark.parametrize(
    ("name", "source"),
    [("import_error", FAILS_TO_LOAD["import_error"]), ("raises", GENERATOR_FAULTS["raises"])],
)
def test_a_requested_plugin_that_fails_is_exit_6(name: str, source: str, folder: Path) -> None:
    install(folder, name, source)
    finished = solve(folder, "--generators", "bad", "--time", "20")
    assert finished.returncode == 6
    assert finished.stdout == ""
    assert f"plugin package {name.replace('_', '-')}" in finished.stderr
    assert "Traceback" not in finished.stderr


def test_generator_that_prints_leaves_stdout_to_the_document(folder: Path) -> None:
    install(folder, "noisy", NOISY)
    finished = solve(folder, "--generators", "bad", "--time", "20")
    assert json.loads(finished.stdout)["pareto"]
    assert "noise" in finished.stderr


def test_an_operator_of_a_plugin_is_searched_and_written(folder: Path) -> None:
    install(folder, "langevin_operator", LANGEVIN)
    rows = np.random.default_rng(1).uniform(0.5, 5, (60, 2))
    ratio = rows[:, 0] / rows[:, 1]
    write(folder, rows, 1 / np.tanh(ratio) - 1 / ratio)
    finished = solve(
        folder, "--operators", "add,mul,div,langevin", "--generators", "evolution", "--time", "60"
    )
    assert finished.returncode == 0, finished.stderr
    assert json.loads(finished.stdout)["best"]["expression"] == "langevin(m/v)"
