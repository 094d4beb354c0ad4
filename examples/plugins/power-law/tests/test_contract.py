"""The generator keeps the contract, and finds a power law."""

from __future__ import annotations

import numpy as np
from physdiffuser_power_law import PowerLaws, physdiffuser_generators

from physdiffuser.core.problem import Budget, Problem
from physdiffuser.expressions import evaluate
from physdiffuser.search.archive import ParetoArchive
from physdiffuser.testing import check_generator


def test_contract() -> None:
    for spec in physdiffuser_generators():
        assert check_generator(spec)


def test_finds_keplers_third_law() -> None:
    axis = np.linspace(0.4, 30.0, 50)[:, None]
    problem = Problem(inputs=axis, target=axis[:, 0] ** 1.5, names=("a",))
    archive = ParetoArchive(problem)
    for candidate in PowerLaws().propose(problem, archive, Budget(steps=10)):
        archive.offer(candidate)
    best = archive.front()[-1].candidate.expression
    assert np.allclose(evaluate(best, np.array([[100.0]])), 1000.0)
