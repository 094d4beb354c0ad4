"""`docs/json.md` lists every key of the document with its type; schema 1 can still be read."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from solutions import equation, solution

from physdiffuser import solve
from physdiffuser.cli.app import cli
from physdiffuser.core.solution import Solution
from physdiffuser.core.solution_parts.next_measurements import NextMeasurement, NextMeasurements
from physdiffuser.report.documents.json_document import SCHEMA, document, unfinished_document
from physdiffuser.report.runfolder import load_solution

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "json.md").read_text(encoding="utf-8")
OLD = Path(__file__).with_name("schema_1")
PLAIN = {"string": str, "integer": int, "number": int | float, "boolean": bool}
OBJECTS = (
    "formula",
    "constant",
    "input",
    "test set",
    "fit rows",
    "table",
    "guess",
    "next measurements",
    "law",
    "point",
    "prediction",
)
# Keys of a document that stand there only where an option asks for them.
OPTIONAL = {
    "table",
    "loss",
    "constraints",
    "guesses",
    "next_measurements",
    "groups",
    "operators",
    "template",
    "template_form",
}

POINT = NextMeasurement((1.0, 2.0), 0.1, (1.0, 2.0), (0.01, float("nan")), 6.0, (0, 1))
SUGGESTED = NextMeasurements((), ("a", "2*a"), (1, None), ((0.0, 1.0), (1.0, 3.0)), (POINT,))


def table(heading: str) -> dict[str, str]:
    """Key and type of each row of a section's table."""
    text = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert text is not None, heading
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \|[^|]*\| [^|]+ \|$", text[1], re.MULTILINE)
    return dict(rows)


def check(value: Any, kind: str, place: str) -> None:
    """A value has the type that the page gives."""
    if kind.endswith(" or null"):
        if value is None:
            return
        kind = kind.removesuffix(" or null")
    if kind.startswith(("list of ", "object of ")):
        container, _, item = kind.partition(" of ")
        assert isinstance(value, list if container == "list" else dict), place
        # JSON has no nan, so any number of an object can be null.
        item = "guess" if item == "guesses" else re.sub(r"s( |$)", r"\1", item, count=1)
        item += " or null" if container == "object" and item == "number" else ""
        for one in value if container == "list" else value.values():
            check(one, item, f"{place}[]")
    elif kind in OBJECTS:
        check_object(value, kind, place)
    else:
        assert isinstance(value, PLAIN[kind]), f"{place} should be {kind}: {value!r}"
        assert kind == "boolean" or not isinstance(value, bool), place


def check_object(content: dict[str, Any], heading: str, place: str) -> None:
    described = table(heading.capitalize())
    optional = {"row", "chosen"} if heading == "formula" and place == "best" else set()
    optional |= OPTIONAL if heading == "document" else set()
    optional |= (
        {"groups", "group_intervals", "group_covariance", "mean_loss"} if heading == "formula" else set()
    )
    assert set(described) - optional <= set(content) <= set(described), place
    for key, value in content.items():
        check(value, described[key], key if heading == "document" else f"{place}.{key}")


def solved(*options: str, steps: int = 12) -> dict[str, Any]:
    arguments = ["solve", str(OLD / "table.csv"), "--steps", str(steps), "--json", "--no-plugins", *options]
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 0, done.output
    content: Any = json.loads(done.stdout)
    assert isinstance(content, dict)
    return content


@pytest.fixture(scope="module")
def real() -> dict[str, Any]:
    return solved("--guess", "A*exp(-b*elapsed_time)", "--suggest-next", "2")


def test_a_real_document_is_as_described(real: dict[str, Any]) -> None:
    assert real["schema"] == SCHEMA == 2
    assert "table" in real and real["test_set"]["rows"] == 9
    assert real["guesses"] and real["next_measurements"]["laws"]
    assert real["best"]["constants"] and real["best"]["covariance"]
    check_object(real, "document", "document")


def test_a_document_with_groups_is_as_described() -> None:
    x = np.tile(np.linspace(1, 4, 20), 2)
    labels = ["a"] * 20 + ["b"] * 20
    found = document(solve(x, np.repeat([2.0, 3.0], 20) * x, groups=labels, steps=5))
    assert found["best"]["groups"] and found["best"]["group_intervals"]["a"]
    check_object(found, "document", "document")


@pytest.mark.parametrize(
    "content",
    [
        document(Solution("T", "none", None, (), ("a",), ("a",), {})),
        document(solution(equation("a", rmse=float("nan")))),
        document(replace(solution(), next_measurements=SUGGESTED)),
        unfinished_document(
            target=None, seed=3, expression="2.5*a", complexity=3, elapsed=1.5, warning="stopped"
        ),
    ],
)
def test_documents_without_a_complete_answer_are_as_described(content: dict[str, Any]) -> None:
    check_object(content, "document", "document")


def test_the_promised_keys_are_in_their_places(real: dict[str, Any]) -> None:
    promised = re.findall(r"`([\w.\[\]]+)`", PAGE[PAGE.index("These keys keep") : PAGE.index("## Document")])
    assert len(promised) == 14
    for path in promised:
        values: list[Any] = [real]
        for part in path.split("."):
            values = [value[part.removesuffix("[]")] for value in values]
            if part.endswith("[]"):
                values = [item for value in values for item in value]
        assert values, path


def test_a_stored_run_of_schema_1_is_read() -> None:
    stored = json.loads((OLD / "run" / "result.json").read_text())
    assert stored["schema"] == 1
    found = load_solution(OLD / "run")
    assert found.best is not None
    assert found.best.test_rmse == stored["best"]["held_out_rmse"]
    assert found.best.extra_digits == stored["best"]["more_digits"]
    assert found.test_rows == stored["held_out"]["rows"] == 9
    assert found.timing["finalize_seconds"] == stored["timing"]["conclusion_seconds"]
    assert [row.text for row in found.pareto] == [row["expression"] for row in stored["pareto"]]


def test_a_stored_run_of_schema_1_predicts_exports_and_resumes(tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(OLD / "run", run)
    predicted = CliRunner().invoke(cli, ["predict", str(run), str(OLD / "table.csv"), "--intervals"])
    assert predicted.exit_code == 0 and len(predicted.stdout.splitlines()) == 49
    exported = CliRunner().invoke(cli, ["export", str(run), "--format", "numpy"])
    assert exported.exit_code == 0 and "def predict_p(elapsed_time, m)" in exported.stdout
    alone = solved("--generators", "neighbours", steps=1)["best"]
    resumed = solved("--generators", "neighbours", "--resume", "--out", str(run), steps=1)["best"]
    assert resumed["rmse"] < 0.5 * alone["rmse"], "one step alone does not find the law"
    assert json.loads((run / "result.json").read_text())["schema"] == SCHEMA
