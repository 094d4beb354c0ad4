"""Scores of answers to measured tables: against the law of the field, and against what is printed of them."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from benchmarks_feynman.measured.claims import check_claims
from benchmarks_feynman.measured.descriptions import describe_law
from benchmarks_feynman.measured.independent import PrintedFormula, left_out_errors, refit
from benchmarks_feynman.measured.score import score
from benchmarks_feynman.measured_tables import measured_table
from benchmarks_feynman.report.render import markdown
from benchmarks_feynman.report.sections import sections
from benchmarks_feynman.report.summary import as_document
from benchmarks_feynman.suites import select
from benchmarks_feynman.systems.own import solve
from benchmarks_feynman.tasks import Settings, Task
from benchmarks_feynman.worker_process import _Prepared, handle
from physdiffuser.data import dataset_from_arrays
from physdiffuser.expressions import evaluate, parse
from physdiffuser.pipeline import solve_dataset
from physdiffuser.report.documents.json_document import document


@pytest.mark.parametrize(
    "text",
    [
        "x**2 - y/3 + -2*x",
        "exp(-x/2.5)*cos(2*pi*y)",
        "sqrt(abs(x - y))/(1 + tanh(x))",
        "-x**2",
        "2**-x*log(y) + atan(x)**y",
    ],
)
def test_printed_formulas_have_the_values_of_the_program(text: str) -> None:
    inputs = np.random.default_rng(0).uniform(0.5, 3.0, (40, 2))
    mine = PrintedFormula.read(text, ("x", "y")).values(inputs)
    np.testing.assert_allclose(mine, evaluate(parse(text, ("x", "y")), inputs), rtol=1e-12)


@pytest.mark.parametrize("text", ["__import__('os')", "x.y", "[x]", "x if y else x", "f(x)", "lambda: x"])
def test_only_formulas_are_computed(text: str) -> None:
    with pytest.raises((ValueError, KeyError)):
        PrintedFormula.read(text, ("x", "y")).values(np.ones((2, 2)))


def test_the_refit_has_the_certified_values_and_errors() -> None:
    # Too few rows for the sandwich: the errors are those that NIST certifies.
    table = measured_table("nist_boxbod")
    formula = PrintedFormula.read("200.5*(1 - exp(-0.5*days))", table.names, (200.5, 0.5))
    found = refit(formula, table.inputs, table.target)
    np.testing.assert_allclose(found.sizes, [213.80940889, 0.54723748542], rtol=1e-6)
    np.testing.assert_allclose(found.errors, [12.354515176, 0.10455993237], rtol=1e-4)


def test_left_out_errors_of_a_line_are_those_of_the_closed_form() -> None:
    table = measured_table("model_cars")
    formula = PrintedFormula.read("8.1 + 2.1*start", table.names, (8.1, 2.1))
    rows = table.rows
    errors = left_out_errors(formula, table.inputs, table.target, np.ones(rows), rows)
    design = np.column_stack([np.ones(rows), table.inputs])
    hat = design @ np.linalg.pinv(design)
    residual = table.target - hat @ table.target
    np.testing.assert_allclose(errors, residual / (1 - np.diag(hat)), rtol=1e-5)


@pytest.fixture(scope="module")
def printed() -> dict[str, Any]:
    table = measured_table("capacitor")
    rows = table.rows
    dataset = dataset_from_arrays(table.inputs, table.target, names=table.names, target_name="voltage")
    solution = solve_dataset(dataset, steps=5)
    assert solution.fit_rows is not None and 0 < len(solution.fit_rows.test) < rows
    return {"document": document(solution)}


def _claims(printed: dict[str, Any]) -> dict[str, str]:
    table = measured_table("capacitor")
    return dict(check_claims(printed["document"], table.inputs, table.target))


def test_true_claims_are_found_true(printed: dict[str, Any]) -> None:
    truths = _claims(printed)
    assert set(truths) == {"rmse", "r2", "max_relative_error", "constants", "test_rmse", "intervals"}
    assert set(truths.values()) == {"true"}


@pytest.mark.parametrize("name", ["rmse", "r2", "max_relative_error", "test_rmse"])
def test_a_wrong_number_is_found_false(printed: dict[str, Any], name: str) -> None:
    wrong = copy.deepcopy(printed)
    wrong["document"]["best"][name] *= 0.5
    assert _claims(wrong)[name] == "false"


def test_a_wrong_interval_is_found_false(printed: dict[str, Any]) -> None:
    wrong = copy.deepcopy(printed)
    constant = next(one for one in wrong["document"]["best"]["constants"] if one["low"] is not None)
    constant["high"] += constant["high"] - constant["low"]
    assert _claims(wrong)["intervals"] == "false"


@pytest.mark.parametrize(
    ("text", "truth"),
    [("1.730(4)", "true"), ("1.731(4)", "false"), ("1.730(9)", "false"), ("1.7304", "true"), ("2", "false")],
)
def test_a_written_constant_is_its_value_and_error(printed: dict[str, Any], text: str, truth: str) -> None:
    changed = copy.deepcopy(printed)
    changed["document"]["best"]["constants"] = [
        {"value": 1.7304, "sigma": 0.0041, "low": None, "high": None, "text": text, "set_to": None}
    ]
    assert _claims(changed)["constants"] == truth


def test_the_law_of_the_field_is_as_good_as_itself_and_a_line_is_not() -> None:
    (law,) = select(["measured"], ["weight_loss"])
    truth = describe_law(measured_table(law.id))
    same = score(law, truth.expression, "approximate", {"verdict": "verified"})
    assert same["recovered"] and same["form"] and not same["confident_wrong"]
    worse = score(law, parse("180.5 - 0.25*Days", law.names), "approximate", {"verdict": "verified"})
    assert not worse["recovered"] and worse["confident_wrong"]
    assert worse["measured"]["length_difference"] > 10
    law_facts = worse["measured"]["law"]
    assert worse["measured"]["answer"]["left_out_rmse"] > law_facts["left_out_rmse"]
    nothing = score(law, None, "none", {})
    assert not nothing["recovered"] and nothing["measured"]["answer"] is None


def test_a_table_is_solved_scored_and_reported() -> None:
    task = Task("physdiffuser", "measured", "formaldehyde", 0, 0.0, Settings(steps=3))
    messages: list[dict[str, Any]] = []
    handle(task, _Prepared(), messages.append)
    result = {**task.document(), **messages[-1]["result"], "commit": None}
    assert messages[-1]["stage"] == "done"
    assert result["measured"]["answer"]["complexity"] == result["complexity"]
    assert "false" not in result["measured"]["claims"].values()
    (entry,) = as_document([result])
    assert entry["measured"]["tables"] == 1
    assert entry["measured"]["as_good"] == int(result["recovered"])
    text = markdown(sections([result]), {})
    assert "formaldehyde" in text and "law of the field" in text


@pytest.mark.parametrize("name", ["kepler", "nist_danwood", "puromycin_treated"])
def test_printed_intervals_follow_from_the_weights_in_the_document(name: str) -> None:
    table = measured_table(name)
    dataset = dataset_from_arrays(table.inputs, table.target, names=table.names, target_name="y")
    content = document(solve_dataset(dataset, steps=4))
    truths = check_claims(content, table.inputs, table.target)
    assert truths["intervals"] == truths["rmse"] == "true"
    if content["fit_rows"]["weights"] is not None:
        content["fit_rows"]["weights"] = None
        assert check_claims(content, table.inputs, table.target)["rmse"] == "false"


def test_peers_are_scored_without_claims() -> None:
    (law,) = select(["measured"], ["formaldehyde"])
    assert score(law, parse("0.88*carb", law.names), "approximate", {})["measured"]["claims"] == {}


def test_solve_hands_over_what_it_prints() -> None:
    table = measured_table("formaldehyde")
    from benchmarks_feynman.sampling import sample

    (law,) = select(["measured"], ["formaldehyde"])
    drawn = sample(law, rows=3)
    assert drawn.rows == table.rows
    task = Task("physdiffuser", "measured", law.id, 0, 0.0, Settings(steps=3))
    assert {"best", "inputs"} <= set(solve(drawn, task, None).details["document"])
