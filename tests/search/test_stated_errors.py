"""Stated errors are used as stated: chi-square, its warning, and intervals."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from physdiffuser.cli.app import cli
from physdiffuser.core.solution import Solution
from physdiffuser.pipeline import solve

ROWS = 40


def answer(stated: float, scale: float = 1.0, seed: int = 0) -> Solution:
    """Of rows whose errors are 0.1 to 0.4, stated to be `stated` times that, in units of `scale`."""
    rng = np.random.default_rng(seed)
    x = np.linspace(1, 5, ROWS)
    errors = 0.1 + 0.3 * rng.random(ROWS)
    y = 2.37 * x + 1.91 + errors * rng.standard_normal(ROWS)
    return solve(
        x,
        scale * y,
        names=["x"],
        target="y",
        errors=scale * stated * errors,
        steps=4,
        initial=[],
        plugins=False,
    )


def warned(solution: Solution) -> list[str]:
    return [text for text in solution.warnings if "chi-square" in text]


@pytest.mark.parametrize("scale", [1.0, 1e-60, 1e60])
def test_right_errors_have_a_chi_square_near_1_and_no_warning(scale: float) -> None:
    solution = answer(1.0, scale)
    best = solution.best
    assert best is not None and best.reduced_chi_square is not None
    assert 0.5 < best.reduced_chi_square < 1.6
    if scale == 1.0:  # in other units another form of the law may have more constants
        fitted = sum(not constant.is_set for constant in best.constants)
        assert best.degrees_of_freedom == ROWS - solution.test_rows - fitted
    assert not warned(solution)


def test_the_warning_says_in_which_direction_errors_are_wrong() -> None:
    assert "too small, or the law is not complete" in warned(answer(0.3))[0]
    assert "larger than the residuals show" in warned(answer(3.0))[0]


def test_intervals_are_those_of_the_errors_as_stated() -> None:
    """Wide if the errors are stated too large, whatever the residuals are."""
    widths = []
    for stated in (1.0, 3.0):
        best = answer(stated).best
        assert best is not None
        widths.append([c.high - c.low for c in best.constants if c.low is not None and c.high is not None])
    assert widths[0] and widths[1] == pytest.approx(3 * np.array(widths[0]), rel=1e-6)


def test_intervals_of_a_straight_line_are_those_of_weighted_least_squares() -> None:
    rng = np.random.default_rng(1)
    x, errors = np.linspace(1, 5, 20), np.linspace(0.5, 0.1, 20)
    y = 2.37 * x + errors * rng.standard_normal(20)
    best = solve(x, y, names=["x"], target="y", errors=errors, steps=4, operators=["mul"], plugins=False).best
    assert best is not None
    (constant,) = best.constants
    assert constant.high is not None and constant.low is not None
    expected = 1.959964 / np.sqrt(np.sum(np.square(x / errors)))
    assert (constant.high - constant.low) / 2 == pytest.approx(expected, rel=1e-5)


def test_the_chi_square_is_in_the_report_and_in_the_document(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    x = np.linspace(1, 5, ROWS)
    table = tmp_path / "table.csv"
    rows = [f"{a},{2.37 * a + 0.2 * b},0.2" for a, b in zip(x, rng.standard_normal(ROWS), strict=True)]
    table.write_text("\n".join(["x,y,dy", *rows]) + "\n")
    command = ["solve", str(table), "--target", "y", "--errors", "dy", "--steps", "4", "--no-plugins"]
    done = CliRunner().invoke(cli, [*command, "--out", str(tmp_path / "run")])
    assert done.exit_code == 0, done.output
    assert "Chi-square" in done.stdout and "degrees of freedom" in done.stdout
    assert "reduced χ²" in (tmp_path / "run" / "report.html").read_text()
    content = json.loads((tmp_path / "run" / "result.json").read_text())
    assert 0.4 < content["best"]["reduced_chi_square"] < 1.9
    unstated = CliRunner().invoke(
        cli, ["solve", str(table), "--target", "y", "--inputs", "x", *command[6:], "--json"]
    )
    assert json.loads(unstated.stdout)["best"]["reduced_chi_square"] is None
