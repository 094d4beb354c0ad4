"""Suites of differential equations: what they hold, how they are sampled, and how answers are judged."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks_feynman.command import evaluate
from benchmarks_feynman.odes.operon import derivatives
from benchmarks_feynman.odes.suites import OdeSettings, is_same_law, load_systems, rates, run_system, sample
from physdiffuser.errors import UsageError


def test_suites_have_two_initial_conditions_for_every_system() -> None:
    assert len(load_systems("odebench")) == 63
    assert len(load_systems("odes")) == 60
    for suite in ("odebench", "odes"):
        for system in load_systems(suite):
            assert len(system.initial) == 2
            assert all(len(start) == len(system.phase) for start in system.initial)


def test_no_development_system_is_one_of_odebench() -> None:
    published = {system.equations for system in load_systems("odebench")}
    assert not [system.name for system in load_systems("odes") if system.equations in published]


@pytest.mark.parametrize("suite", ["odes"])
def test_first_trajectories_are_finite(suite: str) -> None:
    assert all(system.trajectory(0) is not None for system in load_systems(suite))


@pytest.mark.slow
def test_first_trajectories_of_odebench_are_finite() -> None:
    assert all(system.trajectory(0) is not None for system in load_systems("odebench"))


def test_noise_is_relative_and_points_are_dropped() -> None:
    [system] = load_systems("odes", ["9"])
    clean, noisy = (sample(system, OdeSettings(noise=noise, fitted="first")) for noise in (0.0, 0.05))
    apart = (noisy["x_0"] - clean["x_0"]) / clean["x_0"]
    assert 0.04 < np.std(apart) < 0.06
    assert sample(system, OdeSettings(dropped=0.5, fitted="first"))["t"].size == 75


def test_a_correct_answer_is_symbolic_and_generalises() -> None:
    [system] = load_systems("odes", ["8"])
    result = run_system(system, OdeSettings(fitted="first", steps=2))
    assert result["symbolic"] and min(result["r2"]) > 0.999
    counted = rates([result])
    assert counted["symbolic"] == counted["generalisation"] == 1


def test_a_wrong_answer_is_not_symbolic() -> None:
    [system] = load_systems("odes", ["7"])
    ranges = [(0.2, 2.0), (0.1, 1.5)]
    assert not is_same_law(system.equations[0], system.equations[1], ranges, OdeSettings())
    assert is_same_law(system.equations[0], system.equations[0], ranges, OdeSettings())


def test_the_command_writes_results_and_rates(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    arguments = ["--suite", "odes", "--only", "8", "--steps", "2", "--fitted", "first", "--json", "--quiet"]
    run = CliRunner().invoke(evaluate, [*arguments, "--results", str(path)], standalone_mode=False)
    assert run.exception is None, run.exception
    [rate] = json.loads(run.stdout)["rates"]
    assert rate["systems"] == rate["symbolic"] == 1
    [line] = path.read_text().splitlines()
    assert json.loads(line)["equations"]


@pytest.mark.parametrize("peer", ["pysindy", "pyoperon"])
def test_a_peer_answers_on_the_same_tables(peer: str, tmp_path: Path) -> None:
    pytest.importorskip(peer)
    path = tmp_path / "results.jsonl"
    arguments = ["--suite", "odes", "--only", "8", "--fitted", "first", "--peers", peer, "--peers-only"]
    arguments += ["--time", "2"]
    run = CliRunner().invoke(evaluate, [*arguments, "--results", str(path), "--quiet"], standalone_mode=False)
    assert run.exception is None, run.exception
    assert f"{peer}: 1 systems" in run.stdout
    [line] = path.read_text().splitlines()
    result = json.loads(line)
    assert result["system"] == peer and min(result["r2"]) > 0.99


def test_derivatives_of_cubics_are_exact() -> None:
    times = np.sort(np.random.default_rng(0).uniform(0.0, 3.0, 30))
    values = np.column_stack([times**3 - 2 * times, 1.0 + times**2])
    smooth, slopes = derivatives(times, values, 11)
    np.testing.assert_allclose(smooth, values, atol=1e-9)
    np.testing.assert_allclose(slopes, np.column_stack([3 * times**2 - 2, 2 * times]), atol=1e-8)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--suite", "odes,dev"], "one at a time"),
        (["--suite", "odes", "--noise", "0,0.01"], "one --noise"),
        (["--suite", "odes", "--only", "999"], "no system"),
        (["--suite", "odes", "--peers", "gplearn"], "pysindy"),
        (["--suite", "dev", "--fitted", "first"], "differential equations"),
    ],
)
def test_options_that_do_not_fit_are_refused(arguments: list[str], words: str) -> None:
    run = CliRunner().invoke(evaluate, arguments, standalone_mode=False)
    assert isinstance(run.exception, UsageError)
    assert words in str(run.exception)
