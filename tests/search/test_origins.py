"""Columns far from zero: the hint, the search with a moved origin, and the law in the table's columns."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from physdiffuser import solve
from physdiffuser.data.dataset import Column, Dataset
from physdiffuser.errors import UsageError
from physdiffuser.expressions import evaluate
from physdiffuser.finalize.rescaling.origins import proposed_origins
from physdiffuser.report.documents.json_document import document, document_text
from physdiffuser.report.documents.solution_reader import solution_from_document

YEAR = np.arange(1790.0, 1971.0, 5.0)
GROWTH = 0.006 * (YEAR - 1790) ** 2 + 2 + 0.5 * np.random.default_rng(0).normal(size=YEAR.size)


@pytest.mark.parametrize(
    ("values", "origin"),
    [
        (YEAR, {0: 1790}),
        (-YEAR, {0: -1970}),
        (YEAR - 1700, {}),
        (np.linspace(1.0, 1.05, 20), {}),
        (np.linspace(-5.0, 5.0, 20), {}),
        (np.linspace(1e6 + 0.5, 1e6 + 9, 20), {0: 1000000}),
    ],
)
def test_which_columns_lie_far_from_zero(values: Any, origin: dict[int, int]) -> None:
    table = Dataset(values[:, None], values, (Column("x", "x"),), Column("y", "y"))
    assert proposed_origins(table) == origin


def test_a_note_proposes_the_shift() -> None:
    note = solve({"year": YEAR, "y": GROWTH}, steps=2).notes["origin"]
    assert "column year lies far from 0: --auto-origin" in note and "counted from 1790" in note
    assert "origin" not in solve({"x": YEAR - 1790, "y": GROWTH}, steps=2).notes


def test_the_law_states_the_shift_and_works_on_the_column_of_the_table() -> None:
    solution = solve({"year": YEAR, "y": GROWTH}, steps=10, auto_origin=True)
    best = solution.best
    assert best is not None and "(year - 1790)" in best.text
    assert solution.notes["origin"] == "year is counted from 1790"
    assert best in solution.pareto and best.derivation[-1] == "in these steps year stands for year - 1790"
    again = solution_from_document(json.loads(document_text(document(solution)))).best
    assert again is not None
    values = evaluate(again.expression, YEAR[:, None])
    assert float(np.sqrt(np.mean((values - GROWTH) ** 2))) == pytest.approx(best.rmse, rel=1e-6)
    points = solution.fit_points
    assert points is not None and points.inputs is not None
    np.testing.assert_allclose(points.inputs[:, 0], YEAR)


def test_without_columns_far_from_zero_nothing_changes() -> None:
    table = {"x": np.linspace(0.5, 4, 30), "y": 3 * np.linspace(0.5, 4, 30) ** 2}
    plain, tried = solve(table, steps=5), solve(table, steps=5, auto_origin=True)
    assert plain.best is not None and tried.best is not None
    assert plain.best.text == tried.best.text


def test_options_that_depend_on_the_origin_are_refused() -> None:
    with pytest.raises(UsageError, match="--auto-origin cannot be used together with --suggest-next"):
        solve({"year": YEAR, "y": GROWTH}, steps=2, auto_origin=True, suggest_next=1)


def test_the_law_of_groups_states_the_shift() -> None:
    year, who = np.tile(np.arange(1800.0, 1860.0, 10.0), 2), np.repeat(["u", "v"], 6)
    y = np.where(who == "u", 0.25, 0.5) * (year - 1800) ** 2
    only: dict[str, Any] = {"operators": ["mul", "pow"], "generators": ["enumeration"], "steps": 1}
    solution = solve({"year": year, "who": who, "y": y}, target="y", groups="who", auto_origin=True, **only)
    assert solution.best is not None and solution.best.text == "p1*(year - 1800)**2"
    assert {name: own[0].value for name, own in solution.best.groups.items()} == pytest.approx(
        {"u": 0.25, "v": 0.5}
    )
    assert solution.notes["origin"] == "year is counted from 1800"
