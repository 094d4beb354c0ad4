"""Runs: every way a problem can end is a line, and no line is lost, doubled or trusted when it is torn."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import benchmark_fakes as fakes
import pytest

from benchmarks_feynman import executors, worker_process
from benchmarks_feynman.executors import run_dask, run_local
from benchmarks_feynman.results import Result, ResultFile, read_results
from benchmarks_feynman.runner import pending, run
from benchmarks_feynman.sampling import Table
from benchmarks_feynman.suites import select
from benchmarks_feynman.systems.answer import Answer
from benchmarks_feynman.tasks import Settings, Task, make_tasks, task_key
from benchmarks_feynman.workers import Worker
from physdiffuser.errors import FileError, UsageError
from physdiffuser.expressions import parse

SETTINGS = Settings(time=0.5, rows=50)


def tasks(*ids: str, settings: Settings = SETTINGS) -> list[Task]:
    return make_tasks(select(["fsred"], ids), [fakes.NAME], [0], [0.0], settings)


@pytest.fixture
def quick_kill(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "Worker", partial(Worker, solve_grace=1.0))


def local(jobs: int = 1) -> partial[object]:
    return partial(run_local, jobs=jobs, cores=1)


def by_id(results: list[Result]) -> dict[str, Result]:
    assert len({result["id"] for result in results}) == len(results)
    return {result["id"]: result for result in results}


@pytest.mark.usefixtures("quick_kill")
def test_every_way_a_problem_can_end_is_recorded_and_the_rest_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    asked = tasks(fakes.KILLED, fakes.ENDLESS, fakes.RAISING, fakes.NOTHING, fakes.WRONG, "I.6.2", "I.39.1")
    with ResultFile(path, resume=False) as results:
        found = by_id(run(asked, local(2), results))  # type: ignore[arg-type]
    assert by_id(read_results(path).results).keys() == found.keys() == {task.id for task in asked}

    assert found[fakes.KILLED]["status"] == "crashed"
    assert "SIGKILL while solving" in found[fakes.KILLED]["error"]
    assert found[fakes.ENDLESS]["status"] == "timeout"
    assert "time limit while solving" in found[fakes.ENDLESS]["error"]
    assert (found[fakes.RAISING]["status"], found[fakes.RAISING]["error"]) == (
        "error",
        "ValueError: no can do",
    )
    assert found[fakes.NOTHING]["status"] == "none"
    for name in (fakes.KILLED, fakes.ENDLESS, fakes.RAISING, fakes.NOTHING):
        assert not found[name]["recovered"] and not found[name]["confident_wrong"]
        assert found[name]["expression"] is None

    wrong = found[fakes.WRONG]
    assert (wrong["strict"], wrong["exact_numbers"], wrong["recovered"]) == ("different", False, False)
    assert wrong["srbench"] == "verified"  # a constant factor is free under that rule
    assert wrong["confident_wrong"]
    right = found["I.6.2"]
    assert (right["strict"], right["exact_numbers"], right["recovered"]) == ("verified", True, True)
    assert right["tree_distance"] == 0.0 and right["complexity"] == right["truth_complexity"]
    assert right["r2_test"] == right["r2_extrapolated"] == 1.0
    assert right["machine"]["cpus"] == os.cpu_count()


def test_units_reach_the_system_when_asked_for() -> None:
    with_units = run(tasks("I.39.1", settings=Settings(time=1, rows=50, units=True)), local(), None)  # type: ignore[arg-type]
    assert with_units[0]["details"]["units"]["V"] == "m^3"
    assert run(tasks("I.39.1"), local(), None)[0]["details"]["units"] is None  # type: ignore[arg-type]


def answered(task: Task) -> Result:
    """The result of a task that is handled in this process."""
    messages: list[dict[str, Any]] = []
    worker_process.handle(task, worker_process._Prepared(), messages.append)
    assert messages[-1]["stage"] == "done"
    return messages[-1]["result"]


def test_a_peer_is_judged_before_and_after_its_constants_are_snapped(monkeypatch: pytest.MonkeyPatch) -> None:
    def nearly(table: Table, task: Task, units: object) -> Answer:
        return Answer("approximate", parse("1.0000003*mu*Nn", table.names), 0.25)

    monkeypatch.setattr(fakes, "solve", nearly)
    (task,) = tasks("I.12.1", settings=replace(SETTINGS, snap_peers=True))
    found = answered(task)
    assert found["recovered"] and found["status"] == "exact"
    assert found["unsnapped"]["expression"] == "1.0000003*mu*Nn"
    assert found["unsnapped"]["strict"] == "different" and not found["unsnapped"]["recovered"]
    assert found["unsnapped"]["seconds"] == 0.25 <= found["seconds"]


def test_an_answer_that_cannot_be_snapped_is_kept_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> Answer:
        raise RecursionError("too deep")

    monkeypatch.setattr("benchmarks_feynman.systems.snapped.snapped", failing)
    (task,) = tasks("I.39.1", settings=replace(SETTINGS, snap_peers=True))
    found = answered(task)
    assert found["recovered"] and found["unsnapped"]["recovered"]
    assert found["details"]["snapping_error"] == "RecursionError: too deep"


def test_a_second_run_goes_on_where_the_first_stopped(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    with ResultFile(path, resume=False) as results:
        run(tasks("I.6.2"), local(), results)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="holds results already: add --resume"):
        ResultFile(path, resume=False)
    with ResultFile(path, resume=True) as results:
        asked = tasks("I.6.2", "I.39.1")
        assert [task.id for task in pending(asked, results)] == ["I.39.1"]
        assert len(run(asked, local(), results)) == 2  # type: ignore[arg-type]
    assert len(path.read_text().splitlines()) == 2
    # other settings are another problem
    with ResultFile(path, resume=True) as results:
        assert len(pending(tasks("I.6.2", settings=Settings(time=9)), results)) == 1


def test_lines_that_are_no_results_are_reported_by_number_and_run_again(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    with ResultFile(path, resume=False) as results:
        run(tasks("I.6.2", "I.39.1"), local(), results)  # type: ignore[arg-type]
    first, second = path.read_text().splitlines()
    torn = json.loads(second)["id"]
    path.write_text("\n".join([first, "[1]", '{"schema": 9}', '{"schema": 1}', second[: len(second) // 2]]))
    with ResultFile(path, resume=True) as results:
        messages = results.existing.problems
        assert [message.split(", line ")[1].split(":")[0] for message in messages] == ["2", "3", "4", "5"]
        assert "not JSON" in messages[3]
        asked = tasks("I.6.2", "I.39.1")
        assert [task.id for task in pending(asked, results)] == [torn]
        run(asked, local(), results)  # type: ignore[arg-type]
    # the incomplete line was removed before the new one began
    assert len(path.read_text().splitlines()) == 5
    assert len(read_results(path).problems) == 3
    assert by_id(read_results(path).results).keys() == {"I.6.2", "I.39.1"}


def test_going_on_removes_an_incomplete_last_line_even_if_nothing_is_left_to_run(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    with ResultFile(path, resume=False) as results:
        run(tasks("I.6.2"), local(), results)  # type: ignore[arg-type]
    line = path.read_bytes()
    for torn in (line[:-1], line + line[:3], line + line[: len(line) // 2]):
        path.write_bytes(torn)
        with ResultFile(path, resume=True) as results:
            assert run(tasks("I.6.2"), local(), results)  # type: ignore[arg-type]
        assert read_results(path).problems == [] and len(read_results(path).results) == 1
    path.write_bytes(line + b"notes without an end")
    with ResultFile(path, resume=True):
        pass
    assert path.read_bytes() == line + b"notes without an end"


def test_a_second_run_on_the_same_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    with ResultFile(path, resume=True), pytest.raises(FileError, match="another run is writing"):
        ResultFile(path, resume=True)
    ResultFile(path, resume=True).__exit__(None, None, None)


def test_a_run_without_results_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    with ResultFile(path, resume=False):
        assert path.exists()
    assert not path.exists()
    path.touch()
    with ResultFile(path, resume=True):
        pass
    assert path.exists()  # it was there before


def test_a_task_and_its_result_have_the_same_key() -> None:
    (task,) = tasks("I.6.2", settings=Settings(time=3, generators=("a", "b"), rows=10))
    document = json.loads(json.dumps(task.document()))
    assert task_key(document) == task.key
    assert Task.from_document(document) == task


def test_an_answer_whose_judge_dies_is_kept_with_verdicts_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "Worker", partial(Worker, judge_limit=0.0))
    (result,) = run(tasks("I.6.2"), local(), None)  # type: ignore[arg-type]
    assert result["expression"] is not None
    assert (result["strict"], result["srbench"], result["recovered"]) == ("unknown", "unknown", False)
    assert "killed at its time limit while judging" in result["judge_error"]


@pytest.fixture
def endless_run(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], dict[str, str]]]:
    """`evaluate` without a file named, in the middle of its third problem, which never ends."""
    count = tmp_path / "count"
    environment = {
        **os.environ,
        fakes.COUNT_VARIABLE: str(count),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    command = [sys.executable, "-m", "physdiffuser", "evaluate", "--peers", fakes.NAME, "--peers-only"]
    command += ["--jobs", "1", "--only", f"I.6.2,I.9.18,{fakes.ENDLESS}"]
    process = subprocess.Popen(
        command, env=environment, cwd=tmp_path, stderr=subprocess.PIPE, start_new_session=True
    )
    deadline = time.monotonic() + 120
    while not (count.exists() and fakes.ENDLESS in count.read_text()) and time.monotonic() < deadline:
        time.sleep(0.05)
    yield process, environment
    process.kill()
    process.wait(timeout=20)


Endless = tuple[subprocess.Popen[bytes], dict[str, str]]


def kept(tmp_path: Path) -> set[str]:
    """Ids in the result file that a run without `--results` makes."""
    (path,) = (tmp_path / "runs").glob("evaluate-*.jsonl")
    return {result["id"] for result in read_results(path).results}


def test_ctrl_c_keeps_what_is_there_and_leaves_no_process(endless_run: Endless, tmp_path: Path) -> None:
    process, environment = endless_run
    started = time.monotonic()
    os.kill(process.pid, signal.SIGINT)
    _, message = process.communicate(timeout=20)
    assert process.returncode == 130
    assert time.monotonic() - started < 5
    assert b"2 new results are in runs" in message and b"--resume" in message
    assert kept(tmp_path) == {"I.6.2", "I.9.18"}
    assert _workers(environment) == []


def test_a_run_that_is_killed_leaves_no_worker_behind(endless_run: Endless, tmp_path: Path) -> None:
    process, environment = endless_run
    assert len(_workers(environment)) == 1
    process.kill()
    process.wait(timeout=20)
    deadline = time.monotonic() + 20
    while _workers(environment) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert _workers(environment) == []
    assert kept(tmp_path) == {"I.6.2", "I.9.18"}


def _workers(environment: dict[str, str]) -> list[str]:
    """Worker processes that still carry this test's environment."""
    mark = environment[fakes.COUNT_VARIABLE].encode()
    alive = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (folder / "environ").read_bytes() and "worker_process" in (
                folder / "cmdline"
            ).read_text(errors="replace"):
                alive.append(folder.name)
        except OSError:
            continue
    return alive


def test_a_cluster_that_loses_a_worker_loses_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distributed = pytest.importorskip("distributed")
    monkeypatch.setenv(fakes.COUNT_VARIABLE, str(tmp_path / "count"))
    monkeypatch.setenv(fakes.DELAY_VARIABLE, "0.3")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    ids = [law.id for law in select(["fsred"], every=10) if law.id not in (fakes.KILLED, fakes.ENDLESS)]
    asked = tasks(*ids)
    path = tmp_path / "results.jsonl"
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
    )
    with cluster, ResultFile(path, resume=False) as results:
        killed: list[int] = []

        def kill_one(result: Result) -> None:
            if not killed:
                victim = next(iter(cluster.workers.values()))
                killed.append(victim.process.pid)
                os.kill(victim.process.pid, signal.SIGKILL)

        execute = partial(run_dask, scheduler=cluster.scheduler_address, cores=1)
        run(asked, execute, results, kill_one)
    assert killed
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert sorted(line["id"] for line in lines) == sorted(ids)
    assert all(line["status"] == "exact" for line in lines)
    # two cluster workers took part
    assert len({line.split()[1] for line in (tmp_path / "count").read_text().splitlines()}) >= 2
