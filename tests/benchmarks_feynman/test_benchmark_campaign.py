"""Campaigns: the plans' commands run the plans' problems, files join, tables say where they come from."""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import benchmark_fakes as fakes
import pytest

from benchmarks_feynman import campaign, running
from benchmarks_feynman.plans import PLANS, Plan, Stage
from benchmarks_feynman.report.plan_tables import block
from benchmarks_feynman.results import Result, parse_lines, read_results
from benchmarks_feynman.runner import to_result
from benchmarks_feynman.tasks import Settings, Task
from physdiffuser.cli import main as program

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def answer(task: Task, right: bool = True, **entries: Any) -> Result:
    """A result line of a task, as if it had run."""
    verdict = "verified" if right else "different"
    message = {
        "status": "exact" if right else "approximate",
        "expression": "x",
        "seconds": 2.0,
        "cpu_seconds": 1.0,
        "strict": verdict,
        "srbench": verdict,
        "exact_numbers": right,
        "recovered": right,
        "r2_test": 1.0,
        "complexity": 5,
        "details": {},
    }
    return {
        **to_result(task, {**message, **entries}),
        "commit": entries.get("commit", "one"),
        "finished": NOW.isoformat(),
    }


@pytest.mark.parametrize("plan", PLANS.values(), ids=str)
def test_the_command_of_a_stage_runs_its_problems(
    plan: Plan, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[Task] = []

    def catch(tasks: list[Task], *_: object, **__: object) -> list[Result]:
        asked[:] = tasks
        return []

    monkeypatch.setattr(running, "run_tasks", catch)
    monkeypatch.setattr("benchmarks_feynman.systems.check_system", lambda name: None)
    for stage in plan.stages:
        for share in (1, 3):
            words = stage.command(str(tmp_path / "out.jsonl"), share).split()
            assert words[0] == "physdiffuser"
            assert program(words[1:]) == 0
            assert {task.key for task in asked} == {task.key for task in stage.tasks(share)}, stage.name


def test_the_plans_hold_what_they_promise() -> None:
    def tables(plan: str, *stages: str) -> int:
        return sum(len(stage.tasks()) for stage in PLANS[plan].choose(stages))

    # three suites at two noises, and two more seeds on every fourth law
    assert tables("suites") == 2 * (120 + 120 + 20) + 2 * 2 * (30 + 30 + 5)
    assert tables("targets") == 8 * 120
    assert tables("targets", "noise-0-seeds") == 2 * 30
    assert tables("peers") == 2 * 4 * 30
    assert all(
        task.settings.cores == 2 and task.settings.rows_for(law) == 10_000
        for stage in PLANS["targets"].choose(["noise-0.01"])
        for task in stage.tasks(40)
        for law in [campaign_law(task)]
    )


def campaign_law(task: Task) -> Any:
    from benchmarks_feynman.suites import select

    (law,) = select([task.suite], [task.id])
    return law


def small_plan(*systems: str) -> Plan:
    """Three laws at two noises, in milliseconds."""
    settings = Settings(time=0.5, rows=50)
    stages = [
        Stage(f"fsred-{noise:g}", ("fsred",), settings, noise, every=40, systems=systems)
        for noise in (0.0, 0.01)
    ]
    return Plan("suites", tuple(stages))


def test_a_campaign_runs_resumes_and_writes_its_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    count = tmp_path / "count"
    monkeypatch.setenv(fakes.COUNT_VARIABLE, str(count))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    monkeypatch.setattr(campaign, "find_plan", lambda name: small_plan(fakes.NAME))
    document = tmp_path / "page.md"
    document.write_text("before\n<!-- campaign:suites -->\nold\n<!-- /campaign:suites -->\nafter\n")
    words = ["--plan", "suites", "--folder", str(tmp_path), "--document", str(document), "--jobs", "1"]
    assert campaign.main([*words, "--stage", "fsred-0"]) == 0
    text = document.read_text()
    assert text.startswith("before\n<!-- campaign:suites -->\n") and text.endswith("suites -->\nafter\n")
    assert "\n    python -m benchmarks_feynman.campaign --plan suites\n" in text  # a block of code
    assert "old" not in text and "3/3, 100.0 %" in text and "# 3 of 3" in text
    # stopped in the middle of a line, it goes on: what is whole is not run again
    path = tmp_path / "suites.jsonl"
    path.write_text(path.read_text()[:-20])
    assert campaign.main(words) == 0
    assert "line 3: not JSON" in capsys.readouterr().err
    assert len(read_results(path).results) == 6
    assert len(count.read_text().splitlines()) == 3 + 1 + 3
    # the tables alone, from the file
    document.write_text("<!-- campaign:suites --><!-- /campaign:suites -->")
    assert campaign.main([*words, "--tables-only"]) == 0
    assert len(count.read_text().splitlines()) == 7
    assert document.read_text().count("3/3, 100.0 %") >= 2


def test_of_two_lines_for_one_problem_the_newest_counts_in_either_order() -> None:
    (task, *_) = small_plan("physdiffuser").stages[0].tasks()
    old = answer(task, right=False)
    new = {**answer(task), "finished": (NOW + timedelta(seconds=1)).isoformat()}
    lines = [json.dumps(line).encode() for line in (old, new)]
    for order in (lines, lines[::-1]):
        (kept,) = parse_lines(order, "file").results
        assert kept["recovered"]


def test_renewing_runs_again_what_another_commit_measured(tmp_path: Path) -> None:
    tasks = small_plan("physdiffuser").stages[0].tasks()
    path = tmp_path / "out.jsonl"
    path.write_text("".join(json.dumps(answer(task)) + "\n" for task in tasks))
    ran: list[list[Task]] = []

    def execute(missing: Any) -> Any:
        ran.append(list(missing))
        return iter([])

    running.run_tasks(tasks, execute, path, resume=True, quiet=True)
    assert ran == []  # everything is there
    running.run_tasks(tasks, execute, path, resume=True, quiet=True, renew=True)
    assert ran == [tasks]


def test_tables_name_commits_failures_and_wrong_claims() -> None:
    plan = PLANS["suites"]
    first, second, third, *others = plan.stages[0].tasks(10)
    results = [answer(task) for task in others]
    results.append(answer(first, commit="two"))
    results.append(answer(second, right=False, status="exact", confident_wrong=True))
    results.append(answer(third, right=False, status="timeout", expression=None, seconds=None, error="late"))
    text = block(plan, results, Path("suites.jsonl"))
    assert "several commits (tables each): `one` (11), `two` (1)" in text
    assert "12 of 120" in text and "10/12, 83.3 %" in text
    assert f"not recovered: {second.id}, {third.id}." in text
    assert f"1 timeout ({third.id})" in text
    assert f"1 confidently wrong (fsred {second.id})" in text
    assert "on a processor for 50 % of their time" in text
    assert block(plan, [], Path("suites.jsonl")) == "*Not run yet.*"


def test_targets_stand_beside_what_was_measured() -> None:
    plan = PLANS["targets"]
    results = [answer(task) for task in plan.choose(["noise-0.1"])[0].tasks(4)]
    results[0] |= {"srbench": "different", "recovered": False}
    (row,) = [
        line
        for line in block(plan, results, Path("targets.jsonl")).splitlines()
        if line.startswith("| noise 0.1 |")
    ]
    assert "| 75 of 120 | 29 of 30 run (97 %), " in row and "| 2.00 s | 30 s |" in row


def test_peers_stand_beside_us_with_and_without_snapping() -> None:
    plan = PLANS["peers"]
    mine = [answer(task, seconds=0.5) for task in plan.choose(["own-0"])[0].tasks(10)]
    raw = {"expression": "y", "recovered": False, "strict": "different", "complexity": 30}
    theirs = [
        answer(task, seconds=20.0, unsnapped=raw, details={"first_exact_seconds": 5.0})
        for task in plan.choose(["pyoperon-0"])[0].tasks(10)
    ]
    theirs[0] |= answer(plan.choose(["pyoperon-0"])[0].tasks(10)[0], right=False, status="timeout")
    text = block(plan, [*mine, *theirs], Path("peers.jsonl"))
    assert "The 3 laws that all systems with results have run" in text
    assert "| pyoperon, as answered | 0/3" in text and "| pyoperon, snapped | 2/3" in text
    # 20 s against 0.5 s; the first exact fit after 5 s; complexities 5, 5 and 30
    assert "| pyoperon | 2 | 1 | 0 | 40 (40-40, 2 laws) | 10 (10-10, 2 laws) | 5 / 5 / 30 |" in text
    assert f"1 killed at the limit ({theirs[0]['id']})" in text


def test_development_rates_are_told_by_tag() -> None:
    plan = PLANS["dev"]
    answers = [answer(task) for task in plan.stages[1].tasks(3)]
    text = block(plan, answers, Path("dev.jsonl"))
    assert (
        f"| all | {len(answers)}/{len(answers)}, 100.0 %" in text
        and "| few-rows |" in text
        and "noise 0.01: form" in text
    )


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--plan", "suite"], 2, "choose one of suites, peers, targets, dev"),
        (["--plan", "targets", "--stage", "noise-0.02"], 2, "did you mean noise-0.01"),
        (["--plan", "dev", "--document", "{}/page.md"], 3, "does not hold <!-- campaign:dev -->"),
        (["--plan", "dev", "--folder", "{}", "--tables-only"], 4, "cannot read the results"),
        (["--jobs", "0", "--plan", "dev"], 2, "--jobs"),
    ],
)
def test_bad_input_is_told_before_anything_runs(
    words: list[str], code: int, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "page.md").write_text("no markers")
    assert campaign.main([word.format(tmp_path) for word in words]) == code
    assert message in capsys.readouterr().err


def test_the_listing_runs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert campaign.main(["--plan", "peers", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 8 and all("--snap-peers" in line for line in lines)
