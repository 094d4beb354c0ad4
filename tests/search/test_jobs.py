"""Processes that work for a search: the same answer for any number, faults, and how they end."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from physdiffuser import solve
from physdiffuser.core.archive import Archive
from physdiffuser.core.candidate import Candidate
from physdiffuser.core.generator import GeneratorSpec
from physdiffuser.core.problem import Budget, Problem
from physdiffuser.errors import UsageError
from physdiffuser.expressions import Number, parse
from physdiffuser.report.documents.json_document import document
from physdiffuser.search.archive import ParetoArchive
from physdiffuser.search.loop import SearchLoop, SearchResult
from physdiffuser.search.parallel.ahead import AheadGenerator
from physdiffuser.search.parallel.cores import JOBS_VARIABLE, can_fork, default_jobs, usable_cores
from physdiffuser.search.parallel.distributed import DaskWorkers
from physdiffuser.search.parallel.workers import ForkedWorkers

pytestmark = pytest.mark.skipif(not can_fork(), reason="worker processes are forked on Linux alone")


def problem(noise: float = 0.05) -> Problem:
    rng = np.random.default_rng(3)
    inputs = rng.uniform(1, 3, (60, 2))
    target = inputs[:, 0] ** 2 / inputs[:, 1] * (1 + noise * rng.normal(size=60))
    return Problem(inputs, target, ("a", "b"))


class Counting:
    """Proposes numbers, one a step, each by what it sees of the archive."""

    name = "counting"

    def __init__(self, seconds: float = 0.0, fails_after: int = 1_000) -> None:
        self.seconds, self.fails_after, self.count = seconds, fails_after, 0

    def propose(self, problem: Problem, archive: Archive, budget: Budget) -> Iterator[Candidate]:
        seen = len(archive.front())
        while not budget.exhausted:
            self.count += 1
            if self.count > self.fails_after:
                raise ValueError("out of numbers")
            time.sleep(self.seconds)
            yield Candidate(Number(float(self.count)), f"{self.name} {seen}")
            budget.spend()


class Scripted:
    """Proposes one formula, and has nothing to do then."""

    name = "scripted"

    def propose(self, problem: Problem, archive: Archive, budget: Budget) -> Iterator[Candidate]:
        yield Candidate(parse("a + b", problem.names, {}), self.name)
        while budget.spend():
            pass


def proposed(
    generator: AheadGenerator,
    grants: list[int],
    between: Callable[[int], object] = lambda turn: None,
) -> list[tuple[Any, ...]]:
    """What comes of turns of so many steps, with a formula put into the archive after each."""
    task = problem()
    archive = ParetoArchive(task)
    generator.begin(task, archive)
    found = []
    for turn, steps in enumerate(grants):
        between(turn)
        budget = Budget(steps)
        found += [(turn, one.expression, one.generator) for one in generator.propose(task, archive, budget)]
        found.append((turn, budget.spent))
        archive.offer(Candidate(parse(f"a**{turn + 2}/b", task.names, {}), "test"))
    return found


def never() -> bool:
    return False


def test_turns_that_a_worker_does_are_those_done_here() -> None:
    grants = [3, 5, 1, 7, 4]
    here = proposed(AheadGenerator(Counting(), 4, never), grants)
    with ForkedWorkers(2) as workers:
        there = proposed(AheadGenerator(Counting(), 4, never, workers), grants)
    assert there == here
    assert [one[1] for one in here if len(one) == 2] == grants


def test_an_error_in_a_worker_comes_where_it_would_come_here() -> None:
    for workers in (None, ForkedWorkers(2)):
        generator = AheadGenerator(Counting(fails_after=6), 4, never, workers)
        with pytest.raises(ValueError, match="out of numbers"):
            proposed(generator, [5, 5])
        if workers is not None:
            workers.close()


@pytest.mark.parametrize("deaths", [1, 3])
def test_a_worker_that_is_killed_costs_its_turn_and_the_third_time_its_generator(deaths: int) -> None:
    grants = [3, 5, 1, 7]
    here = proposed(AheadGenerator(Counting(), 4, never), grants)
    with ForkedWorkers(2) as workers:
        generator = AheadGenerator(Counting(seconds=0.03), 4, never, workers)

        def kill(turn: int) -> None:
            if turn < deaths:
                for pid in workers.pids:
                    os.kill(pid, signal.SIGKILL)

        if deaths == 1:
            assert proposed(generator, grants, kill) == here
            assert generator.warning is not None and "signal 9" in generator.warning
        else:
            with pytest.raises(RuntimeError, match="died 3 times"):
                proposed(generator, grants, kill)


def test_the_search_reports_a_worker_that_died_and_finds_the_same() -> None:
    def run(workers: ForkedWorkers | None, kill: bool) -> SearchResult:
        spec = GeneratorSpec("counting", dict, ahead=4)  # type: ignore[arg-type]
        generators = {"scripted": Scripted(), "counting": Counting(seconds=0.02)}
        loop = SearchLoop(problem(), generators, specs=[spec], workers=workers)

        def pause() -> bool:
            if kill and workers is not None and loop.spent >= 12:
                for pid in workers.pids[: 1 if not killed else 0]:
                    killed.append(pid)
                    os.kill(pid, signal.SIGKILL)
            return False

        killed: list[int] = []
        result = loop.run(40, float("inf"), pause=pause)
        assert bool(killed) == kill
        return result

    alone = run(None, kill=False)
    with ForkedWorkers(2) as workers:
        killed = run(workers, kill=True)
    assert killed.archive.front() == alone.archive.front() and killed.steps == alone.steps
    assert not alone.warnings and "signal 9" in killed.warnings[0]


def test_a_cluster_does_the_same_turns_and_a_lost_worker_costs_its_turn() -> None:
    pytest.importorskip("distributed")
    grants = [3, 5, 1, 7]
    here = proposed(AheadGenerator(Counting(), 4, never), grants)
    with DaskWorkers("local:2") as workers:
        generator = AheadGenerator(Counting(seconds=0.02), 4, never, workers)

        def kill(turn: int) -> None:
            if turn == 2:
                workers.client.run(os._exit, 1, workers=[holder(workers)], on_error="ignore")

        assert proposed(generator, grants, kill) == here
        assert generator.warning is not None and "lost" in generator.warning


def holder(workers: DaskWorkers) -> str:
    """The address of the worker that has an actor."""
    [address] = [address for address, keys in workers.client.has_what().items() if keys]
    return str(address)


@pytest.mark.parametrize("scheduler", ["local:0", "local:many", "nowhere"])
def test_what_is_no_scheduler_is_refused(scheduler: str) -> None:
    pytest.importorskip("distributed")
    with pytest.raises(UsageError, match=r"local:N|tcp://"), DaskWorkers(scheduler):
        pass


def test_documents_are_the_same_for_any_number_of_jobs() -> None:
    task = problem(0.1)
    columns = dict(zip(task.names, task.inputs.T, strict=True)) | {"y": task.target}
    documents = []
    for jobs in (1, 3):
        generators = ["sparse", "evolution", "neighbours"]
        found = document(solve(columns, steps=30, jobs=jobs, generators=generators))
        del found["timing"]
        documents.append(json.dumps(found, sort_keys=True))
    assert documents[0] == documents[1]
    assert multiprocessing.active_children() == []


def test_the_environment_sets_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(JOBS_VARIABLE, "3")
    assert default_jobs() == 3
    monkeypatch.setenv(JOBS_VARIABLE, "many")
    with pytest.raises(UsageError, match="PHYSDIFFUSER_JOBS='many'"):
        default_jobs()


def test_inside_of_other_parallel_work_one_core_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(JOBS_VARIABLE, raising=False)
    assert default_jobs() in (1, usable_cores())
    forking = multiprocessing.get_context("fork")
    for pool in (ThreadPoolExecutor(1), ProcessPoolExecutor(1, mp_context=forking)):
        with pool:
            assert pool.submit(default_jobs).result(60) == 1


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_no_worker_outlives_the_program(tmp_path: Path, number: signal.Signals, code: int) -> None:
    task = problem(0.3)
    rng = np.random.default_rng(0)
    rows = [",".join(map(str, (*row, y))) for row, y in zip(task.inputs, rng.normal(size=60), strict=True)]
    table = tmp_path / "table.csv"
    table.write_text("\n".join(["a,b,y", *rows]) + "\n")
    program = subprocess.Popen(
        [sys.executable, "-m", "physdiffuser", "solve", str(table), "--jobs", "3", "--time", "100", "--json"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    workers: list[int] = []
    until = time.monotonic() + 60
    # The process for symbolic work is another program, and a session of its own.
    while len(workers) < 2 and time.monotonic() < until:
        time.sleep(0.05)
        workers = [pid for pid in in_session(program.pid) if pid != program.pid]
    assert len(workers) >= 2
    os.killpg(program.pid, number) if number == signal.SIGINT else program.send_signal(number)
    assert program.wait(20) == code
    until = time.monotonic() + 10
    while (left := in_session(program.pid)) and time.monotonic() < until:
        time.sleep(0.05)
    assert left == []


def in_session(session: int) -> list[int]:
    """Processes of a session that have not ended."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, *numbers = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(numbers[2]) == session and state != "Z":
                found.append(int(entry.name))
    return found
