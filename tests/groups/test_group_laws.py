"""Tables with groups, from the file to the report, the document, exports and predictions."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from physdiffuser import PhysDiffuserRegressor, solve
from physdiffuser.cli.app import cli
from physdiffuser.core.solution import Solution
from physdiffuser.data.loading import load_dataset, read_labels
from physdiffuser.data.statements.groups import group_texts
from physdiffuser.errors import DataError, UsageError
from physdiffuser.report.documents.json_document import document
from physdiffuser.report.documents.solution_reader import solution_from_document
from physdiffuser.report.html import report_html

RNG = np.random.default_rng(2)
LABELS = ("treated", "untreated", "control")
SCALE = {"treated": 2.0, "untreated": 5.0, "control": -1.5}
TABLE = pd.DataFrame({"x": RNG.uniform(1, 5, 90), "state": np.tile(LABELS, 30)})
TABLE["y"] = TABLE["state"].map(SCALE) * TABLE["x"] ** 2 + 0.7
PUROMYCIN = Path(__file__).parents[2] / "examples" / "puromycin.csv"


@pytest.fixture(scope="module")
def solution() -> Solution:
    return solve(TABLE, target="y", groups="state", steps=25)


def test_the_law_has_one_form_and_the_constants_are_divided(solution: Solution) -> None:
    best = solution.best
    assert best is not None and solution.status == "exact" and best.verdict == "verified"
    assert best.text == "p1*x**2 + 0.7"
    assert {label: round(one[0].value, 6) for label, one in best.groups.items()} == SCALE
    assert best.constants == (), "0.7 is proved by the digits, and no longer fitted"
    assert solution.groups is not None and solution.groups.labels == LABELS


def test_reports_show_the_constants_of_each_group(solution: Solution) -> None:
    text = str(solution)
    assert "p1 differs by state; all other numbers are shared" in text
    for label in LABELS:
        assert any(line.strip().startswith(label) for line in text.splitlines())
    page = report_html(solution)
    assert "Constants of the groups" in page and "untreated" in page
    assert solution._repr_html_() is not None


def test_the_document_has_the_groups_and_is_read_back(solution: Solution) -> None:
    content = json.loads(json.dumps(document(solution), allow_nan=False))
    best = content["best"]
    assert set(best["groups"]) == set(LABELS)
    assert best["groups"]["treated"]["p1"] == pytest.approx(2.0)
    ends = best["group_intervals"]["treated"]["p1"]
    assert ends["low"] <= best["groups"]["treated"]["p1"] <= ends["high"]
    assert content["groups"] == {"columns": ["state"], "constants": ["p1"]}
    assert [row["name"] for row in content["inputs"]] == ["x"]
    again = solution_from_document(content)
    assert again.names == ("x", "p1") and again.groups == solution.groups
    assert again.best is not None and again.best.expression == solution.best.expression  # type: ignore[union-attr]
    assert again.best.groups["control"][0].value == pytest.approx(-1.5)


def test_groups_left_out_in_turn_are_reported() -> None:
    table = TABLE.assign(y=TABLE["y"] + 0.1 * RNG.normal(size=90))
    found = solve(
        table, target="y", groups="state", steps=1, operators=["add", "mul", "pow"], max_complexity=7
    )
    assert found.best is not None
    sentences = [text for text in found.best.verification if text.startswith("groups: ")]
    assert len(sentences) == 1 and "with each group left out in turn" in sentences[0]
    assert found.best.verdict == "unknown", "no probability is known for laws of groups"


@pytest.mark.slow
def test_of_puromycin_the_half_saturation_is_shared() -> None:
    found = solve(str(PUROMYCIN), target="rate", groups=["state"], steps=30)
    assert found.best is not None and found.best.text.startswith("p1*conc/(conc + 0.057")
    assert found.best.groups["treated"][0].value == pytest.approx(209, abs=2)
    assert found.best.groups["untreated"][0].value == pytest.approx(167, abs=2)
    (half,) = found.best.constants
    assert half.low is not None and half.high is not None and half.low < 0.058 < half.high


def test_the_estimator_fits_and_predicts_groups() -> None:
    law = PhysDiffuserRegressor(steps=25).fit(TABLE[["x"]], TABLE["y"], groups=TABLE["state"])
    assert law.solution_.groups.columns == ("state",)
    fresh = pd.DataFrame({"x": [2.0, 2.0, 3.0]})
    assert np.allclose(law.predict(fresh, groups=["treated", "control", "untreated"]), [8.7, -5.3, 45.7])
    with pytest.raises(DataError, match="Known groups: 'treated', 'untreated', 'control'"):
        law.predict(fresh, groups=["treated", "other", "control"])
    with pytest.raises(UsageError, match="has groups: give groups="):
        law.predict(fresh)
    with pytest.raises(DataError, match="2 groups for 3 rows"):
        law.predict(fresh, groups=["treated", "control"])


def test_numbers_can_be_groups() -> None:
    codes = TABLE["state"].map({label: number for number, label in enumerate(LABELS)})
    found = solve(TABLE[["x"]], TABLE["y"], groups=codes.to_numpy(), steps=1, operators=["add", "mul", "pow"])
    assert found.best is not None and set(found.best.groups) == {"0", "1", "2"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    TABLE.to_csv("table.csv", index=False)
    pd.DataFrame({"x": [2.0, 3.0], "state": ["treated", "untreated"]}).to_csv("new.csv", index=False)
    pd.DataFrame({"x": [2.0], "state": ["other"]}).to_csv("other.csv", index=False)
    return tmp_path


def run(*arguments: str) -> Any:
    done = CliRunner().invoke(cli, arguments)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        return getattr(done.exception, "exit_code", None), str(done.exception)
    return done.exit_code, done.output


def test_the_command_solves_predicts_and_exports(folder: Path) -> None:
    code, _ = run("solve", "table.csv", "--target", "y", "--group", "state", "--steps", "20", "--out", "run")
    assert code == 0
    code, output = run("predict", "run", "new.csv")
    assert code == 0
    assert [float(line) for line in output.strip().splitlines()[-2:]] == pytest.approx([8.7, 45.7])
    code, message = run("predict", "run", "other.csv")
    assert code == 3 and "the group 'other' of state was not in the table" in message
    for language in ("python", "c", "latex"):
        code, output = run("export", "run", "--format", language)
        assert code == 0
        if language != "latex":
            assert "untreated" in output and "p1" in output, "the table of constants is part of the code"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--group", "stat"), 2, "--group: table.csv has no column 'stat'. Did you mean 'state'?"),
        (("--group", "y"), 2, "--group: 'y' is the target"),
        (("--group", "x", "--inputs", "x"), 2, "--group: 'x' is an input"),
        (("--group", "x"), 3, "there is no column of numbers"),
    ],
)
def test_what_cannot_be_a_group_is_refused(
    folder: Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    found, text = run("solve", "table.csv", "--target", "y", "--steps", "3", "--json", *arguments)
    assert found == code and message in text


def test_too_few_rows_are_refused() -> None:
    few = TABLE.assign(state=["lonely", *TABLE["state"][1:]])
    with pytest.raises(DataError, match=r"1 group with fewer than 3 rows.*'lonely'"):
        solve(few, target="y", groups="state", steps=3)
    with pytest.raises(DataError, match="all rows are of one group"):
        solve(TABLE.assign(state="one"), target="y", groups="state", steps=3)


def test_numbers_and_text_can_be_labels_of_one_column(folder: Path) -> None:
    labels = {"treated": "1", "untreated": "02.0", "control": "none"}
    TABLE.assign(state=TABLE["state"].map(labels)).to_csv("mixed.csv", index=False)
    frame = TABLE.assign(state=TABLE["state"].map({"treated": 1, "untreated": 2.0, "control": "none"}))
    for source in ("mixed.csv", frame):
        groups = load_dataset(source, target="y", groups=["state"]).groups
        assert groups is not None and set(groups.labels) == {"1", "2", "none"}
        assert set(read_labels(source, ["state"])) == {"1", "2", "none"}
    truth = TABLE.assign(state=TABLE["state"] == "treated")
    truth.to_csv("truth.csv", index=False)
    for source in ("truth.csv", truth):
        assert set(read_labels(source, ["state"])) == {"true", "false"}
    assert set(group_texts(truth["state"])) == {"true", "false"}


def test_a_column_without_effect_does_not_hide_a_usual_law() -> None:
    random = np.random.default_rng(4)
    dose, patient = np.tile([1.0, 3, 10, 30, 100, 300], 6), np.repeat(list("ABC"), 12)
    half = np.repeat([8.0, 15.0, 31.0], 12)
    response = 90 * dose / (half + dose) + random.normal(size=36)
    table = {"dose": dose, "age": random.uniform(20, 80, 36), "patient": patient, "response": response}
    found = solve(table, target="response", groups="patient", steps=5)
    assert found.best is not None and re.fullmatch(r"[89]\d[.\d]*\*dose/\(p1 \+ dose\)", found.best.text)


def test_rates_of_groups_are_positive_and_a_small_group_does_not_prevent_a_test_set() -> None:
    random = np.random.default_rng(5)
    codes = np.repeat([0, 1, 2], [30, 25, 6])
    t = random.uniform(0, 4, 61)
    y = np.array([2.0, 3.0, 5.0])[codes] * np.exp(-np.array([0.5, 0.9, 1.4])[codes] * t)
    found = solve(
        *(t, y + 0.02 * random.normal(size=61)), names=["t"], groups=codes, steps=1, operators=["mul", "exp"]
    )
    assert found.best is not None and found.best.text == "p1*exp(-p2*t)"
    assert all(constants[1].value > 0 for constants in found.best.groups.values())
    complexities = [row.complexity for row in found.pareto]
    assert found.test_rows == 11 and complexities == sorted(set(complexities))


def test_text_columns_are_named_in_a_hint(folder: Path) -> None:
    warnings = load_dataset("table.csv").warnings
    hint = "; column 'state' holds 3 values; --group state fits one law with separate constants"
    assert any(text.endswith(hint) for text in warnings)
    many = TABLE.assign(state=[f"row {number}" for number in range(90)])
    assert not any("--group" in text for text in load_dataset(many).warnings)


def test_rows_without_a_group_are_left_out(folder: Path) -> None:
    text = Path("table.csv").read_text(encoding="utf-8").replace("treated,", ",", 1)
    Path("gap.csv").write_text(text, encoding="utf-8")
    dataset = load_dataset("gap.csv", groups=["state"])
    assert dataset.rows == 89 and dataset.groups is not None and len(dataset.groups.codes) == 89
    assert any("missing values" in warning for warning in dataset.warnings)


def test_several_columns_define_groups_together() -> None:
    table = TABLE.assign(day=np.repeat([1, 2], 45))
    dataset = load_dataset(table, target="y", groups=["state", "day"])
    assert dataset.groups is not None and dataset.names == ("x",)
    assert set(dataset.groups.labels) == {f"{label}, {day}" for label in LABELS for day in (1, 2)}


def test_a_run_starts_from_the_laws_of_an_earlier_one(folder: Path) -> None:
    runner = CliRunner()
    arguments = ["solve", str(folder / "table.csv"), "--target", "y", "--group", "state", "--json"]
    arguments += ["--operators", "add,mul,pow"]
    first = runner.invoke(cli, [*arguments, "--out", str(folder / "run"), "--steps", "5"])
    again = runner.invoke(cli, [*arguments, "--out", str(folder / "run"), "--steps", "1", "--resume"])
    assert (first.exit_code, again.exit_code) == (0, 0)
    best, resumed = (json.loads(done.stdout)["best"] for done in (first, again))
    assert resumed["expression"] == best["expression"]
    assert resumed["groups"]["treated"]["p1"] == pytest.approx(best["groups"]["treated"]["p1"], rel=1e-9)
