"""Function families of plugins take part in the search as the built-in ones do; wrong ones are named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hostile_plugins import install

from physdiffuser.functions.table import families
from physdiffuser.specs import FamilySpec, everywhere
from physdiffuser.testing import ContractError, check_family

ROOT = Path(__file__).resolve().parents[2]
# Those of the law.
FEW = ("--operators", "add,mul,div,pow,tanh")

HUMP = """
import numpy as np
from physdiffuser.hookspecs import hookimpl
from physdiffuser.specs import FamilySpec, everywhere

def grid(u):
    return np.geomspace(0.3, 30.0, 12)[:, None] / np.ptp(u)

@hookimpl
def physdiffuser_functions():
    return FamilySpec("hump", "tanh(k*u)/(1 + (k*u)**2)**2", ("k",), everywhere(grid))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory on the path, with a table of a law that the built-in families do not hold."""
    t, z = np.random.default_rng(0).uniform(0.1, 6.0, (2, 60))
    y = z * (1.3 + 4.0 * np.tanh(0.7 * t) / (1 + (0.7 * t) ** 2) ** 2)
    np.savetxt(tmp_path / "table.csv", np.column_stack([t, z, y]), delimiter=",", header="t,z,y", comments="")
    return tmp_path


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)]),
        "OMP_NUM_THREADS": "1",
    }
    return subprocess.run(
        [sys.executable, "-m", "physdiffuser", *command],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        env=environment,
        cwd=folder,
    )


def solve(folder: Path, *options: str) -> dict[str, Any]:
    finished = run(folder, "solve", "table.csv", "--json", "--steps", "20", *FEW, *options)
    assert finished.returncode == 0, finished.stderr
    return dict(json.loads(finished.stdout))


def test_a_law_that_needs_the_family_is_found_with_it_and_not_without(folder: Path) -> None:
    install(folder, "hump", HUMP)
    document = solve(folder, "--generators", "enumeration")
    assert document["best"]["max_relative_error"] < 1e-9
    assert any("'hump'" in step for step in document["best"]["derivation"])
    without = solve(folder, "--generators", "enumeration", "--no-plugins")
    assert without["best"]["max_relative_error"] > 1e-4


def test_it_is_listed_and_checked(folder: Path) -> None:
    install(folder, "hump", HUMP)
    listed = run(folder, "plugins", "list").stdout
    assert ["family", "hump", "hump", "1.0"] in [line.split()[:4] for line in listed.splitlines()]
    checked = run(folder, "plugins", "check", "hump")
    assert checked.returncode == 0 and checked.stdout.count("  ok  ") == 4


def test_a_name_twice_is_nobodys_and_a_built_in_one_stays(folder: Path) -> None:
    install(folder, "hump", HUMP)
    install(folder, "another", HUMP)
    install(folder, "third", HUMP.replace('"hump"', '"Hill"'))
    warnings = solve(folder, "--steps", "1")["warnings"]
    clash = [text for text in warnings if "the family 'hump' is provided by another" in text]
    assert len(clash) == 2 and all("and hump (" in text and "neither is used" in text for text in clash)
    [own] = [text for text in warnings if "the family 'Hill' is provided by third" in text]
    assert "physdiffuser's own is used" in own


def test_a_grid_that_fails_in_a_search_costs_its_family_and_a_warning(folder: Path) -> None:
    # The contract check uses arguments of 60 rows; the search has fewer here.
    few = "def grid(u):\n    if len(u) < 60:\n        raise RuntimeError('few rows')"
    install(folder, "hump", HUMP.replace("def grid(u):", few))
    document = solve(folder, "--generators", "enumeration", "--steps", "10")
    assert any("family 'hump', grid for" in text and "few rows" in text for text in document["warnings"])


def test_a_family_may_hold_an_operator_of_the_same_plugin(folder: Path) -> None:
    operator = """
from physdiffuser.specs import OperatorSpec

@hookimpl
def physdiffuser_operators():
    slope = lambda x, value: 2 * np.ones_like(x)
    return OperatorSpec("twice", 1, 1, lambda x: 2 * x, (slope,), lambda x: 2 * x)
"""
    install(folder, "hump", HUMP.replace("tanh(k*u)", "tanh(twice(k*u))") + operator)
    assert not [text for text in solve(folder, "--steps", "1")["warnings"] if "plugin" in text]


def grid(u: Any) -> Any:
    return np.array([[0.5], [2.0]]) / np.ptp(u)


GOOD = FamilySpec("f", "u/(k + u**2)", ("k",), everywhere(grid))


@pytest.mark.parametrize("spec", [family.spec for family in families()], ids=lambda spec: spec.name)
def test_every_built_in_family_keeps_the_contract(spec: FamilySpec) -> None:
    assert check_family(spec)


def scribbles(u: Any) -> Any:
    u += 1.0
    return grid(u)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"template": "u/(k + x)"}, "unknown name 'x'"),
        ({"template": "exp(k)*u", "constants": ("k", "m")}, "'m' does not occur"),
        ({"alternatives": ("u/(k +",)}, "formula, character"),
        ({"grids": everywhere(lambda u: [[1.0]])}, "returned list, not an array"),
        ({"grids": everywhere(lambda u: np.ones((3, 2)))}, r"shape \(3, 2\), not \(tries, 1\)"),
        ({"grids": everywhere(lambda u: np.ones((3, 1), np.float32))}, "float32"),
        ({"grids": everywhere(lambda u: np.ones((6_000, 1)))}, "at most 5000"),
        ({"grids": everywhere(lambda u: np.full((3, 1), np.nan))}, "not finite"),
        ({"grids": everywhere(lambda u: np.empty((0, 1)))}, "no constants with which"),
        ({"template": "log(-k*u**2)"}, "no constants with which"),
        ({"grids": everywhere(lambda u: np.random.default_rng().normal(size=(3, 1)))}, "not deterministic"),
        ({"grids": everywhere(scribbles)}, "changes the arguments"),
        ({"grids": {"curves": grid}, "template": "sin(a*u) + k", "coefficients": ("a",)}, "linear in a"),
    ],
)
def test_a_wrong_family_is_named(change: dict[str, Any], message: str) -> None:
    assert check_family(GOOD)
    with pytest.raises(ContractError, match=message):
        check_family(replace(GOOD, **change))
