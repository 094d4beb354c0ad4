"""Suggested measurements as a user meets them: Python, JSON, terminal, page; ranges and their errors."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from physdiffuser import solve
from physdiffuser.cli import main
from physdiffuser.core.solution import Solution
from physdiffuser.errors import UsageError
from physdiffuser.expressions import evaluate
from physdiffuser.report.documents.json_document import document
from physdiffuser.report.html import report_html
from physdiffuser.report.text.terminal import render

S = np.array([0.1, 0.2, 0.3, 0.5, 0.8, 1.0, 1.2])
V = np.array([0.311, 0.59, 0.842, 1.262, 1.72, 2.03, 2.2])


@pytest.fixture(scope="module")
def solution() -> Solution:
    """Saturation, measured only where it begins."""
    return solve(S, V, names=["S"], target="v", steps=6, suggest_next=3, suggest_range={"S": (0.05, 10)})


def test_the_first_point_lies_where_the_laws_part(solution: Solution) -> None:
    found = solution.next_measurements
    assert found is not None and len(found.points) == 3 and len(found.laws) >= 2
    assert found.ranges == ((0.05, 10.0),)
    assert solution.best is not None and found.laws[0] == solution.best.expression
    first = found.points[0]
    # The table ends at 1.2; a new measurement there would hardly tell the laws apart.
    assert first.inputs[0] > 3.0
    assert first.separation > 10.0
    assert 0 < first.noise < 0.2
    for law, value in zip(found.laws, first.values, strict=True):
        assert evaluate(law, np.array([first.inputs]))[0] == pytest.approx(value)
    one, other = first.between
    error = np.sqrt(first.noise**2 + first.errors[one] ** 2 + first.errors[other] ** 2)
    assert first.separation == pytest.approx(abs(first.values[one] - first.values[other]) / error)


def test_without_a_range_points_lie_within_the_table() -> None:
    found = solve(S, V, names=["S"], target="v", steps=3, suggest_next=2).next_measurements
    assert found is not None and found.points
    assert all(0.1 <= point.inputs[0] <= 1.2 for point in found.points)


def test_they_are_in_every_report(solution: Solution) -> None:
    content = document(solution)["next_measurements"]
    assert json.loads(json.dumps(content, allow_nan=False)) == content
    found = solution.next_measurements
    assert found is not None
    assert [law["expression"] for law in content["laws"]] == list(found.texts)
    assert content["ranges"] == {"S": [0.05, 10.0]}
    assert content["points"][0]["inputs"] == {"S": found.points[0].inputs[0]}
    assert len(content["points"][0]["predictions"]) == len(found.laws)
    text = render(solution)
    assert "What to measure next" in text and f"{found.points[0].inputs[0]:g}" in text
    page = report_html(solution)
    assert 'id="next"' in page and "Where the laws differ along S" in page


def test_nothing_is_said_unless_it_was_asked_for() -> None:
    silent = solve(S, V, names=["S"], target="v", steps=3)
    assert silent.next_measurements is None
    assert "next_measurements" not in document(silent)
    assert "measure next" not in render(silent)
    assert 'id="next"' not in report_html(silent)


def test_one_law_leaves_nothing_to_tell_apart() -> None:
    x = np.linspace(1, 5, 30)
    found = solve(x, 3 * x**2, names=["x"], target="y", steps=3, suggest_next=2)
    assert found.status == "exact" and found.next_measurements is not None
    assert found.next_measurements.points == ()
    assert "nothing to tell apart" in render(found)
    assert "nothing to tell apart" in report_html(found)


def test_tables_of_extreme_magnitudes_have_the_same_points(solution: Solution) -> None:
    scale = 2.0**-300
    ranges = {"S": (0.05 * scale, 10 * scale)}
    tiny = solve(S * scale, V, names=["S"], target="v", steps=6, suggest_next=3, suggest_range=ranges)
    found = tiny.next_measurements
    assert found is not None and solution.next_measurements is not None
    assert found.ranges == ((0.05 * scale, 10 * scale),)
    for law, value in zip(found.laws, found.points[0].values, strict=True):
        assert evaluate(law, np.array([found.points[0].inputs]))[0] == pytest.approx(value)
    assert found.points[0].inputs[0] > 3.0 * scale


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"suggest_range": "x=0:1"}, "give suggest_next"),
        ({"suggest_next": 2, "suggest_range": "x=0:1"}, "no input; inputs are S"),
        ({"suggest_next": 2, "suggest_range": "S"}, "write x=0:10"),
        ({"suggest_next": 2, "suggest_range": "S=1"}, "two numbers"),
        ({"suggest_next": 2, "suggest_range": "S=5:1"}, "smaller end comes first"),
        ({"suggest_next": 2, "suggest_range": {"S": (0, np.inf)}}, "0 to inf"),
        ({"suggest_next": -1}, "whole number from 0"),
        ({"suggest_next": 1.5}, "whole number from 0"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        solve(S, V, names=["S"], target="v", steps=1, **options)


def test_the_command_prints_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "table.csv"
    table.write_text("S,v\n" + "".join(f"{s},{v}\n" for s, v in zip(S, V, strict=True)))
    arguments = ["solve", str(table), "--steps", "3", "--json", "--quiet", "--suggest-next", "2"]
    assert main([*arguments, "--suggest-range", "S=0.05:10"]) == 0
    points = json.loads(capsys.readouterr().out)["next_measurements"]["points"]
    assert len(points) == 2
