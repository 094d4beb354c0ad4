"""A plugin's mistake is reported by package name, and costs nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hostile_plugins import FAILS_TO_LOAD, GENERATOR_FAULTS, NOISY, OPERATOR_FAULTS, install

ROOT = Path(__file__).resolve().parents[2]

# Loads the plugins, runs the generator "bad" where there is one, and shows that the core still works.
PROGRAM = """
import json, sys, time
import numpy as np
from physdiffuser.errors import PluginError
from physdiffuser.expressions import OPERATORS, Apply, Variable, evaluate, parse, to_text
from physdiffuser.plugin_system.manager import load_plugins
from physdiffuser.search.archive import ParetoArchive
from physdiffuser.core.problem import Budget, Problem

loaded = load_plugins("--no-plugins" not in sys.argv)
inputs = np.linspace(1.0, 2.0, 20).reshape(10, 2)
problem = Problem(inputs=inputs, target=inputs[:, 0] * 2, names=("a", "b"))
archive = ParetoArchive(problem)
outcome = {"warnings": loaded.warnings, "error": None, "requested": None, "proposed": 0}
if "bad" in loaded.generators:
    started = time.monotonic()
    try:
        generator = loaded.generator("bad").build()
        for candidate in generator.propose(problem, archive, Budget(100, deadline=started + 0.3)):
            outcome["proposed"] += 1
            archive.offer(candidate)
    except PluginError as error:
        outcome["error"] = str(error)
    outcome["seconds"] = time.monotonic() - started
if "bad" in loaded.operators:
    values = [evaluate(Apply("bad", (Variable(0),)), inputs) for _ in range(200)]
    outcome["shapes"] = sorted({value.shape for value in values})
    outcome["finite"] = bool(np.isfinite(values[-1]).any())
    outcome["faults"] = loaded.faults
for kind in ("generator", "operator"):
    try:
        getattr(loaded, kind)("bad")
    except PluginError as error:
        outcome["requested"] = str(error)
# The core: its own generators are there, and formulas are read, evaluated and archived.
outcome["generators"] = sorted(loaded.generators)
law = parse("2*a", ["a", "b"])
from physdiffuser.core.candidate import Candidate
archive.offer(Candidate(law, "core"))
outcome["core"] = to_text(archive.front()[-1].candidate.expression, ["a", "b"])
outcome["untouched"] = bool(np.array_equal(inputs, np.linspace(1.0, 2.0, 20).reshape(10, 2)))
print(json.dumps(outcome))
"""
BUILT_IN = {"enumeration", "sparse", "evolution", "neighbours", "diffusion", "autoregressive", "infilling"}


def run(folder: Path, *arguments: str, limit: float = 2.0) -> dict[str, Any]:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)]),
        "PHYSDIFFUSER_PLUGIN_LIMIT": str(limit),
        "OMP_NUM_THREADS": "1",
    }
    finished = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    outcome: dict[str, Any] = json.loads(finished.stdout)  # nothing but the document on stdout
    assert set(outcome["generators"]) >= BUILT_IN
    assert outcome["core"] == "2*a"
    assert outcome["untouched"]
    return outcome


@pytest.mark.parametrize("name", FAILS_TO_LOAD)
def test_failure_to_load_is_reported_and_the_rest_works(name: str, tmp_path: Path) -> None:
    install(tmp_path, name, FAILS_TO_LOAD[name])
    install(tmp_path, "a_good_one", NOISY.replace('"bad"', '"good"'))
    outcome = run(tmp_path, limit=0.7 if name.endswith("on_import") else 5.0)
    assert len(outcome["warnings"]) == 1
    assert f"plugin package {name.replace('_', '-')} 1.0" in outcome["warnings"][0]
    assert "good" in outcome["generators"]
    # Asking for what was lost says why.
    assert outcome["requested"] is not None
    assert name.replace("_", "-") in outcome["requested"]


@pytest.mark.parametrize("name", GENERATOR_FAULTS)
def test_misbehaving_generator_is_stopped(name: str, tmp_path: Path) -> None:
    install(tmp_path, name, GENERATOR_FAULTS[name])
    outcome = run(tmp_path)
    assert outcome["warnings"] == []
    assert outcome["proposed"] == 0
    assert f"plugin package {name.replace('_', '-')}: generator 'bad'" in outcome["error"]
    assert "switched off" in outcome["error"]
    assert outcome["seconds"] < 0.3 + 1.7  # the deadline, half a second of grace, and a slow machine


@pytest.mark.parametrize("name", OPERATOR_FAULTS)
def test_misbehaving_operator_gives_nan(name: str, tmp_path: Path) -> None:
    install(tmp_path, name, OPERATOR_FAULTS[name])
    outcome = run(tmp_path)
    assert outcome["warnings"] == []
    assert outcome["shapes"] == [[10]]
    assert not outcome["finite"]
    if name != "nan_later":  # nan is a value like any other: the candidate is worthless, no more
        (fault,) = outcome["faults"]
        assert name.replace("_", "-") in fault
        assert "switched off" in fault


def test_output_of_plugins_stays_off_stdout(tmp_path: Path) -> None:
    install(tmp_path, "noisy", NOISY)
    assert run(tmp_path)["proposed"] == 1


def test_two_packages_with_one_name_lose_it_both(tmp_path: Path) -> None:
    for name in ("first_package", "second_package"):
        install(tmp_path, name, NOISY)
    outcome = run(tmp_path)
    assert "bad" not in outcome["generators"]
    assert len(outcome["warnings"]) == 2
    for text in (*outcome["warnings"], outcome["requested"]):
        assert "first-package" in text
        assert "second-package" in text


def test_missing_module_and_broken_metadata(tmp_path: Path) -> None:
    install(tmp_path, "gone", None)
    install(tmp_path, "garbled", None, "[physdiffuser]\nno equals sign here\n")
    install(tmp_path, "noisy", NOISY)
    outcome = run(tmp_path)
    assert len(outcome["warnings"]) == 2
    assert outcome["proposed"] == 1


def test_no_plugins_loads_none(tmp_path: Path) -> None:
    install(tmp_path, "exits_on_import", FAILS_TO_LOAD["exits_on_import"])
    install(tmp_path, "noisy", NOISY)
    outcome = run(tmp_path, "--no-plugins")
    assert outcome["warnings"] == []
    assert set(outcome["generators"]) == BUILT_IN
