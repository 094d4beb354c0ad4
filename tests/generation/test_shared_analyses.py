"""An analysis that several generators share fails once, with a warning, and nobody waits for it."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from itertools import islice

import numpy as np
import pytest

from physdiffuser.core.candidate import Candidate
from physdiffuser.core.problem import Budget, Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.core.work import MeteredGenerator, Work
from physdiffuser.data import dataset_from_arrays
from physdiffuser.expressions import ONE
from physdiffuser.pipeline import solve_dataset
from physdiffuser.reduction import analysis as framing
from physdiffuser.reduction import data_collapse as collapse
from physdiffuser.search.archive import ParetoArchive

FEW = 200
"""More items than the analysis yields; an endless one is cut off here."""


def _problem() -> Problem:
    inputs = np.random.default_rng(0).uniform(1, 5, (60, 2))
    return Problem(inputs=inputs, target=inputs[:, 0] * inputs[:, 1], names=("a", "b"))


def _failing(*_: object) -> Generator[float, None, tuple[Reduction, ...]]:
    yield 0.1
    raise ValueError("no features")


def _result(work: Generator[float, None, tuple[Reduction, ...]]) -> tuple[Reduction, ...] | None:
    """What the work returns; None where it goes on for too long."""
    for _ in range(FEW):
        try:
            next(work)
        except StopIteration as end:
            reductions: tuple[Reduction, ...] = end.value
            return reductions
    return None


def test_later_frames_fail_once_for_all_callers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "collapsed", _failing)
    problem = _problem()
    archive = ParetoArchive(problem)
    first, second = (archive.analysis.later() for _ in range(2))
    next(first)
    next(second)
    assert _result(second) == ()
    assert _result(first) == ()
    assert _result(archive.analysis.later()) == ()
    assert len(archive.faults) == 1
    assert "ValueError: no features" in archive.faults[0]


def test_first_look_fails_once_and_leaves_the_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def failing(problem: Problem) -> list[Reduction]:
        asked.append(problem)
        raise ArithmeticError("slopes")

    monkeypatch.setattr(framing, "hypotheses", failing)
    problem = _problem()
    archive = ParetoArchive(problem)
    looks = [archive.analysis.first for _ in range(3)]
    assert looks[0].reductions == (Reduction.of_columns((), (0, 1)),)
    assert looks[1] is looks[0] is looks[2]
    assert len(asked) == 1
    assert len(archive.faults) == 1


def test_a_failed_analysis_is_one_warning_of_the_solution(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "collapsed", _failing)
    monkeypatch.setattr(framing, "hypotheses", lambda problem: [Reduction.of_columns((), (0, 1))])
    random = np.random.default_rng(0)
    inputs = random.uniform(1, 5, (60, 2))
    target = inputs[:, 0] * np.exp(inputs[:, 1] / 2.7) + random.normal(0, 0.5, 60)
    dataset = dataset_from_arrays(inputs, target)
    solution = solve_dataset(dataset, time=60, steps=40, generators=["enumeration", "sparse"], plugins=False)
    said = [text for text in solution.warnings if "no features" in text]
    assert len(said) == 1
    assert "switched off" not in said[0]


class _Broken(MeteredGenerator):
    name = "broken"

    def run(self, problem: Problem, archive: ParetoArchive) -> Work:
        yield Candidate(ONE, "broken")
        yield 1.0
        raise OSError("disk")


def _turn(generator: MeteredGenerator, problem: Problem) -> Iterator[Candidate]:
    return islice(generator.propose(problem, ParetoArchive(problem), Budget(5)), FEW)


def test_a_failed_run_is_not_taken_for_a_finished_one() -> None:
    generator, problem = _Broken(), _problem()
    assert len(list(_turn(generator, problem))) == 1
    for _ in range(2):
        with pytest.raises(OSError, match="disk"):
            list(_turn(generator, problem))


@pytest.mark.parametrize("relevant", [[], [0], [0, 1]])
def test_collapse_goes_on_where_no_column_stands_out(
    relevant: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collapse, "relevant_columns", lambda inputs, target: relevant)
    problem = _problem()
    reductions = _result(collapse.collapsed(problem, [Reduction.of_columns((), (0, 1))]))
    assert reductions is not None
