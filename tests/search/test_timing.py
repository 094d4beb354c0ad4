"""The time limit: what is reserved for the stages after the search, on an idle and on a busy machine."""

from __future__ import annotations

import subprocess
import sys
import time
import types
from collections.abc import Iterator

import numpy as np
import pytest

from physdiffuser import pipeline
from physdiffuser.core.candidate import Candidate
from physdiffuser.core.problem import Budget, Problem
from physdiffuser.core.work import MeteredGenerator, Work
from physdiffuser.data import dataset_from_arrays
from physdiffuser.expressions import parse
from physdiffuser.expressions.tree import fitted_constants
from physdiffuser.finalize.finalize import finalize
from physdiffuser.fitting.exact_constants.snapping import snap
from physdiffuser.search import timing
from physdiffuser.search.archive import ParetoArchive
from physdiffuser.search.loop import SearchLoop
from physdiffuser.search.stopping import POLICY
from physdiffuser.search.timing import Pace, TimeLimit

BUSY = 5.0
"""Slowdown by four busy processes per core."""


class Machine:
    """Clocks of a machine on which each processor second takes `slowdown` seconds."""

    def __init__(self, slowdown: float = 1.0) -> None:
        self.slowdown = slowdown
        self.now = self.used = 0.0

    def work(self, seconds: float) -> None:
        self.used += seconds
        self.now += seconds * self.slowdown

    def clock(self) -> float:
        return self.now

    def processor(self) -> float:
        return self.used

    def limit(self, seconds: float | None, report: float = 0.0) -> TimeLimit:
        return TimeLimit(seconds, 0.0, report, clock=self.clock, processor=self.processor)

    def measure(self, limit: TimeLimit, seconds: float = 0.5) -> None:
        with limit.pace.measured():
            self.work(seconds)


def test_the_pace_is_wall_time_over_processor_time_and_recent_work_counts_most() -> None:
    machine = Machine()
    pace = Pace(machine.clock, machine.processor)
    assert pace.slowdown == 1.0
    for slowdown in (1.0, 8.0, 2.0):
        machine.slowdown = slowdown
        for _ in range(200):
            with pace.measured():
                machine.work(0.05)
        assert pace.slowdown == pytest.approx(slowdown, rel=0.02)
    machine.now += 100.0  # waiting outside of the measured work says nothing
    assert pace.slowdown == pytest.approx(2.0, rel=0.02)


def test_the_reserve_grows_with_the_slowdown_and_is_at_most_half_of_the_time() -> None:
    reserved = []
    for slowdown in (1.0, BUSY, 25.0):
        machine = Machine(slowdown)
        limit = machine.limit(20.0, report=0.7)
        machine.measure(limit)
        reserved.append(20.0 - limit.search_until)
        assert limit.finalize_by <= 20.0 + 1.0 - min(0.7 * slowdown, 11.0)
    assert reserved[0] < reserved[1] < reserved[2] == timing.POLICY.max_reserved * 20.0


def test_without_a_limit_nothing_depends_on_the_clock() -> None:
    machine = Machine(BUSY)
    limit = machine.limit(None, report=5.0)
    machine.measure(limit)
    assert limit.search_until == limit.finalize_by == float("inf")
    limit.trial("formula", lambda stop: pytest.fail("nothing is tried without a limit"))


def test_the_constants_of_the_best_formula_are_tried_and_their_duration_is_reserved() -> None:
    machine = Machine(BUSY)
    limit = machine.limit(60.0)
    machine.measure(limit)
    before, seen = limit.search_until, list[float]()

    def work(stop: object) -> None:
        seen.append(machine.now)
        machine.work(0.5)

    for subject in ("a", "a", "b", "b", "b", "c", "c"):
        limit.trial(subject, work)
        machine.work(2.0)
    assert len(seen) == 2 and seen[0] >= 18.0 and seen[1] >= 39.0
    assert limit.search_until < before
    assert limit.search_until == pytest.approx(60.0 - BUSY * (timing.POLICY.last_step + 2 * 0.5))


def test_a_trial_that_takes_long_is_told_to_stop() -> None:
    machine = Machine(BUSY)
    limit = machine.limit(60.0)
    machine.now = 20.0

    def work(stop: object) -> None:
        assert callable(stop)
        while not stop():
            machine.work(0.1)

    limit.trial("formula", work)
    assert machine.now <= 20.0 + timing.POLICY.trial_share * 60.0 + 0.1 * BUSY


def test_a_slow_start_leaves_a_short_search() -> None:
    machine = Machine()
    machine.now = 60.0
    limit = machine.limit(10.0)
    assert limit.begin_search() == 60.0 and limit.search_until == 62.0
    quick = Machine().limit(10.0)
    assert quick.begin_search() is None


