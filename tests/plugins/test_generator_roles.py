"""What a generator declares about itself decides when it takes part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from physdiffuser.core.archive import Archive
from physdiffuser.core.candidate import Candidate
from physdiffuser.core.generator import GeneratorSpec
from physdiffuser.core.problem import Budget, Problem
from physdiffuser.core.solution import Solution
from physdiffuser.data import dataset_from_arrays
from physdiffuser.expressions import parse
from physdiffuser.generation import builtin
from physdiffuser.pipeline import solve_dataset
from physdiffuser.plugin_system import manager


@dataclass
class Recorder:
    """Proposes `a` and notes how many formulas had been offered when it was called."""

    name: str = "recorder"
    called: list[int] = field(default_factory=list)

    def propose(self, problem: Problem, archive: Archive, budget: Budget) -> Iterator[Candidate]:
        self.called.append(len(archive.front()))
        while not budget.exhausted:
            budget.spend()
            yield Candidate(parse("a", problem.names), self.name)


def solved(
    monkeypatch: pytest.MonkeyPatch, steps: int, *, easy: bool = False, **declared: Any
) -> tuple[Recorder, Solution]:
    """A run of enumeration and the recorder: on a power law with noise, or on a law that takes long."""
    recorder = Recorder()
    specs = (builtin.SPECS[0], GeneratorSpec("recorder", lambda: recorder, **declared))
    monkeypatch.setattr(builtin, "SPECS", specs)
    monkeypatch.setattr(manager, "_loaded", {})
    random = np.random.default_rng(0)
    inputs = random.uniform(1, 3, (100, 2))
    a, b = inputs.T
    power_law = a * b**2 * (1 + 0.1 * random.normal(size=100))
    target = power_law if easy else a * np.sin(3.7 * b) + b**1.37 * np.exp(-a * b / 1.9) + np.tanh(a - b)
    dataset = dataset_from_arrays(inputs, target, names=("a", "b"))
    few = ["add", "mul", "pow", "sin"]
    return recorder, solve_dataset(dataset, steps=steps, plugins=False, operators=few)


def test_a_primary_generator_has_its_turn_after_the_opening(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder, solution = solved(monkeypatch, 40)
    assert recorder.called and solution.timing["steps_recorder"] > 0


def test_a_deferred_generator_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder, _ = solved(monkeypatch, 20, role="deferred")
    assert not recorder.called


def test_a_refiner_is_called_before_a_formula_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder, solution = solved(monkeypatch, 40, easy=True, role="refiner")
    assert recorder.called and recorder.called[0] > 0
    assert solution.best is not None


def test_a_generator_that_is_no_default_has_to_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder, _ = solved(monkeypatch, 10, default=False)
    assert not recorder.called


def test_the_first_turns_are_as_long_as_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    _, solution = solved(monkeypatch, 30, opening=(2,))
    assert solution.timing["steps_recorder"] == 2.0
