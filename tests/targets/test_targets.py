"""Several targets of one table: laws, shared parts, ties, JSON, `predict`, `export`, the estimator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from physdiffuser import PhysDiffuserRegressor
from physdiffuser.cli import main
from physdiffuser.core.solution import ConstantEstimate, Equation, Solution
from physdiffuser.data.dataset import Column, Dataset
from physdiffuser.errors import DataError, UsageError
from physdiffuser.expressions import parse
from physdiffuser.report.documents.json_document import document_text
from physdiffuser.report.documents.solution_reader import solution_from_document
from physdiffuser.targets.answer import TargetSolutions, targets_document
from physdiffuser.targets.parts import proposals, shared_parts
from physdiffuser.targets.solving import solve_targets
from physdiffuser.targets.ties import find_ties

RNG = np.random.default_rng(1)
T = np.linspace(0.1, 8, 60)
Q = RNG.uniform(1, 3, 60)
A = 3.1 * np.exp(-0.42 * T) * Q + 0.02 * RNG.normal(size=60)
B = 5.0 * (1 - np.exp(-0.42 * T)) + 0.02 * RNG.normal(size=60)
TABLE = {"t": T, "q": Q, "a": A, "b": B}


@pytest.fixture(scope="module")
def found() -> TargetSolutions:
    return solve_targets(TABLE, targets=["a", "b"], steps=6)


def test_each_target_is_solved_and_the_others_are_no_inputs(found: TargetSolutions) -> None:
    assert list(found) == ["a", "b"] and len(found) == 2
    assert found["a"].columns == found["b"].columns == ("t", "q")
    for target, data in (("a", A), ("b", B)):
        best = found[target].best
        assert best is not None
        assert "exp(" in best.text and best.rmse < 0.03
        assert best.rmse == pytest.approx(float(np.sqrt(np.mean((data - _predicted(found, target)) ** 2))))


def _predicted(found: TargetSolutions, target: str) -> Any:
    points = found[target].fit_points
    assert points is not None
    return points.prediction


def test_a_constant_that_agrees_is_tied_and_said_so(found: TargetSolutions) -> None:
    (tie,) = found.ties
    assert {place.target for place in tie.places} == {"a", "b"}
    assert tie.value == pytest.approx(-0.42, abs=3 * tie.sigma)
    for place in tie.places:
        best = found[place.target].best
        assert best is not None
        (constant,) = [one for one in best.constants if one.name == place.name]
        assert constant.value == tie.value and constant.sigma == pytest.approx(tie.sigma)
        assert repr(tie.value) in best.text
        assert any("agree within their errors and are tied" in text for text in best.verification)
        assert best.derivation[-1].startswith("constants tied: ")
        assert best in found[place.target].pareto
    assert any("share exp(c1*t)" in sentence for sentence in found.sentences)


def test_the_document_holds_ordinary_documents(found: TargetSolutions) -> None:
    content = json.loads(document_text(targets_document(found)))
    assert content["schema"] == 2
    assert content["shared"] == [{"expression": "exp(c1*t)", "targets": ["a", "b"]}]
    assert {one["target"] for one in content["tied"][0]["constants"]} == {"a", "b"}
    for target in ("a", "b"):
        again = solution_from_document(content["targets"][target])
        assert again.best is not None and again.target == target
    with pytest.raises(UsageError, match="laws of several targets"):
        solution_from_document(content)


def _law(target: str, text: str, values: list[tuple[float, float]]) -> Solution:
    expression = parse(text, ["x"])
    constants = tuple(
        ConstantEstimate(f"c{number}", value, value - sigma, value + sigma, "", False, value, sigma)
        for number, (value, sigma) in enumerate(values, 1)
    )
    covariance = tuple(tuple(row) for row in np.diag([sigma**2 for _, sigma in values]).tolist())
    best = Equation(expression, text, "", 5, 0.1, 0.9, 0.1, constants=constants, covariance=covariance)
    return Solution(target, "approximate", best, (best,), ("x",), ("x",), {})


def test_arbitrary_constants_are_tied_only_when_chance_is_excluded() -> None:
    loose = {
        "a": _law("a", "1.23456*x + 7.00001", [(1.23456, 0.05), (7.00001, 0.1)]),
        "b": _law("b", "1.25456/x", [(1.25456, 0.05)]),
    }
    assert find_ties(loose) == ((), {})
    sharp = {
        "a": _law("a", "1.234561*x + 7.00001", [(1.234561, 1e-5), (7.00001, 0.1)]),
        "b": _law("b", "1.234567/x", [(1.234567, 2e-5)]),
    }
    ties, tied = find_ties(sharp)
    (tie,) = ties
    weights = np.array([1e10, 0.25e10])
    assert tie.value == pytest.approx(np.average([1.234561, 1.234567], weights=weights), rel=1e-12)
    assert tie.sigma == pytest.approx(weights.sum() ** -0.5)
    assert tie.chi_square == pytest.approx(6e-6**2 / (1e-10 + 4e-10))
    assert tied["a"].values[1] == 7.00001


def test_constants_that_differ_are_not_tied() -> None:
    apart = {
        "a": _law("a", "3.00001*exp(-0.40001*x)", [(3.00001, 0.01), (0.40001, 1e-3)]),
        "b": _law("b", "5.00001*exp(-0.41001*x)", [(5.00001, 0.01), (0.41001, 1e-3)]),
    }
    assert find_ties(apart) == ((), {})
    assert [part.text for part in shared_parts(apart)]


def test_parts_of_one_law_are_proposed_to_another() -> None:
    x = np.linspace(0.5, 4, 50)
    y = 2.5 + 0.7 * np.sqrt(1 + x**2)
    dataset = Dataset(x[:, None], y, (Column("x", "x"),), Column("y", "y"))
    texts = proposals([(parse("3*sqrt(1 + x**2)*x", ["x"]), ("x",))], dataset, 0)
    errors = [float(np.abs(np.asarray(_values(text, x)) - y).max()) for text in texts]
    assert min(errors) < 1e-6
    assert proposals([(parse("sqrt(1 + z**2)", ["z"]), ("z",))], dataset, 0) == []


def _values(text: str, x: Any) -> Any:
    from physdiffuser.expressions import evaluate

    return evaluate(parse(text, ["x"]), x[:, None])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"targets": ["a", "z"]}, UsageError, "has no column 'z'"),
        ({"targets": ["a", "a"]}, UsageError, "'a' is named twice"),
        ({"targets": ["a", "b"], "inputs": ["t", "b"]}, UsageError, "cannot"),
        ({"targets": "ab"}, UsageError, "must be a list of names"),
        ({"targets": []}, UsageError, "no target is named"),
        ({"y": np.ones(60), "targets": ["a"]}, DataError, "one column for each target"),
        ({"y": np.ones((60, 2)), "targets": ["q", "r"]}, UsageError, "the name of another column"),
        ({"y": np.ones((59, 2))}, DataError, "y has 59 rows"),
    ],
)
def test_bad_requests(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    table = {name: values for name, values in TABLE.items() if "y" not in arguments or name in "tq"}
    with pytest.raises(error, match=message):
        solve_targets(table, steps=1, **arguments)


def test_the_command_line_from_solve_to_export(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    pd.DataFrame(TABLE).to_csv("ab.csv", index=False)

    def run(*words: str) -> tuple[int, str, str]:
        code = main(list(words))
        return code, *capfd.readouterr()

    code, report, _ = run("solve", "ab.csv", "--target", "a,b", "--steps", "4", "--out", "run")
    assert code == 0
    assert "Target a" in report and "Target b" in report and "In common" in report
    assert (tmp_path / "run" / "a" / "report.html").is_file()
    page = (tmp_path / "run" / "report.html").read_text()
    assert '<a href="a/report.html">' in page and "are tied" in page
    lines = run("predict", "run", "ab.csv")[1].splitlines()
    assert lines[0] == "a,b"
    values = np.array([line.split(",") for line in lines[1:]], float)
    assert np.abs(values - np.stack([A, B], axis=1)).max() < 0.1
    assert run("predict", "run", "ab.csv", "--target", "b")[1].splitlines()[0] == "b"
    assert "exp" in run("export", "run", "--target", "a")[1]
    for words, message in (
        (["export", "run"], "name one with --target, of 'a', 'b'"),
        (["predict", "run", "ab.csv", "--row", "1"], "name one with --target"),
        (["predict", "run", "ab.csv", "--target", "c"], "has no target 'c'"),
        (["solve", "ab.csv", "--target", "a,a"], "is named twice"),
    ):
        code, _, refused = run(*words)
        assert code == 2 and message in refused
    code, text, notes = run(
        "solve", "ab.csv", "--target", "a,b", "--steps", "1", "--out", "run", "--resume", "--json"
    )
    assert "target 'a': going on from" in notes
    assert set(json.loads(text)["targets"]) == {"a", "b"}


def test_the_estimator_takes_several_targets() -> None:
    X = pd.DataFrame({"t": T, "q": Q})
    y = pd.DataFrame({"a": A, "b": B})
    law = PhysDiffuserRegressor(steps=4).fit(X, y)
    assert list(law.targets_) == ["a", "b"]
    assert law.targets_["a"].best_.text
    predicted = law.predict(X)
    assert predicted.shape == (60, 2) and np.abs(predicted - y.to_numpy()).max() < 0.1
    assert law.score(X, y) > 0.99
    frame = law.set_output(predict="pandas").predict(X)
    assert list(frame.columns) == ["a", "b"]
    with pytest.raises(UsageError, match=r"fitted to 2 targets: use targets_\['a'\]"):
        _ = law.best_
    law.set_output(predict="default").fit(X, A)
    assert law.best_.text and not hasattr(law, "targets_")


def test_a_template_is_used_for_each_target() -> None:
    only: dict[str, Any] = {"operators": ["add", "mul", "pow"], "generators": ["enumeration"], "steps": 1}
    table = {"t": T, "q": Q, "a": 3 * Q + T**2, "b": 2 * Q + 4 * T**2}
    several = solve_targets(table, targets=["a", "b"], template="k*q + f(t)", **only).solutions
    for solution, slope in zip(several.values(), (3.0, 2.0), strict=True):
        assert solution.template is not None and solution.template.functions["f"].endswith("t**2")
        assert solution.template.constants["k"] == pytest.approx(slope)
        assert not solution.warnings
