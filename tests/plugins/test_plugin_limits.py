"""Time, steps and patience that plugins get: for loading, for proposing, and in the contract checks."""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from physdiffuser.core.candidate import Candidate
from physdiffuser.core.generator import GeneratorSpec
from physdiffuser.core.problem import Budget, Problem
from physdiffuser.expressions import Variable
from physdiffuser.plugin_system.calls import PluginWorker
from physdiffuser.plugin_system.guard import POLICY as GUARD
from physdiffuser.plugin_system.guard import GuardedGenerator, Patience
from physdiffuser.plugin_system.limits import LIMIT_VARIABLE, LoadLimit, Watch
from physdiffuser.search.archive import ParetoArchive
from physdiffuser.search.loop import SearchLoop
from physdiffuser.testing import ContractError, check_generator

END = 20_000
"""Candidates after which the endless generators below fail, so that these tests end in any case."""


class Endless:
    """Yields valid candidates as long as `goes_on` says."""

    name = "endless"

    def __init__(self, goes_on: Callable[[Budget], bool] = lambda budget: True) -> None:
        self.goes_on = goes_on
        self.yielded = 0

    def propose(self, problem: Problem, archive: Any, budget: Budget) -> Iterator[Candidate]:
        while self.goes_on(budget):
            self.yielded += 1
            if self.yielded > END:
                raise RuntimeError("nobody stopped it")
            yield Candidate(Variable(0), self.name)


def not_cancelled(budget: Budget) -> bool:
    return not budget.cancelled()


def problem() -> Problem:
    inputs = np.random.default_rng(0).uniform(1.0, 2.0, (40, 2))
    return Problem(inputs=inputs, target=inputs[:, 0] * inputs[:, 1], names=("a", "b"))


@pytest.mark.parametrize("goes_on", [lambda budget: True, not_cancelled])
def test_the_loop_looks_at_the_clock_between_candidates(goes_on: Callable[[Budget], bool]) -> None:
    clock = itertools.count()
    loop = SearchLoop(problem(), {"endless": Endless(goes_on)}, clock=lambda: float(next(clock)))
    result = loop.run(None, 500.0)
    assert result.warnings == ()
    assert loop.generators["endless"].yielded <= 500


def test_the_loop_stops_any_generator_when_the_user_does() -> None:
    generator = Endless()
    loop = SearchLoop(problem(), {"endless": generator}, cancelled=lambda: generator.yielded >= 50)
    assert loop.run(None, float("inf")).warnings == ()
    assert generator.yielded == 50


@pytest.mark.parametrize("goes_on", [lambda budget: True, not_cancelled])
def test_steps_end_a_generator_that_never_spends(goes_on: Callable[[Budget], bool]) -> None:
    inner = Endless(goes_on)
    guarded = GuardedGenerator("a-package", GeneratorSpec("endless", lambda: inner))
    budget = Budget(steps=5)
    archive = ParetoArchive(problem())
    proposed = sum(1 for _ in guarded.propose(problem(), archive, budget))
    # Each step is worth so many candidates, and so many more may follow.
    assert proposed == 5 * GUARD.candidates_charged + GUARD.candidates_per_step - 1
    assert "a-package" in str(guarded.warning)
    assert "budget.spend()" in str(guarded.warning)
    # Its turn was cut short, no more: it can be asked again, and is stopped again.
    assert sum(1 for _ in guarded.propose(problem(), archive, Budget(steps=1))) < END / 2


def test_a_search_by_steps_ends_and_names_the_package() -> None:
    guarded = GuardedGenerator("a-package", GeneratorSpec("endless", Endless))
    result = SearchLoop(problem(), {"endless": guarded}).run(8, float("inf"))
    (warning,) = result.warnings
    assert "plugin package a-package: generator 'endless' goes on after its budget" in warning


def test_a_generator_that_keeps_to_its_budget_is_not_charged() -> None:
    def spend(budget: Budget) -> bool:
        return budget.spend()

    guarded = GuardedGenerator("a-package", GeneratorSpec("endless", lambda: Endless(spend)))
    budget = Budget(steps=300)
    assert sum(1 for _ in guarded.propose(problem(), ParetoArchive(problem()), budget)) == 299
    assert budget.spent == 300
    assert guarded.warning is None


def test_a_silent_generator_is_given_up_long_before_the_deadline() -> None:
    budget = Budget(steps=10, deadline=40.0, clock=lambda: 0.0)
    patience = Patience(budget)
    assert not patience(9.9)
    assert patience(10.1)
    # Spending is a sign of life.
    patience = Patience(budget)
    budget.spend()
    assert not patience(9.9)
    assert not patience(19.8)
    assert patience(20.0)


