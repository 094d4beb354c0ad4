"""Templates: read, searched, fitted together, reported, stored and exported."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from physdiffuser import PhysDiffuserRegressor, solve
from physdiffuser.cli.app import cli
from physdiffuser.core.solution import Solution
from physdiffuser.core.solution_parts.template_parts import TemplateParts
from physdiffuser.errors import UsageError
from physdiffuser.expressions import Parameter, Variable, evaluate, parse
from physdiffuser.expressions.definitions import defined, read_definitions
from physdiffuser.expressions.tree import bind, call, mul
from physdiffuser.report.documents.json_document import document
from physdiffuser.report.documents.solution_reader import solution_from_document
from physdiffuser.report.html import report_html
from physdiffuser.report.text.terminal import render
from physdiffuser.templates.template import known_part, read_template

RNG = np.random.default_rng(7)
X, T, Y = RNG.uniform(0.5, 3.0, (3, 150))
DECAYS = {"x": X, "t": T, "y": Y, "z": np.exp(-X / 1.7) * (3 + T**2) + np.sin(2 * Y)}


def value(text: str, names: tuple[str, ...], *columns: Any) -> Any:
    return evaluate(parse(text, names), np.column_stack(columns))


@pytest.fixture(scope="module")
def decays() -> Solution:
    return solve(DECAYS, template="exp(-x/L)*f(t) + g(y)", steps=20)


def test_functions_and_constants_are_found_together(decays: Solution) -> None:
    assert decays.status == "exact"
    parts = decays.template
    assert parts is not None
    assert parts.constants["L"] == pytest.approx(1.7, rel=1e-9)
    f, g = (value(parts.functions[name], parts.arguments[name], at) for name, at in (("f", T), ("g", Y)))
    # Only the sum is determined by the table.
    assert np.exp(-X / parts.constants["L"]) * f + g == pytest.approx(DECAYS["z"], rel=1e-9)
    assert evaluate(decays.best.expression, np.column_stack([X, T, Y])) == pytest.approx(DECAYS["z"])


def test_the_functions_are_shown_and_survive_storing(decays: Solution) -> None:
    content = json.loads(json.dumps(document(decays)))
    assert set(content["template"]) == {"f", "g"}
    assert content["template_form"]["text"] == "exp(-x/L)*f(t) + g(y)"
    assert content["template_form"]["arguments"] == {"f": ["t"], "g": ["y"]}
    assert content["best"]["expression"] == decays.best.text
    assert solution_from_document(content).template == decays.template
    for shown in (render(decays), report_html(decays)):
        assert "f(t) = " in shown
        assert "g(y) = " in shown


@pytest.mark.parametrize(
    ("template", "columns", "target"),
    [
        ("f(x)*g(y)", {"x": X, "y": Y}, (1 + X**2) * np.exp(-0.7 * Y)),
        ("sqrt(f(x) + g(y))", {"x": X, "y": Y}, np.sqrt(X**2 + 3 * Y)),
        ("f(x) - f(y)", {"x": X, "y": Y}, np.log(1 + 3 * X) - np.log(1 + 3 * Y)),
        ("f(x*y) + k*x", {"x": X, "y": Y}, np.sin(X * Y) + 0.3 * X),
        ("I(f(x), x)/x", {"x": X}, X**2 / 3 + np.sin(X) / X),
        ("D(f(x), x) + y", {"x": X, "y": Y}, 2 * np.cos(2 * X) + Y),
    ],
)
def test_structures(template: str, columns: dict[str, Any], target: Any) -> None:
    solution = solve({**columns, "z": target}, template=template, steps=20)
    assert solution.status == "exact"
    assert solution.template is not None
    names = tuple(columns)
    # The complete formula is what the template gives with the functions that are shown.
    read = read_template(template, names, {})
    forms = {
        name: parse(text, solution.template.arguments[name])
        for name, text in solution.template.functions.items()
    }
    composed = read.compose(forms)
    assert composed is not None
    made = bind(composed, list(solution.template.constants.values()))
    assert evaluate(made, np.column_stack(list(columns.values()))) == pytest.approx(target, rel=1e-7)


def test_a_function_in_two_places_has_the_same_constants_there() -> None:
    random = np.random.default_rng(0)
    z = np.log(1 + 3 * X) - np.log(1 + 3 * Y) + 0.02 * random.normal(size=X.size)
    solution = solve({"x": X, "y": Y, "z": z}, template="f(x) - f(y)", steps=12)
    assert solution.best.verdict != "verified"
    assert solution.best.probability is None
    assert solution.template is not None
    text, names = solution.template.functions["f"], solution.template.arguments["f"]
    law = evaluate(solution.best.expression, np.column_stack([X, Y]))
    assert value(text, names, X) - value(text, names, Y) == pytest.approx(law, abs=1e-6)


def test_known_parts_are_templates() -> None:
    assert known_part("m*c**2", ["m", "c", "x"], {}) == "(m*c**2) + f(...)"
    assert known_part("*exp(-x)", ["m", "c", "x"], {}) == "(exp(-x))*f(...)"
    solution = solve({"x": X, "y": Y, "z": np.exp(-X) * (1 + 2 * Y)}, known="*exp(-x)", steps=10)
    assert solution.template is not None
    found = value(solution.template.functions["f"], solution.template.arguments["f"], X, Y)
    assert found == pytest.approx(1 + 2 * Y)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ("m*(c", "known part 'm\\*\\(c': formula, character 5: missing '\\)'"),
        ("*m) + (c", "known part 'm\\) \\+ \\(c': formula, character 2"),
        ("g(m)", "known part 'g\\(m\\)': 'g' is no known function"),
    ],
)
def test_what_cannot_be_a_known_part_is_refused_with_the_place(part: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        known_part(part, ["m", "c"], {})


def test_operators_of_the_template_need_not_be_allowed() -> None:
    x = np.linspace(0.2, 5, 40)
    y = 3 * np.exp(-0.8 * x) + 2 * x + 0.02 * np.random.default_rng(2).normal(size=40)
    # There is a minus sign in the known part.
    only: dict[str, Any] = {"operators": ["add", "mul", "exp"], "generators": ["enumeration"]}
    solution = solve({"x": x, "y": y}, known="3*exp(-k*x)", steps=8, **only)
    assert solution.template is not None
    assert solution.template.headings() == {"f(x)": "2*x"}
    assert solution.template.constants["k"] == pytest.approx(0.8, rel=0.02)


def test_a_law_of_rough_rows_is_one_of_the_template() -> None:
    # No simple law: the last fits would free the numbers, and give a formula that is not of the template.
    table = np.genfromtxt("examples/cooling_water.csv", delimiter=",", skip_header=3)
    columns = {"time": table[::4, 0], "temp": table[::4, 1]}
    for known, start in (("22", 22.0), ("22 + 70*exp(-k*time)", 92.0)):
        solution = solve(columns, target="temp", known=known, steps=4)
        assert solution.best is not None and solution.template is not None
        assert not any("could not be divided" in text for text in solution.warnings)
        rate = solution.template.constants.get("k", 0.0)
        part = 22 + (start - 22) * np.exp(-rate * columns["time"])
        inner = value(solution.template.functions["f"], ("time",), columns["time"])
        law = value(solution.best.text, ("time",), columns["time"])
        assert law == pytest.approx(part + inner, rel=1e-7)
        assert solution.best.verdict != "verified"


def test_units_hold_for_the_complete_formula() -> None:
    units = {"x": "m", "t": "s", "z": "m"}
    solution = solve({"x": X, "t": T, "z": X + 4.905 * T**2}, template="x + f(t)", units=units, steps=15)
    assert solution.status == "exact"


def test_the_estimator_takes_a_template() -> None:
    law = PhysDiffuserRegressor(template="x1 + f(x2)", steps=15).fit(np.column_stack([X, Y]), X + Y**2)
    assert law.solution_.template.functions == {"f": "x2**2"}
    assert law.predict([[1.0, 3.0]]) == pytest.approx([10.0])


ONLY: dict[str, Any] = {"operators": ["add", "mul", "pow"], "generators": ["enumeration"], "steps": 1}


def test_a_guess_is_for_a_function_and_its_outcome_is_reported() -> None:
    table = {"x": X, "y": Y, "z": np.exp(-X / 1.7) * (3 + Y**2)}
    guesses = ["f(s) = a + b*s**n", "f = a*y"]
    solution = solve(table, template="exp(-x/L)*f(y)", initial=guesses, **ONLY)
    assert solution.template is not None and solution.template.functions == {"f": "3 + y**2"}
    kept, beaten = solution.guesses
    assert (kept.text, kept.state, beaten.state) == (guesses[0], "kept", "beaten")
    assert kept.rmse == pytest.approx(0.0, abs=1e-9)
    assert beaten.expression is not None and "exp(" in beaten.expression, "it is the complete formula"


def test_a_run_goes_on_from_the_formulas_of_each_function() -> None:
    # A law that this search does not find: it can only come from the earlier run.
    z = X + 3 / (1 + Y**1.7)
    earlier = ["z = 1", "x + 3/(1 + y**1.7)", "f = 3/(1 + y**1.7)", "h = 2"]
    found = solve(
        {"x": X, "y": Y, "z": z}, template="k*x + f(y)", resumed=earlier, **{**ONLY, "operators": None}
    )
    assert found.status == "exact" and "y**1.7" in found.best.text
    assert found.template is not None
    assert any("1.7" in text for text in found.template.statements)


GROUPS = {"a": 2.0, "b": 5.0, "c": -1.5}


def grouped(tmp_path: Path) -> Path:
    """A table with a constant of each group and one of all."""
    names = np.tile(list(GROUPS), 12)
    x = np.repeat(np.linspace(0.4, 3.0, 12), 3)
    y = [GROUPS[name] * (0.7 + value**2) for name, value in zip(names, x, strict=True)]
    path = tmp_path / "table.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["x", "who", "y"])
        writer.writerows(zip(x, names, y, strict=True))
    return path


def test_a_template_for_groups(tmp_path: Path) -> None:
    table, out = grouped(tmp_path), tmp_path / "run"
    runner = CliRunner()
    arguments = ["solve", str(table), "--group", "who", "--template", "A*f(x)", "--guess", "f = a + x**n"]
    arguments += ["--operators", "add,mul,pow", "--steps", "1", "--out", str(out), "--json"]
    done = runner.invoke(cli, arguments)
    assert done.exit_code == 0, done.output
    content = json.loads(done.stdout)
    assert content["template_form"]["group_constants"] == {"A": "p1"}
    law = content["best"]
    constants = {name: own["p1"] for name, own in law["groups"].items()}
    f = value(content["template"]["f"], ("x",), [2.0])[0]
    assert {name: one * f for name, one in constants.items()} == pytest.approx(
        {name: 4.7 * one for name, one in GROUPS.items()}
    )
    assert content["guesses"][0]["state"] == "kept"
    assert content["derivation"][0].startswith("the template A*f(x): ")
    again = solution_from_document(content)
    assert again.template is not None and again.template.group_constants == {"A": "p1"}
    assert "A = p1" in render(again) and "A = p1" in report_html(again)
    predicted = runner.invoke(cli, ["predict", str(out), str(table)])
    assert predicted.exit_code == 0
    assert float(predicted.output.split()[-1]) == pytest.approx(-1.5 * 9.7)
    exported = runner.invoke(cli, ["export", str(out), "--format", "python"])
    assert exported.exit_code == 0 and "p1" in exported.output


def test_constants_of_a_function_differ_by_group(tmp_path: Path) -> None:
    # Nothing else is in the template, so the factor and the constant term are those of the function.
    table = grouped(tmp_path)
    solution = solve(str(table), target="y", groups="who", template="f(x)", **ONLY)
    assert solution.best is not None and solution.template is not None
    assert solution.best.text == "p1 + p2*x**2" and solution.template.functions == {"f": "p1 + p2*x**2"}
    assert not solution.template.group_constants


def test_compose_shares_the_constants_of_a_function() -> None:
    template = read_template("a*D(f(x), x) - f(y)", ["x", "y"], {})
    form = mul(Parameter(0), call("exp", mul(Parameter(1), Variable(0))))
    composed = template.compose({"f": form})
    assert composed is not None
    points = np.array([[0.3, 0.7], [1.0, 2.0]])
    expected = 2 * 3 * 0.5 * np.exp(0.5 * points[:, 0]) - 3 * np.exp(0.5 * points[:, 1])
    assert evaluate(bind(composed, [2.0, 3.0, 0.5]), points) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x(y) + f(x)", "character 1: 'x' is a column, no function; for a product write x\\*"),
        ("G(x)", "'G' is a known constant"),
        ("f(x", "character 4: missing '\\)'"),
        ("f(x) + f(x, y)", "character 8: f has 2 arguments here and 1 before"),
        ("a*x", "no unknown function"),
        ("f(x) + f", "'f' is a function and a constant"),
        ("D(f(x), 2)", "second argument of D\\(..., x\\) must be a column"),
        ("D(f(x))", "takes a formula and the name of a column"),
        ("f(x) + z", "'z' is the target"),
        ("x + f(q)", "f has no column among its arguments; the columns are x, y"),
        ("a(x)+b(x)+c(x)+d(x)+e(x)", "4 unknown functions at most"),
        ("__import__('os')(x)", "unexpected character"),
        ("f(x)" + " + x" * 1000, "at most 2000 are read"),
    ],
)
def test_what_cannot_be_a_template_is_refused_with_the_place(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        read_template(text, ["x", "y"], {"G": 1.0}, "z")
    assert str(caught.value).startswith("template '")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"template": "f(x)", "known": "y"}, "either a template or a known part"),
        ({"template": "f(x)", "initial": ["a*x"]}, "guess 'a\\*x': .* one of its functions .*'f = a\\*x'"),
        ({"template": "f(x)", "initial": ["g = a*x"]}, "has no function 'g', it has 'f'"),
        ({"template": "f(x)", "initial": ["f(x, y) = a*x"]}, "f has the arguments x"),
        ({"template": "f(x)", "initial": ["f = a*("]}, "formula, character 4"),
    ],
)
def test_options_that_contradict_a_template(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        solve({"x": X, "y": np.round(Y), "z": X}, target="z", steps=1, **options)


def test_the_command_line(tmp_path: Path) -> None:
    table, out = tmp_path / "table.csv", tmp_path / "run"
    with table.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["x", "y", "z"])
        writer.writerows(zip(X, Y, X * Y + Y**2, strict=True))
    runner = CliRunner()
    arguments = [
        "solve",
        str(table),
        "--template",
        "x*y + f(y)",
        "--out",
        str(out),
        "--steps",
        "10",
        "--json",
    ]
    done = runner.invoke(cli, arguments)
    assert done.exit_code == 0
    assert json.loads(done.stdout)["template"] == {"f": "y**2"}
    again = runner.invoke(cli, [*arguments, "--resume"])
    assert again.exit_code == 0
    assert not any("started anew" in text for text in json.loads(again.stdout)["warnings"])
    other = runner.invoke(cli, [*arguments[:3], "x*y + g(y)", *arguments[4:], "--resume"])
    assert "had no formula for a function of this template" in json.loads(other.stdout)["warnings"][-1]
    predicted = runner.invoke(cli, ["predict", str(out), str(table)])
    assert predicted.exit_code == 0
    exported = runner.invoke(cli, ["export", str(out), "--format", "c"])
    assert exported.exit_code == 0
    assert "double x, double y" in exported.stdout
    bad = runner.invoke(cli, ["solve", str(table), "--template", "x(y)", "--json"])
    assert isinstance(bad.exception, UsageError)
    assert bad.exception.exit_code == 2


def test_numbers_are_short_where_people_read_them() -> None:
    parts = TemplateParts("f(t)", {"f": "2*sin(3*t2 + 1.5702447966270598)/1.25e-30"}, {"f": ("t2",)})
    assert parts.headings() == {"f(t2)": "2*sin(3*t2 + 1.57024)/1.25e-30"}


def test_an_operator_that_an_earlier_search_defined_may_be_the_name_of_a_function() -> None:
    with defined(read_definitions({"f": "x**3"})):
        pass
    x = np.linspace(1.0, 2.0, 12)
    found = solve(x[:, None], x**2 + 3 * x, names=["x"], template="3*x + f(x)", steps=5)
    assert found.template is not None and found.template.functions == {"f": "x**2"}