class Slow(MeteredGenerator):
    """Takes half a second of processor time a step; proposes one formula."""

    name = "slow"

    def __init__(self, machine: Machine) -> None:
        super().__init__()
        self.machine = machine

    def run(self, problem: Problem, archive: ParetoArchive) -> Work:
        yield Candidate(parse("1.5*a", ("a",)), self.name)
        for _ in range(500):
            self.machine.work(0.1)
            yield 0.1


class Once:
    """A generator that is asked late; notes when."""

    name = "late"

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.asked: list[float] = []

    def propose(self, problem: Problem, archive: ParetoArchive, budget: Budget) -> Iterator[Candidate]:
        self.asked.append(self.machine.now)
        yield from ()


def noise() -> Problem:
    random = np.random.default_rng(0)
    inputs = random.uniform(1, 5, (200, 1))
    return Problem(inputs, np.sin(7 * inputs[:, 0]) + 0.1 * random.normal(size=200), ("a",))


@pytest.mark.parametrize("slowdown", [1.0, BUSY])
def test_the_search_ends_when_the_reserve_begins(slowdown: float) -> None:
    machine = Machine(slowdown)
    limit = machine.limit(20.0, report=0.7)
    loop = SearchLoop(noise(), {"slow": Slow(machine)}, limit=limit, clock=machine.clock)
    result = loop.run(None, float("inf"))
    assert not result.settled
    # One piece of work may be in hand, and the first turns begin before anything is measured.
    assert machine.now <= limit.search_until + 0.2 * slowdown + (slowdown > 1) * 3.0
    needed = slowdown * (timing.POLICY.last_step + 0.7)
    assert 20.0 - machine.now > 0.9 * (needed - 1.0)


@pytest.mark.parametrize(("slowdown", "asked"), [(1.0, True), (BUSY, False)])
def test_late_generators_are_asked_only_if_their_start_fits_at_the_pace_measured(
    slowdown: float, asked: bool
) -> None:
    machine = Machine(slowdown)
    deferred = Once(machine)
    generators = {"slow": Slow(machine), "late": deferred}
    limit = machine.limit(7.0 * slowdown + POLICY.deferred_seconds + 6.0)
    loop = SearchLoop(noise(), generators, deferred={"late"}, limit=limit, clock=machine.clock)
    loop.run(None, float("inf"))
    assert bool(deferred.asked) is asked
    assert limit.comparing is asked


def test_the_chosen_formula_gets_its_exact_constants_on_a_busy_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    random = np.random.default_rng(1)
    inputs = random.uniform(1, 5, (200, 2))
    problem = Problem(inputs, 1.5 * inputs[:, 0] * inputs[:, 1] ** 2, ("a", "b"))
    archive = ParetoArchive(problem)
    archive.offer(Candidate(parse("1.50000000001*a*b**2.00000000001", ("a", "b")), "test"))
    exact = []
    for slowdown in (1.0, BUSY):
        machine = Machine(BUSY)

        def slowed(*arguments: object, machine: Machine = machine, **options: object) -> object:
            machine.work(0.1)  # 0.5 s here: more than an idle machine would be given
            return snap(*arguments, **options)  # type: ignore[arg-type]

        monkeypatch.setattr("physdiffuser.core.formula_fits.snap", slowed)
        laws, position = finalize(archive, problem, 1e-24, 0.0, clock=machine.clock, slowdown=slowdown)
        exact.append(fitted_constants(laws[position].final) == 0)
    assert exact == [False, True]


def test_a_run_keeps_its_limit_where_everything_takes_eight_times_as_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Eight seconds pass on this clock for each processor second, whatever else the real machine does.
    def clock() -> float:
        return 8.0 * time.thread_time()

    monkeypatch.setattr(pipeline, "clock_module", types.SimpleNamespace(monotonic=clock))
    random = np.random.default_rng(2)
    inputs = random.uniform(1, 5, (300, 4))
    target = inputs[:, 0] * np.exp(-inputs[:, 1] / 3) * np.sin(inputs[:, 2]) + 2 * np.sqrt(inputs[:, 3])
    dataset = dataset_from_arrays(inputs, target * (1 + 0.05 * random.normal(size=300)))
    started = clock()
    solution = pipeline.solve_dataset(dataset, time=30.0, report_seconds=0.7)
    taken = clock() - started
    assert solution.best is not None and not solution.timing["steps_autoregressive"]
    assert taken + 8.0 * 0.7 < 30.0 * 1.2
    assert solution.timing["search_seconds"] > 10.0


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the processor time stands for it")
def test_the_time_before_the_first_statement_of_the_program_is_known() -> None:
    code = (
        "import time; time.sleep(0.5); from physdiffuser.search.timing import process_started;"
        "print(time.monotonic() - process_started())"
    )
    before = time.monotonic()
    age = float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
    assert 0.5 <= age <= time.monotonic() - before + 0.05
