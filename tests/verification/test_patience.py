"""A run that is limited by steps says the same on a machine where algebra takes long."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from physdiffuser import solve
from physdiffuser.core.solution import Solution
from physdiffuser.report.documents.json_document import document
from physdiffuser.verification import SymbolicWorker, verify
from physdiffuser.verification.patience import PATIENCE, allowed, symbolic_patience
from physdiffuser.verification.worker import Job

ANSWERS_AFTER = 20.0
X = np.linspace(0.5, 6.0, 40)


@pytest.fixture
def slow_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every symbolic answer takes `ANSWERS_AFTER` seconds, which a patient caller does not notice."""
    run = SymbolicWorker.run

    def slow(self: SymbolicWorker, job: Job, seconds: float) -> Job | None:
        return run(self, job, 60.0) if seconds >= ANSWERS_AFTER else None

    monkeypatch.setattr(SymbolicWorker, "run", slow)


def solved(amplitude: float, **limits: Any) -> Solution:
    table = {"x": X, "y": amplitude * X / (1.75 + X)}
    return solve(table, generators=["enumeration"], constraints=[{"increasing": "x"}], **limits)


def content(solution: Solution) -> dict[str, Any]:
    return {key: value for key, value in document(solution).items() if key != "timing"}


@pytest.fixture(scope="module")
def usual() -> Solution:
    return solved(3.625, steps=2)


def test_a_document_of_steps_is_the_same_on_a_slow_machine(usual: Solution, slow_machine: None) -> None:
    assert [one.state for one in usual.constraints] == ["proved"]
    # Answers are kept, and another scale of the same law asks again.
    again = solved(7.25, steps=2)
    assert [one.state for one in again.constraints] == ["proved"]
    assert content(solved(3.625, steps=2)) == content(usual)


def test_a_run_with_a_time_limit_does_not_wait(slow_machine: None) -> None:
    hurried = solved(14.5, steps=2, time=30)
    assert [one.state for one in hurried.constraints] == ["holds"]


def test_the_law_of_a_run_of_steps_is_verified_with_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = []

    def noted(*arguments: Any, seconds: float, **options: Any) -> Any:
        limits.append(seconds)
        return verify(*arguments, seconds=seconds, **options)

    monkeypatch.setattr("physdiffuser.verification.verify", noted)
    for options in ({"time": None}, {"time": 30}):
        solved(3.625, steps=2, **options)
    patient, hurried = limits
    assert patient >= 3 * PATIENCE
    assert hurried < 15


def test_limits_are_those_of_a_run_with_a_time_limit_once_the_user_stops() -> None:
    stopped = False
    assert allowed(2.0) == 2.0
    with symbolic_patience(None, lambda: stopped):
        assert allowed(2.0) == 2.0 * PATIENCE
        with symbolic_patience(10.0, lambda: False):
            assert allowed(2.0) == 2.0
        stopped = True
        assert allowed(2.0) == 2.0
    assert allowed(2.0) == 2.0
