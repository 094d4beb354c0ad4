"""Learned generators: what they write obeys the problem, is reproducible, and is fitted.

The networks here have random weights, so nothing is said of what they know.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from learned_parts import BUILDERS, problem, proposals

from physdiffuser.core.problem import Budget, Problem
from physdiffuser.errors import FileError, UsageError
from physdiffuser.expressions import Apply, evaluate
from physdiffuser.expressions.tree import parameter_count, variables, walk
from physdiffuser.models.checkpoint import load_model
from physdiffuser.models.features.reading import relevant_columns
from physdiffuser.models.shipped import find_weights, shipped
from physdiffuser.search.archive import ParetoArchive


@pytest.mark.parametrize("name", sorted(BUILDERS))
def test_candidates_obey_the_problem(name: str, weights: Path) -> None:
    given = problem(operators=frozenset({"add", "mul", "div", "sin", "sqrt"}))
    found = proposals(name, weights, given, candidates=32)
    assert len(found) > 5
    for candidate in found:
        assert candidate.generator == name and candidate.derivation
        assert parameter_count(candidate.expression) == 0
        assert variables(candidate.expression) <= set(range(3))
        operators = {node.operator for node in walk(candidate.expression) if isinstance(node, Apply)}
        # Fitting adds products and sums of terms and nothing else.
        assert operators <= {"add", "mul", "div", "sin", "sqrt"}
        assert np.isfinite(evaluate(candidate.expression, given.inputs)).all()


@pytest.mark.parametrize("name", sorted(BUILDERS))
def test_equal_seeds_give_equal_candidates(name: str, weights: Path) -> None:
    first, again, other = (proposals(name, weights, problem(seed=seed)) for seed in (1, 1, 2))
    assert [c.expression for c in first] == [c.expression for c in again]
    assert [c.expression for c in first] != [c.expression for c in other]


@pytest.mark.parametrize("name", sorted(BUILDERS))
def test_the_budget_is_kept_and_work_goes_on_where_it_stopped(name: str, weights: Path) -> None:
    given = problem()
    archive = ParetoArchive(given)
    generator = BUILDERS[name](weights=str(weights), candidates=16, rounds=1)
    parts = []
    for _ in range(60):
        parts.extend(generator.propose(given, archive, Budget(1)))
    whole = proposals(name, weights, given)
    assert [c.expression for c in parts] == [c.expression for c in whole]


@pytest.mark.parametrize("name", sorted(BUILDERS))
@pytest.mark.parametrize("columns", [1, 9, 12])
def test_any_number_of_columns(name: str, columns: int, weights: Path) -> None:
    for candidate in proposals(name, weights, problem(columns)):
        assert variables(candidate.expression) <= set(range(columns))


@pytest.mark.parametrize("name", sorted(BUILDERS))
def test_si_sized_numbers_come_back_in_their_own_size(name: str, weights: Path) -> None:
    rng = np.random.default_rng(1)
    inputs = rng.uniform(1.0, 4.0, (50, 2)) * np.array([1e-27, 1e21])
    target = 1e-9 * inputs[:, 0] * inputs[:, 1]
    usual = frozenset({"add", "mul", "div", "sqrt"})
    given = Problem(inputs=inputs, target=target, names=("m", "n"), operators=usual)
    found = proposals(name, weights, given, candidates=48)
    errors = [float(np.median(np.abs(evaluate(c.expression, inputs) / given.target - 1.0))) for c in found]
    # Any fitted formula is of the size of the target, even from a network that knows nothing.
    assert found and np.median(errors) < 3.0


@pytest.mark.parametrize("name", sorted(BUILDERS))
@pytest.mark.parametrize("rows", [1, 3])
def test_tables_too_small_for_a_network_get_no_candidates(name: str, rows: int, weights: Path) -> None:
    assert proposals(name, weights, problem(rows=rows)) == []


@pytest.mark.parametrize("name", sorted(BUILDERS))
def test_outliers_weights_and_constant_columns(name: str, weights: Path) -> None:
    given = problem(rows=30, weights=np.ones(30), loss="robust")
    given.inputs[:, 1] = 2.0
    given.target[3] = 1e12
    assert all(
        np.isfinite(evaluate(c.expression, given.inputs)).all() for c in proposals(name, weights, given)
    )


def test_without_weights_the_user_is_told_what_to_do() -> None:
    with pytest.raises(UsageError, match="physdiffuser train small"):
        find_weights("no-such-attention")
    for name in shipped():
        assert (find_weights(name) / "model.json").is_file()


def test_weights_of_ones_own(weights: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PHYSDIFFUSER_WEIGHTS", str(weights))
    assert find_weights() == find_weights("standard") == weights
    with pytest.raises(UsageError, match="trained with the attention 'standard', not 'biased'"):
        find_weights("biased")
    with pytest.raises(FileError, match=r"model\.json"):
        find_weights(weights=str(tmp_path))


def test_relevant_columns_are_kept() -> None:
    rng = np.random.default_rng(2)
    inputs = rng.uniform(1.0, 2.0, (400, 15))
    inputs[:, 7] = 1.0
    target = inputs[:, 3] ** 2 + 0.5 * np.cos(9.0 * inputs[:, 11]) + 1e-3 * inputs[:, 0]
    chosen = relevant_columns(inputs, target)
    assert len(chosen) == 9 and {3, 11} <= set(chosen) and 7 not in chosen and chosen == sorted(chosen)
    assert relevant_columns(inputs[:, :9], target) == list(range(9))


@pytest.mark.parametrize("damage", ["missing", "sum", "json", "shape", "no encoder", "blocks"])
def test_damaged_weights_are_named(damage: str, weights: Path, tmp_path: Path) -> None:
    import json
    import shutil

    folder = tmp_path / "weights"
    shutil.copytree(weights, folder)
    if damage == "missing":
        (folder / "encoder.safetensors").unlink()
    elif damage == "sum":
        (folder / "encoder.safetensors").write_bytes(b"not what it was")
    elif damage == "json":
        (folder / "model.json").write_text("{", encoding="utf-8")
    else:
        description = json.loads((folder / "model.json").read_text(encoding="utf-8"))
        if damage == "shape":
            description["config"]["width"] = 64
        elif damage == "no encoder":
            del description["files"]["encoder.safetensors"]
        else:
            description["files"]["blocks.safetensors"] = "0" * 64
        (folder / "model.json").write_text(json.dumps(description), encoding="utf-8")
    with pytest.raises(FileError, match=str(folder)):
        load_model(folder)


def test_a_missing_attention_package_is_named(weights: Path, tmp_path: Path) -> None:
    import json
    import shutil

    from physdiffuser.errors import PluginError

    folder = tmp_path / "weights"
    shutil.copytree(weights, folder)
    description = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    description["attention"]["quantum"] = {"package": "somebodys_quantum_attention", "version": "3.1"}
    (folder / "model.json").write_text(json.dumps(description), encoding="utf-8")
    with pytest.raises(PluginError, match=r"somebodys_quantum_attention 3\.1"):
        load_model(folder)


def test_importing_a_generator_loads_no_torch() -> None:
    code = (
        "import sys, physdiffuser.generation.diffusion, physdiffuser.generation.autoregressive; "
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
