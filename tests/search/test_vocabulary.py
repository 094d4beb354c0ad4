"""Operators that users define, complexities that they set, and forbidden nestings."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import sympy

from physdiffuser import PhysDiffuserRegressor, solve
from physdiffuser.core.solution import Solution
from physdiffuser.errors import DataError, UsageError
from physdiffuser.expressions import (
    OPERATORS,
    Apply,
    complexity,
    evaluate,
    parse,
    to_text,
    value_and_jacobian,
)
from physdiffuser.expressions.complexity import Costs, costing
from physdiffuser.expressions.definitions import defined, expanded, key_of, read_definitions
from physdiffuser.expressions.nesting import nesting_test
from physdiffuser.expressions.parser import ExpressionSyntaxError
from physdiffuser.expressions.tree import Parameter, substitute, walk
from physdiffuser.plugin_system.operator_checks import check_operator
from physdiffuser.report.documents.json_document import document, document_text
from physdiffuser.report.documents.solution_reader import solution_from_document
from physdiffuser.report.export.exports import export, formula_of
from physdiffuser.report.export.functions import to_sympy, to_torch

RNG = np.random.default_rng(5)
X = RNG.uniform(0.4, 9.0, 60)
WAVE = {"x": X, "y": 2.31 * np.sin(1.7 * X) / (1.7 * X) + 0.4}
SINC = {"sinc": "sin(u)/u"}


@pytest.fixture(scope="module")
def found() -> Solution:
    return solve(WAVE, operators=SINC, steps=40)


def test_a_defined_operator_is_one_node_of_the_law(found: Solution) -> None:
    assert found.best is not None
    assert found.best.text == "0.4 + 2.31*sinc(1.7*x)"
    assert r"\operatorname{sinc}" in found.best.latex
    assert found.operators == {"sinc(u)": "sin(u)/u"}
    assert found.best.complexity == 10


def test_the_document_holds_the_definition_and_is_enough_to_predict(found: Solution) -> None:
    content = json.loads(document_text(document(found)))
    assert content["operators"] == {"sinc(u)": "sin(u)/u"}
    again = solution_from_document(content)
    assert again.best is not None and again.best.text == found.best.text  # type: ignore[union-attr]
    np.testing.assert_allclose(evaluate(again.best.expression, X[:, None]), WAVE["y"], rtol=1e-12)


def test_a_document_with_a_bad_definition_is_an_error_of_the_file(found: Solution) -> None:
    content = document(found) | {"operators": {"sinc(u)": "sin(v)/u"}}
    with pytest.raises(DataError, match=r"result.json, operators: operator 'sinc\(u\)': .* unknown name 'v'"):
        solution_from_document(content)
    content = document(found) | {"operators": {}}
    with pytest.raises(DataError, match="unknown function 'sinc'"):
        solution_from_document(content)


@pytest.mark.parametrize("language", ["python", "numpy", "c", "torch", "sympy", "latex"])
def test_exports_need_no_definition(found: Solution, language: str) -> None:
    assert found.best is not None
    text = export(formula_of(found, found.best), language)
    code = [line for line in text.splitlines() if not line.strip().startswith(("#", "//"))]
    assert not any("sinc" in line for line in code)
    assert any("sin" in line for line in code)
    if language == "python":
        assert "# with sinc(u) = sin(u)/u" in text


def test_sympy_and_torch_have_the_formula(found: Solution) -> None:
    assert found.best is not None
    symbolic = to_sympy(found.best.expression, found.names)
    value = float(symbolic.subs(dict.fromkeys(symbolic.free_symbols, 2.0)))
    assert value == pytest.approx(2.31 * np.sin(3.4) / 3.4 + 0.4)
    assert symbolic.has(sympy.sin)
    torch = pytest.importorskip("torch")
    law = to_torch(found.best.expression, found.names)
    table = torch.tensor(X[:, None])
    np.testing.assert_allclose(law(table).detach().numpy(), WAVE["y"], rtol=1e-12)


def test_another_process_reads_the_pickle(found: Solution) -> None:
    code = (
        "import pickle, sys; from physdiffuser.expressions import evaluate; import numpy as np; "
        "s = pickle.load(sys.stdin.buffer); print(evaluate(s.best.expression, np.array([[2.0]]))[0])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(found), capture_output=True, check=True
    )
    assert float(done.stdout) == pytest.approx(2.31 * np.sin(3.4) / 3.4 + 0.4)


def test_a_second_definition_leaves_the_first_one_alone() -> None:
    first, second = (read_definitions([f"twice(x)={body}"]) for body in ("2*x", "x + x + 1"))
    with defined(first):
        one = parse("twice(x)", ["x"])
    with defined(second):
        other = parse("twice(x)", ["x"])
    at = np.array([[3.0]])
    assert (evaluate(one, at)[0], evaluate(other, at)[0]) == (6.0, 7.0)
    assert to_text(one, ["x"]) == to_text(other, ["x"]) == "twice(x)"
    assert one != other
    with pytest.raises(ExpressionSyntaxError, match="unknown function 'twice'"):
        parse("twice(x)", ["x"])


@pytest.mark.parametrize(
    "text", ["sq(x)=x**2 + 1", "par(p, q)=p*q/(p + q)", "bell(x)=exp(-x**2/2)/sqrt(2*pi)"]
)
def test_a_definition_keeps_the_contract_of_operators(text: str) -> None:
    (definition,) = read_definitions([text])
    assert check_operator(OPERATORS[key_of(definition)])


def test_derivatives_by_constants_inside() -> None:
    (definition,) = read_definitions(["par(p, q)=p*q/(p + q)"])
    with defined((definition,)):
        law = parse("par(c*x, x**c)", ["x", "c"])
    skeleton = substitute(law, lambda node: Parameter(0) if node == parse("c", ["x", "c"]) else None)
    inputs, at = X[:, None], np.array([1.3])
    compact, plain = (value_and_jacobian(one, inputs, at) for one in (skeleton, expanded(skeleton)))
    np.testing.assert_allclose(compact[0], plain[0], rtol=1e-12)
    np.testing.assert_allclose(compact[1], plain[1], rtol=1e-10)


def test_parity_is_known() -> None:
    given = ["even(x)=1/(1/4 - 1/x**2)", "odd(x)=x/(1 + x**2)", "none(x)=x/(1 + x)"]
    assert [one.parity for one in read_definitions(given)] == [1, -1, 0]


def test_later_definitions_may_use_earlier_ones() -> None:
    _, outer = read_definitions({"sinc": "sin(x)/x", "square": "sinc(x)**2"})
    assert to_text(outer.body, ["x"]) == "(sin(x)/x)**2"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sin": "x"}, "sin exists already"),
        ({"2f": "x"}, "is no name"),
        (["f(x)=x+y"], "formula, character 3: unknown name 'y'"),
        (["f(x)=exec(x)"], "unknown function 'exec'"),
        (["f(x)"], "write a definition as"),
        (["f(x)="], "the formula is missing"),
        (["f(x,y,z)=x+y+z"], "3 arguments; an operator has one or two"),
        (["f(x,x)=x"], "two arguments have the same name"),
        (["f(x,y)=x"], "the argument 'y' does not occur"),
        (["f(x=x"], "arguments in brackets"),
        (["f(x)=x", "f(x)=2*x"], "defined twice"),
        (["f(x)=f(x)+1"], "unknown function 'f'"),
        (["f()=1"], "is no name"),
    ],
)
def test_bad_definitions(given: Any, message: str) -> None:
    with pytest.raises(UsageError) as error:
        read_definitions(given)
    assert message in str(error.value)


def test_complexity_counts_what_the_user_says() -> None:
    law = parse("2.5*exp(x)*x + y", ["x", "y"])
    assert complexity(law) == 9
    with costing(Costs({"exp": 5}, {0: 3}, 2)):
        assert complexity(law) == 9 + 3 + 4 + 1
    assert complexity(law) == 9


def test_a_complex_operator_needs_more_evidence() -> None:
    rng = np.random.default_rng(3)
    t = np.linspace(0.1, 2.0, 40)
    table = {"t": t, "y": np.exp(-0.5 * t) + 0.02 * rng.normal(size=40)}
    usual = solve(table, steps=10)
    dear = solve(table, steps=10, complexity={"exp": 50})
    assert usual.best is not None and dear.best is not None
    assert "exp" in usual.best.text
    assert "exp" not in dear.best.text
    row = next(row for row in usual.pareto if "exp" in row.text)
    rows = [one for one in dear.pareto if one.text == row.text]
    assert all(one.complexity >= 50 for one in rows)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"complexity": "q=3"}, "'q' is neither an operator nor a column"),
        ({"complexity": "exq=3"}, "did you mean 'exp'"),
        ({"complexity": "sin=0"}, "whole number from 1 to 1000"),
        ({"complexity": {"sin": 1.5}}, "whole number from 1 to 1000"),
        ({"complexity": "sin=2,sin=3"}, "'sin' is given twice"),
        ({"forbid": ["sin"]}, "write the outer operator and the one that may not stand inside it"),
        ({"forbid": ["sin(foo)"]}, "--forbid 'sin(foo)': unknown operator 'foo'"),
        ({"forbid": "sin(sin)"}, "must be a list of nestings"),
        ({"operators": {"x": "z + 1"}}, "the table has a column of that name"),
    ],
)
def test_bad_options_are_one_message(option: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as error:
        solve({"x": X, "y": X**2}, steps=1, **option)
    assert message in str(error.value)


def test_a_nesting_is_found_at_any_depth_and_inside_definitions() -> None:
    free = nesting_test({("sin", "exp")})
    assert free(parse("exp(sin(x))", ["x"]))
    assert not free(parse("sin(2 + 3*exp(x))", ["x"]))
    with defined(read_definitions(["grow(x)=exp(x) - 1"])):
        assert not free(parse("sin(grow(x))", ["x"]))


def _nested(solution: Solution, outer: str, inner: str) -> list[str]:
    return [
        row.text
        for row in solution.pareto
        for node in walk(row.expression)
        if isinstance(node, Apply) and node.operator == outer
        for part in walk(node.arguments[0])
        if isinstance(part, Apply) and part.operator == inner
    ]


def test_no_answer_has_a_forbidden_nesting() -> None:
    table = {"x": X, "y": np.exp(np.sin(X)) + 0.1 * X}
    assert _nested(solve(table, steps=8), "exp", "sin")
    solution = solve(table, steps=8, forbid=["exp(sin)", "exp(cos)"])
    assert solution.best is not None
    assert not _nested(solution, "exp", "sin") and not _nested(solution, "exp", "cos")


def test_the_estimator_takes_the_same_options() -> None:
    law = PhysDiffuserRegressor(operators=SINC, complexity={"sinc": 2}, forbid=["sin(sin)"], steps=20)
    law.fit(X[:, None], WAVE["y"])
    assert law.best_.text == "0.4 + 2.31*sinc(1.7*x1)"
    assert law.best_.complexity == 9
    again = pickle.loads(pickle.dumps(law))  # noqa: S301
    np.testing.assert_allclose(again.predict(X[:, None]), WAVE["y"], rtol=1e-12)
