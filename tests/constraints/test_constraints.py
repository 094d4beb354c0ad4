"""Constraints: read, tested at points, proved, obeyed by the answer, reported and stored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from physdiffuser import PhysDiffuserRegressor, solve
from physdiffuser.cli.app import cli
from physdiffuser.constraints.constraint import Constraint
from physdiffuser.constraints.proofs import is_at_least, is_finite
from physdiffuser.constraints.reading import read_constraints
from physdiffuser.constraints.rules import ConstraintRules
from physdiffuser.core.problem import Problem
from physdiffuser.core.solution import Solution
from physdiffuser.data.arrays import dataset_from_arrays
from physdiffuser.errors import FileError, UsageError
from physdiffuser.expressions import Expression, Number, Parameter, Variable, evaluate, parse
from physdiffuser.expressions.tree import add, bind, call, mul, substitute, walk
from physdiffuser.groups.candidates import Form
from physdiffuser.groups.joint_fit import GroupedRows, JointModel
from physdiffuser.groups.selection import GroupSelection
from physdiffuser.report.documents.json_document import document
from physdiffuser.report.documents.solution_reader import solution_from_document
from physdiffuser.report.html import report_html
from physdiffuser.report.text.terminal import render

NAMES = ("x", "y")
INPUTS = np.random.default_rng(3).uniform(0.5, 3.0, (40, 2))
DATASET = dataset_from_arrays(INPUTS, INPUTS[:, 0] * INPUTS[:, 1], names=NAMES, target_name="z")


def one(given: dict[str, Any]) -> Constraint:
    (constraint,) = read_constraints([given], DATASET)
    return constraint


# A constraint, a formula that satisfies it, and one that does not.
CASES = [
    ({"increasing": "x"}, "x*y", "y/x"),
    ({"decreasing": "x"}, "exp(-x)*y", "(x - 2)**2"),
    ({"convex": "x"}, "x**2 + y", "sqrt(x)"),
    ({"concave": "x"}, "log(x)*y", "x**2"),
    ({"positive": True}, "x*y + 1", "x - y"),
    ({"between": [0, 1]}, "x/(x + y)", "x/y"),
    ({"even": "x"}, "cos(x)*y", "x*y"),
    ({"odd": "x"}, "x**3*y", "exp(x)"),
    ({"symmetric": ["x", "y"]}, "x*y/(x + y)", "x/y"),
    ({"antisymmetric": ["x", "y"]}, "x - y", "x + y"),
    ({"homogeneous": {"columns": ["x", "y"], "degree": 2}}, "x*y + x**2", "x*y + 1"),
    ({"value": {"at": {"x": 0}, "is": 0}}, "x*exp(y)", "cos(x)"),
    ({"limit": {"as": {"x": float("inf")}, "is": 1}}, "x/(x + y)", "x + y"),
    ({"no_poles": True}, "1/(x + y)", "1/(x - 2)"),
]


@pytest.mark.parametrize(("given", "good", "bad"), CASES)
def test_each_constraint_tells_formulas_apart_and_is_proved(given: Any, good: str, bad: str) -> None:
    constraint = one(given)
    assert constraint.screen(parse(good, NAMES), 1.0) is None
    assert constraint.prove(parse(good, NAMES))
    found = constraint.screen(parse(bad, NAMES), 1.0)
    assert found is not None
    assert found.amount > 0
    assert not constraint.prove(parse(bad, NAMES))


def test_a_limit_needs_values_but_for_what_overflows() -> None:
    dataset = dataset_from_arrays(np.linspace(0.5, 4, 20)[:, None], np.ones(20), names=["x"], target_name="y")
    [limit] = read_constraints([{"limit": {"as": {"x": float("inf")}, "is": 1}}], dataset)
    for formula in ("(exp(x) - 1)/(exp(x) + 1)", "x/(1 + x)", "tanh(x)"):
        assert limit.screen(parse(formula, ["x"]), 1.0) is None, formula
    for formula in (
        "(1 + x)*sqrt(sin(x))",
        "1 + sqrt(5 - x)",
        "exp(x)/exp(1.1*x)",
        "1.001*x/(1 + x)",
        "5e-5*sqrt(x)",
    ):
        assert limit.screen(parse(formula, ["x"]), 1.0) is not None, formula


def test_the_place_of_a_violation_lies_in_the_region() -> None:
    constraint = one({"positive": True, "region": {"x": [0, 10]}})
    found = constraint.screen(parse("9 - x", NAMES), 1.0)
    assert found is not None
    assert 9 < found.point[0] <= 10
    assert INPUTS[:, 1].min() <= found.point[1] <= INPUTS[:, 1].max()


def test_a_region_can_be_expanded() -> None:
    (plain, wide) = (one({"positive": True, **more}) for more in ({}, {"expand": 3}))
    low, high = INPUTS.min(axis=0), INPUTS.max(axis=0)
    assert plain.region.low == pytest.approx(low)
    assert wide.region.high - wide.region.low == pytest.approx(3 * (high - low))


@pytest.mark.parametrize(
    ("formula", "bound", "shown"),
    [
        ("x**2 - 2*x + 1.1", 0.0, True),
        ("x**2 - 2*x + 0.99", 0.0, False),
        ("sin(x) + 1", 0.0, True),
        ("tanh(x) - x", -3.0, True),
        ("1/x", 0.0, True),
        ("1/(x - 1)", -1e9, False),
        ("sqrt(x - 1)", 0.0, False),
    ],
)
def test_interval_arithmetic_shows_bounds_that_hold(formula: str, bound: float, shown: bool) -> None:
    low, high = np.array([0.5]), np.array([3.0])
    tree = parse(formula, ["x"])
    if shown:
        assert is_at_least(tree, bound, low, high)
        assert (evaluate(tree, np.linspace(0.5, 3.0, 500)[:, None]) >= bound).all()
        assert is_finite(tree, low, high)
    else:
        assert not is_at_least(tree, bound, low, high)


def test_constants_are_fitted_under_constraints() -> None:
    constraints = read_constraints([{"value": {"at": {"x": 0}, "is": 0}}], DATASET)
    rules = ConstraintRules(constraints, float(DATASET.target.std()))
    problem = Problem(INPUTS, DATASET.target, NAMES, rules=rules)
    start = parse("1.10000001*x*y + 0.30000001", NAMES)
    assert not problem.allows(start)
    fitted = rules.fitted(start, problem)
    assert fitted is not None
    assert problem.allows(fitted)
    assert evaluate(fitted, INPUTS) == pytest.approx(DATASET.target, rel=1e-5)


@pytest.mark.parametrize(
    ("law", "start", "given", "stated"),
    [
        # No value at the place for a smaller constant.
        ("1.5*sqrt(x + 0.8)", "1.6001*sqrt(x + 0.8901)", {"value": {"at": {"x": -0.8}, "is": 0}}, 0.8),
        (
            "2.2 - 2.2*exp(-x)",
            "2.1001 - 2.2001*exp(-0.9001*x)",
            {"limit": {"as": {"x": np.inf}, "is": 2.2}},
            2.2,
        ),
        ("1.25*sin(x)", "1.3001*sin(0.9501*x)", {"between": [-1.2, 1.2], "region": {"x": [0, 9]}}, 1.2),
    ],
)
def test_constants_become_numbers_that_constraints_state(
    law: str, start: str, given: dict[str, Any], stated: float
) -> None:
    x = np.linspace(0.3, 2.5, 20)[:, None]
    noise = 0.02 * np.random.default_rng(5).normal(size=20)
    dataset = dataset_from_arrays(x, evaluate(parse(law, ["x"]), x) + noise, names=["x"], target_name="y")
    rules = ConstraintRules(tuple(read_constraints([given], dataset)), float(dataset.target.std()))
    problem = Problem(x, dataset.target, ("x",), rules=rules)
    free = substitute(parse(start, ["x"]), _fitted)
    fitted = rules.fitted(free, problem)
    assert fitted is not None
    assert rules.holds(fitted)
    exact = [float(node.value) for node in walk(fitted) if isinstance(node, Number) and node.exact]
    assert stated in [abs(one) for one in exact]


def _fitted(node: Expression) -> Expression | None:
    return Number(float(node.value)) if isinstance(node, Number) else None


X = np.random.default_rng(1).uniform(0.2, 4.0, 20)
SATURATION = 3 * X / (1.2 + X) + 0.05 * np.random.default_rng(2).normal(size=20)
TRUE = [{"increasing": "x"}, {"value": {"at": {"x": 0}, "is": 0}}]
FEW: dict[str, Any] = {"operators": ["add", "mul", "div"], "generators": ["enumeration"]}


@pytest.fixture(scope="module")
def saturation() -> Solution:
    return solve({"x": X, "y": SATURATION}, constraints=TRUE, steps=10, **FEW)


def test_the_answer_satisfies_the_constraints(saturation: Solution) -> None:
    assert [status.state for status in saturation.constraints] == ["proved", "proved"]
    assert all(
        ConstraintRules(
            read_constraints(TRUE, dataset_from_arrays(X[:, None], SATURATION, names=["x"])), 1.0
        ).holds(row.expression)
        for row in saturation.pareto
    )
    assert not any("contradicts" in text for text in saturation.warnings)


def test_the_status_is_shown_and_survives_storing(saturation: Solution) -> None:
    content = json.loads(json.dumps(document(saturation)))
    assert content["constraints"][0] == {
        "constraint": "increasing: x",
        "state": "proved",
        "points": 1198,
        "at": None,
    }
    assert solution_from_document(content).constraints == saturation.constraints
    for shown in (render(saturation), report_html(saturation)):
        assert "increasing: x" in shown
        assert "proved" in shown


def test_a_table_that_contradicts_its_constraints_is_reported() -> None:
    solution = solve({"x": X, "y": SATURATION}, constraints={"decreasing": "x"}, steps=5, **FEW)
    assert any("the table contradicts the constraints" in text for text in solution.warnings)
    assert all(status.state != "violated" for status in solution.constraints)


def test_where_nothing_satisfies_the_constraints_the_answer_says_so() -> None:
    solution = solve({"x": X, "y": SATURATION}, constraints=[{"between": [7, 8]}], steps=3, **FEW)
    assert solution.best is not None
    (status,) = solution.constraints
    if status.state == "violated":
        assert status.at is not None
        assert "violates one" in solution.warnings[-1]
    else:
        assert (evaluate(solution.best.expression, X[:, None]) >= 7).all()


def test_the_estimator_and_templates_take_constraints() -> None:
    model = PhysDiffuserRegressor(constraints=[{"odd": "x1"}], steps=5).fit(X[:, None], 2 * X)
    assert [one.state for one in model.solution_.constraints] == ["proved"]
    solution = solve({"x": X, "z": X + X**2}, template="x + f(x)", constraints={"positive": True}, steps=5)
    assert solution.template is not None
    assert [one.state for one in solution.constraints] == ["proved"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            [{"increasing": "q"}],
            r"constraint 1 \(increasing\): there is no input column 'q'; the columns are",
        ),
        ([{"positive": True}, {"rising": "x"}], "constraint 2: there is no constraint 'rising'"),
        ([{"increasin": "x"}], "did you mean increasing\\?"),
        ([{"increasing": "x", "odd": "x"}], "must name one constraint, not increasing, odd"),
        ([{"region": {"x": [0, 1]}}], "must name one constraint, not none"),
        ([{"positive": False}], "must be true"),
        ([{"between": [1, 0]}], "lower bound 1 is not below"),
        ([{"between": 3}], "pair of numbers"),
        ([{"symmetric": ["x"]}], "two columns"),
        ([{"value": {"at": {"x": 0}}}], "must have at and is"),
        ([{"value": {"at": {"x": "a"}, "is": 0}}], "must be a number, not 'a'"),
        ([{"limit": {"as": {"x": 3}, "is": 0}}], "as takes inf or -inf"),
        ([{"homogeneous": {"columns": ["x"]}}], "must have columns and degree"),
        ([{"positive": True, "region": {"x": [2, 1]}}], "ends before it begins"),
        ([{"positive": True, "region": [0, 1]}], "region must give a range by column"),
        ([{"positive": True, "expand": -1}], "expand must be above 0"),
        (["increasing"], "constraint 1: not a constraint"),
        (3, "not a list of constraints"),
        ([{"positive": True}] * 51, "at most 50"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_place(given: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        read_constraints(given, DATASET)
    assert str(caught.value).startswith("constraints")


def test_files_are_read_strictly(tmp_path: Path) -> None:
    path = tmp_path / "constraints.yaml"
    path.write_text("- increasing: x\n- limit: {as: {x: inf}, is: 5e-1}\n  expand: 2\n")
    first, second = read_constraints(str(path), DATASET)
    assert (first.kind, second.kind) == ("increasing", "limit")
    path.write_text("- increasing: x\n  increasing: y\n")
    with pytest.raises(UsageError, match="line 2"):
        read_constraints(path, DATASET)
    path.write_text("- !!python/object/apply:os.system [ls]\n")
    with pytest.raises(UsageError, match="constraints file"):
        read_constraints(path, DATASET)
    with pytest.raises(FileError, match="cannot read"):
        read_constraints(tmp_path / "missing.yaml", DATASET)


def test_the_command_line(tmp_path: Path) -> None:
    table, rules, out = tmp_path / "table.csv", tmp_path / "rules.yaml", tmp_path / "run"
    table.write_text("x,y\n" + "".join(f"{x!r},{x * x!r}\n" for x in X.tolist()))
    rules.write_text("- even: x\n- value: {at: {x: 0}, is: 0}\n")
    arguments = [
        "solve",
        str(table),
        "--constraints",
        str(rules),
        "--steps",
        "5",
        "--out",
        str(out),
        "--json",
    ]
    runner = CliRunner()
    for more in ([], ["--resume"]):
        done = runner.invoke(cli, [*arguments, *more])
        assert done.exit_code == 0
        assert [row["state"] for row in json.loads(done.stdout)["constraints"]] == ["proved", "proved"]
    assert runner.invoke(cli, ["predict", str(out), str(table)]).exit_code == 0
    assert runner.invoke(cli, ["export", str(out), "--format", "python"]).exit_code == 0
    rules.write_text("- even: q\n")
    bad = runner.invoke(cli, arguments)
    assert isinstance(bad.exception, UsageError)


def test_usual_laws_are_fitted_under_the_constraints() -> None:
    # Fitted freely, the law has another limit; that was the end of it once.
    random = np.random.default_rng(3)
    x = random.uniform(0.6, 2.2, 20)
    y = 2.2 * (1 - np.exp(-0.6 * x)) + 0.02 * random.normal(size=20)
    rules = [{"value": {"at": {"x": 0}, "is": 0}}, {"limit": {"as": {"x": float("inf")}, "is": 2.2}}]
    found = solve({"x": x, "y": y}, constraints=rules, steps=3)
    assert found.best is not None and [one.state for one in found.constraints] == ["proved", "proved"]
    values = evaluate(found.best.expression, np.array([[0.0], [1.0], [50.0]]))
    assert values == pytest.approx([0, 2.2 * (1 - np.exp(-0.6)), 2.2], abs=0.05)


def test_the_formulas_of_all_groups_satisfy_the_constraints() -> None:
    random = np.random.default_rng(7)
    x, g = np.tile(np.linspace(0.3, 2, 12), 2), np.repeat([1, 2], 12)
    y = np.where(g == 1, 2.0, 5.0) * x / (1.3 + x) + 0.02 * random.normal(size=24)
    table = {"x": x, "g": g, "y": y}
    rules = [{"increasing": "x"}, {"value": {"at": {"x": 0}, "is": 0}}]
    # Few operators: a search in groups tries every division of the constants of every form.
    few = {"steps": 1, "generators": ["enumeration"], "operators": ["add", "mul", "div"], "max_complexity": 5}
    found = solve(table, target="y", groups="g", constraints=rules, **few)
    assert found.best is not None and [one.state for one in found.constraints] == ["proved", "proved"]
    for row in found.pareto:
        for own in row.groups.values():
            inputs = np.array([[0.0, *(one.value for one in own)]])
            inputs = np.pad(inputs, ((0, 0), (0, len(found.names) - inputs.shape[1])))
            assert evaluate(row.expression, inputs) == pytest.approx(0.0, abs=1e-6)
    wrong = solve(table, target="y", groups="g", constraints=[{"decreasing": "x"}], **few)
    assert any("contradicts" in text or "violates" in text for text in wrong.warnings)


def test_constants_of_groups_are_fitted_under_the_constraints() -> None:
    random = np.random.default_rng(3)
    x, codes = random.uniform(0.6, 2.2, 40), np.tile([0, 1], 20)
    y = 2.2 * (1 - np.exp(-np.array([0.6, 1.1])[codes] * x)) + 0.04 * random.normal(size=40)
    dataset = dataset_from_arrays(x[:, None], y, names=["x"], target_name="y")
    given = [{"value": {"at": {"x": 0}, "is": 0}}, {"limit": {"as": {"x": float("inf")}, "is": 2.2}}]
    rules = ConstraintRules(tuple(read_constraints(given, dataset)), float(y.std()))
    rows = GroupedRows.of(x[:, None], y, None, codes)
    selection = GroupSelection(rows, 1e-20, 0, rules=rules)
    decay = call("exp", mul(Parameter(2), Variable(0)))
    selection.consider([Form(add(Parameter(0), mul(Parameter(1), decay)), (2.0, -1.9, -0.7))])
    assert selection.violating is not None and selection.best is not None
    law = selection.best.fit
    assert law is not selection.violating.fit
    # The number that is stated is no constant any more; the factor is the same in both groups.
    assert law.parameters.shape == (2, 2) and law.shared.sum() == 1
    assert sorted(law.parameters[~law.shared][0]) == pytest.approx([-1.1, -0.6], abs=0.06)
    formulas = [bind(law.skeleton, own.tolist()) for own in law.parameters.T]
    assert all(rules.holds(formula) for formula in formulas)
    # No nearby constants that satisfy them describe the rows better.
    model = JointModel(law.skeleton, rows)
    for rate in (0.99, 1.01):
        changed = np.where(law.shared[:, None], law.parameters, rate * law.parameters)
        assert model.loss(changed) > law.loss
