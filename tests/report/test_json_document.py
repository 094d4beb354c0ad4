"""The JSON document: valid JSON whatever the numbers and names, and readable again."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from solutions import NOT_FINITE, equation, fitted, solution, trees

from physdiffuser.errors import DataError, UsageError
from physdiffuser.expressions import Expression, Number, evaluate
from physdiffuser.expressions.tree import free_constants
from physdiffuser.report.documents.json_document import document, document_text, unfinished_document
from physdiffuser.report.documents.solution_reader import solution_from_document


def strict(text: str) -> Any:
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, parse_constant=refuse)


def test_the_document_has_the_promised_keys() -> None:
    content = document(solution())
    assert content["schema"] == 2
    assert {"target", "status", "best", "pareto", "derivation", "warnings", "aliases"} <= set(content)
    assert {"test_set", "timing", "seed", "version"} <= set(content)
    best = {"expression", "latex", "complexity", "r2", "max_relative_error", "verdict", "constants"}
    assert best <= set(content["best"])
    assert [row["row"] for row in content["pareto"]] == [1, 2, 3]
    assert [row["chosen"] for row in content["pareto"]] == [False, False, True]


def test_writing_and_reading_gives_the_same_document() -> None:
    content = document(solution())
    text = document_text(content)
    assert document(solution_from_document(strict(text))) == content


numbers = st.floats(allow_nan=True, allow_infinity=True)


@given(rmse=numbers, r2=numbers, low=numbers, test_set=st.none() | numbers, name=st.text())
def test_any_numbers_and_names_give_valid_json(
    rmse: float, r2: float, low: float, test_set: float | None, name: str
) -> None:
    row = fitted(rmse=rmse, r2=r2, test_rmse=test_set, covariance=((low,),))
    content = document(solution(row, target=name, warnings=(name,), timing={"elapsed_seconds": low}))
    text = document_text(content)
    assert strict(text) == content
    assert text.isascii()
    assert content["best"]["rmse"] == (rmse if math.isfinite(rmse) else None)
    assert document(solution_from_document(strict(text))) == content


@pytest.mark.parametrize("value", [0.25, 2.0, -0.5, 0.1234, 1e-30, 1.0 / 3.0, 1e300])
def test_fitted_constants_stay_fitted(value: float) -> None:
    """`0.25` reads as a quarter: only the list of constants tells that it was fitted."""
    row = fitted(value)
    read = solution_from_document(document(solution(row))).best
    assert read is not None
    assert free_constants(read.expression) == free_constants(row.expression)


def test_exact_constants_stay_exact() -> None:
    read = solution_from_document(document(solution(equation("a**1.5/4")))).best
    assert read is not None
    assert free_constants(read.expression)[1] == ()


@pytest.mark.parametrize("value", NOT_FINITE)
def test_a_constant_that_is_not_finite_is_null(value: float) -> None:
    content = document(solution(fitted(half=value)))
    assert content["best"]["constants"][0]["low"] is None


def test_an_unfinished_document_has_the_same_shape() -> None:
    empty = unfinished_document(
        target=None, seed=3, expression=None, complexity=None, elapsed=None, warning="stopped"
    )
    begun = unfinished_document(
        target="T", seed=3, expression="2.5*a", complexity=3, elapsed=1.5, warning="stopped"
    )
    assert set(empty) == set(begun) == set(document(solution()))
    assert (empty["status"], empty["best"]) == ("none", None)
    assert begun["best"]["expression"] == "2.5*a"
    assert begun["best"]["rmse"] is None
    strict(document_text(begun))


def changed(**changes: Any) -> dict[str, Any]:
    return json.loads(json.dumps(document(solution()))) | changes


@pytest.mark.parametrize(
    "content",
    [
        None,
        [],
        "text",
        {},
        {"schema": 2},
        changed(target=3),
        changed(status="perfect"),
        changed(pareto=3),
        changed(pareto=[3]),
        changed(inputs=[{"name": "a"}]),
        changed(inputs=[{"name": "a", "alias": "a"}] * 2),
        changed(known_constants={"G": "x"}),
        changed(known_constants={"G": 10**400}),
        changed(rows=True),
        changed(best={"expression": "__import__('os').system('touch fired')"}),
        changed(best=document(solution())["best"] | {"expression": "b"}),
        changed(best=document(solution())["best"] | {"covariance": [[1, 2]]}),
        changed(best=document(solution())["best"] | {"expression": "(" * 500 + "a" + ")" * 500}),
    ],
)
def test_what_is_no_document_is_a_data_error(content: Any) -> None:
    with pytest.raises(DataError):
        solution_from_document(content) if not isinstance(
            content, dict
        ) or content else solution_from_document(content | {"schema": 2})


def test_another_schema_is_a_usage_error_that_names_both() -> None:
    with pytest.raises(UsageError, match="schema 3; this version reads schema 2"):
        solution_from_document(changed(schema=3))


def test_a_number_in_the_tree_reads_back_as_the_same_double() -> None:
    value = 0.1 + 0.2
    read = solution_from_document(document(solution(fitted(value)))).best
    assert read is not None
    assert Number(value) in read.expression.arguments  # type: ignore[union-attr]


POINTS = np.array([[0.5, 2.0], [1.5, 0.25], [3.0, -1.25], [-2.0, 0.5]])


@given(tree=trees)
def test_any_formula_is_read_back_with_the_same_values(tree: Expression) -> None:
    read = solution_from_document(document(solution(equation(tree)))).best
    assert read is not None
    np.testing.assert_allclose(
        evaluate(read.expression, POINTS), evaluate(tree, POINTS), rtol=1e-9, atol=1e-300
    )