def test_the_archive_and_all_rows_are_out_of_a_plugins_reach() -> None:
    class Meddler:
        name = "meddler"
        allowed: list[str]

        def propose(self, problem: Problem, archive: Any, budget: Budget) -> Iterator[Candidate]:
            self.allowed = []
            attempts: dict[str, Callable[[], Any]] = {
                "offer": lambda: archive.offer(Candidate(Variable(0), "meddler")),
                "clear": lambda: archive._best.clear(),
                "analysis": lambda: archive.analysis.first,
                "rows": lambda: archive.problem.inputs.fill(0.0),
                "all rows": lambda: problem.all_rows.inputs.fill(0.0),
            }
            for name, attempt in attempts.items():
                try:
                    attempt()
                except (AttributeError, ValueError):
                    continue
                self.allowed.append(name)
            yield archive.front()[0].candidate

    whole = problem()
    small = Problem(inputs=whole.inputs[:20], target=whole.target[:20], names=whole.names, full_problem=whole)
    archive = ParetoArchive(small)
    archive.offer(Candidate(Variable(0), "core"))
    meddler = Meddler()
    guarded = GuardedGenerator("a-package", GeneratorSpec("meddler", lambda: meddler))
    assert [c.generator for c in guarded.propose(small, archive, Budget(5))] == ["core"]
    assert meddler.allowed == []
    assert len(archive.front()) == 1
    assert whole.inputs.all()


@pytest.mark.parametrize("goes_on", [lambda budget: True, not_cancelled])
def test_the_contract_check_ends_an_endless_generator(goes_on: Callable[[Budget], bool]) -> None:
    with pytest.raises(ContractError, match="after its budget of 20 steps is spent"):
        check_generator(GeneratorSpec("endless", lambda: Endless(goes_on)))


@pytest.mark.parametrize("place", ["build", "propose"])
def test_the_contract_check_has_a_time_limit_for_each_call(place: str) -> None:
    def wait() -> None:
        while True:
            time.sleep(0.01)

    class Hangs(Endless):
        def propose(self, problem: Problem, archive: Any, budget: Budget) -> Iterator[Candidate]:
            wait()
            yield Candidate(Variable(0), self.name)

    def build() -> Hangs:
        if place == "build":
            wait()
        return Hangs()

    with pytest.raises(ContractError, match=f"{place} does not return within 0.3 s"):
        check_generator(GeneratorSpec("endless", build), limit=0.3)


class FakeWorker(PluginWorker):
    """A worker that has used what the test says."""

    def __init__(self) -> None:
        self.cpu: float | None = 0.0

    def cpu_seconds(self) -> float | None:
        return self.cpu


def seconds_given(limit: LoadLimit, rate: float | None) -> float:
    """Seconds after which a plugin is given up that uses so much processor time per second."""
    worker = FakeWorker()
    watch = Watch(limit, worker)
    for tick in itertools.count(1):
        worker.cpu = None if rate is None else rate * tick / 10
        if watch(tick / 10):
            return tick / 10
    raise AssertionError


@pytest.mark.parametrize(
    ("rate", "seconds", "reason"),
    [
        (0.0, 2.0, "did nothing"),  # it waits for something
        (1.0, 4.0, "processor time"),  # an endless loop
        (0.19, 20.0, "within 20 s"),  # the same on a busy machine
        (None, 20.0, "within 20 s"),  # where the system does not tell
    ],
)
def test_loading_is_limited_by_what_the_plugin_does(rate: float | None, seconds: float, reason: str) -> None:
    limit = LoadLimit.for_run(60.0)
    assert seconds_given(limit, rate) == pytest.approx(seconds, abs=0.15)
    assert reason in limit.reason
    assert LIMIT_VARIABLE in limit.reason


def test_a_slow_import_on_a_busy_machine_is_waited_for() -> None:
    # Importing torch takes 2 s of processor time, which a busy machine gives in 10 s.
    worker = FakeWorker()
    watch = Watch(LoadLimit.for_run(60.0), worker)
    for tick in range(100):
        worker.cpu = 0.2 * tick / 10
        assert not watch(tick / 10)


def test_a_plugin_is_not_lost_because_another_hung() -> None:
    limit = LoadLimit.for_run(60.0)
    limit.left = -1.0
    assert seconds_given(limit, 0.5) == pytest.approx(2.0, abs=0.15)
    assert "the plugins before it" in limit.reason


@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0, None])
def test_loading_takes_at_most_half_of_a_short_run(rate: float | None) -> None:
    assert seconds_given(LoadLimit.for_run(2.0), rate) <= 1.05


def test_a_limit_in_the_environment_is_the_only_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIMIT_VARIABLE, "30")
    assert seconds_given(LoadLimit.for_run(2.0), 0.0) == 30.0


def test_calls_that_overlap_leave_stdout_as_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    before = sys.stdout
    first_runs, second_runs = threading.Event(), threading.Event()

    def first() -> None:
        first_runs.set()
        second_runs.wait(10)
        print("from a plugin")

    def second() -> None:
        second_runs.set()
        time.sleep(0.3)

    workers = PluginWorker(), PluginWorker()
    thread = threading.Thread(target=workers[0].call, args=(first, lambda waited: waited >= 20.0))
    thread.start()
    first_runs.wait(10)
    print("from the user")
    workers[1].call(second, lambda waited: waited >= 20.0)
    thread.join()
    for worker in workers:
        worker.close()
    assert sys.stdout is before
    printed = capsys.readouterr()
    assert printed.out == "from the user\n"
    assert printed.err == "from a plugin\n"
