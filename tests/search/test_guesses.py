"""Starting formulas: read, fitted, searched with, and reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from physdiffuser import PhysDiffuserRegressor, solve
from physdiffuser.cli.app import cli
from physdiffuser.core.solution import Solution
from physdiffuser.data.arrays import dataset_from_arrays
from physdiffuser.errors import UsageError
from physdiffuser.expressions import evaluate
from physdiffuser.report.documents.json_document import document, document_text
from physdiffuser.report.documents.solution_reader import solution_from_document
from physdiffuser.report.html import report_html
from physdiffuser.search.refinement.guesses import MAX_CONSTANTS, MAX_LENGTH, fitted_guesses, read_guess

RNG = np.random.default_rng(5)
T = np.linspace(0.0, 4.0, 60)
DECAY = 5.3 * np.exp(-0.71 * T) + 0.05 * RNG.normal(size=60)


def test_names_that_are_no_columns_are_free_constants() -> None:
    guess = read_guess("A*exp(-b*t) + A*G + pi", ["t"], {"G": 2.0})
    assert guess.constants == ("A", "b"), "each once, in order; G and pi are known"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A*exp(-b*t", "character 11: missing '\\)'"),
        ("A*expo(-b*t)", "character 3: unknown function 'expo'"),
        ("A*t[0]", "unexpected character '\\['"),
        ("__import__('os')", "unknown function '__import__'|unexpected character"),
        ("", "character 1: the formula ends too early"),
        ("t" + "+t" * MAX_LENGTH, f"a guess may have {MAX_LENGTH} at most"),
        ("+".join(f"k{i}" for i in range(MAX_CONSTANTS + 1)), "21 free constants"),
        ("N*2", "'N' is the target"),
    ],
)
def test_what_cannot_be_a_guess_is_refused_with_the_place(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        read_guess(text, ["t"], {}, target="N")
    assert str(caught.value).startswith("guess '")


@settings(max_examples=30, deadline=None)
@given(scale=st.floats(0.1, 50), rate=st.floats(0.1, 3), sign=st.sampled_from([1, -1]))
def test_constants_are_found_from_nothing(scale: float, rate: float, sign: int) -> None:
    target = sign * scale * np.exp(-rate * T)
    dataset = dataset_from_arrays(T[:, None], target, names=["t"])
    (guess,) = fitted_guesses(["A*exp(-b*t)"], dataset, {}, seed=0)
    assert guess.expression is not None
    assert np.allclose(evaluate(guess.expression, T[:, None]), target, rtol=1e-6, atol=1e-9 * scale)


@pytest.fixture(scope="module")
def solution() -> Solution:
    guesses = ["A*exp(-b*t)", "A*exp(-b*t) + c", "A/(1 + b*t)", "A - t*b", "log(t - 9)"]
    return solve({"t": T, "N": DECAY}, initial=guesses, steps=8)


def test_the_outcome_of_each_guess_is_stated(solution: Solution) -> None:
    assert solution.best is not None and "exp" in solution.best.text
    states = [guess.state for guess in solution.guesses]
    assert states == ["kept", "kept", "beaten", "beaten", "unusable"]
    kept, _, beaten, _, unusable = solution.guesses
    assert kept.rmse is not None and beaten.rmse is not None and kept.rmse < 0.1 < beaten.rmse
    assert beaten.sentence.startswith("beaten: the chosen law has another form (rms error ")
    assert unusable.expression is None and "finite" in unusable.sentence


def test_a_guess_that_lacks_a_term_is_improved() -> None:
    target = 2.0 * T + 0.3 * T**2 + 0.01 * RNG.normal(size=60)
    found = solve({"t": T, "s": target}, initial=["v*t"], steps=8)
    assert found.best is not None and found.best.rmse < 0.02
    assert found.guesses[0].state == "improved"
    found = solve({"t": T, "u": T[::-1] ** 2, "s": 3 * T}, initial=["v*t + w*u"], steps=3)
    assert found.guesses[0].state == "simplified"


def test_a_guess_finds_what_a_short_search_does_not() -> None:
    x = np.linspace(0.3, 6, 80)
    target = 2.1 * np.sin(1.3 * x + 0.4) / (1 + 0.2 * x**2) + 0.5 * np.exp(-0.3 * x)
    text = "A*sin(w*x + p)/(1 + k*x**2) + B*exp(-c*x)"
    found = solve({"x": x, "y": target}, initial=[text], steps=2)
    assert found.best is not None and found.best.r2 > 1 - 1e-9
    assert found.guesses[0].state == "kept"


def test_reports_and_documents_have_the_outcomes(solution: Solution) -> None:
    text = str(solution)
    assert "Guesses" in text and "A/(1 + b*t)" in text and "beaten: " in text
    assert "Starting formulas" in report_html(solution)
    content = json.loads(json.dumps(document(solution), allow_nan=False))
    assert [row["state"] for row in content["guesses"]] == [guess.state for guess in solution.guesses]
    assert solution_from_document(content).guesses == solution.guesses


def test_the_answer_predicts_and_is_exported_like_any_other(solution: Solution, tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text(document_text(document(solution)), encoding="utf-8")
    (tmp_path / "new.csv").write_text("t\n0\n1\n", encoding="utf-8")
    run, table = str(tmp_path / "result.json"), str(tmp_path / "new.csv")
    predicted = CliRunner().invoke(cli, ["predict", run, table])
    values = [float(line) for line in predicted.output.split()[1:]]
    assert solution.best is not None
    assert values == pytest.approx(evaluate(solution.best.expression, np.array([[0.0], [1.0]])))
    for language in ("python", "numpy", "c"):
        assert "exp" in CliRunner().invoke(cli, ["export", run, "--format", language]).output


def test_without_guesses_the_document_has_no_such_key() -> None:
    assert "guesses" not in document(solve({"t": T, "N": 2 * T}, steps=2))


def test_the_estimator_takes_them() -> None:
    law = PhysDiffuserRegressor(steps=5, initial=["A*exp(-b*x1)"]).fit(T[:, None], DECAY)
    assert law.solution_.guesses[0].state == "kept"
    with pytest.raises(UsageError, match="must be a list of formulas"):
        PhysDiffuserRegressor(steps=5, initial="A*x1").fit(T[:, None], DECAY)


def run(*arguments: str) -> Any:
    return CliRunner().invoke(cli, ["solve", *arguments])


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = [f"{t!r},{n!r}" for t, n in zip(T.tolist(), DECAY.tolist(), strict=True)]
    (tmp_path / "decay.csv").write_text("\n".join(["t,N", *lines]))
    return tmp_path


def test_the_command_takes_formulas_and_files_of_them(table: Path) -> None:
    (table / "formulas.txt").write_text("# usual decays\nA/(1 + b*t)\n\nA - b*t\n")
    done = run("decay.csv", "--guess", "A*exp(-b*t)", "--guess", "@formulas.txt", "--steps", "4", "--json")
    assert done.exit_code == 0, done.output
    guesses = json.loads(done.stdout)["guesses"]
    assert [row["text"] for row in guesses] == ["A*exp(-b*t)", "A/(1 + b*t)", "A - b*t"]


@pytest.mark.parametrize(
    ("guess", "code", "message"),
    [
        ("A*exp(", 2, "guess 'A*exp(': formula, character 7: the formula ends too early"),
        ("A*foo(t)", 2, "unknown function 'foo'"),
        ("@nothing.txt", 4, "cannot read 'nothing.txt'"),
        ("@empty.txt", 2, "holds no formula"),
    ],
)
def test_errors_of_the_command(table: Path, guess: str, code: int, message: str) -> None:
    (table / "empty.txt").write_text("# nothing\n")
    done = run("decay.csv", "--guess", guess, "--steps", "3", "--json")
    error = done.exception
    if isinstance(error, SystemExit) or error is None:
        assert done.exit_code == code and message in done.stderr
    else:
        assert getattr(error, "exit_code", None) == code and message in str(error)
