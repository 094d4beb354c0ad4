"""Every export computes what our own evaluator computes."""

from __future__ import annotations

import ctypes
import math
import pickle
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from solutions import CONSTANTS, equation, solution, trees

from physdiffuser.errors import DataError, UsageError
from physdiffuser.expressions import Apply, Expression, Number, Variable, evaluate, parse
from physdiffuser.report.documents.json_document import document
from physdiffuser.report.documents.solution_reader import solution_from_document
from physdiffuser.report.export.exports import FORMATS, Formula, export, formula_of
from physdiffuser.report.export.functions import to_numpy, to_sympy, to_torch
from physdiffuser.report.export.source_code import c_identifiers, python_identifiers

GCC = shutil.which("gcc")
NAMES = ("a", "b")
POINTS = np.array([[0.5, 2.0], [1.5, 0.25], [3.0, -1.25], [0.0, 1.0], [-2.0, 0.5]])
FORMULAS = [
    "a**1.5",
    "2*pi*sqrt(a**3/(G*b))",
    "-a**2 - -b*(a - (b - 3))/-2",
    "exp(-a)*sin(b + 1/3) - cos(a*b)**2",
    "asin(a/4) + acos(b/4) - atan(a*b) + tan(a)",
    "sinh(a)*cosh(b)/tanh(a + 2) + abs(b) + log(abs(a) + 1)",
    "2**-a + (-b)**3 + (-8)**(1/3)",
    "9**9**9 - a",
    "1/0 + a",
    "2.5e-30*a*123456789012345678901234567890",
    "sqrt(2)*a + log(3)",
    "0.731041234567*a - 1e-7",
    "3",
    "pi/2",
    "a/(1/0)",
]


def formula(expression: Expression | str, names: tuple[str, ...] = NAMES, target: str = "T") -> Formula:
    tree = parse(expression, names, CONSTANTS) if isinstance(expression, str) else expression
    return Formula(tree, names, names, target, "physdiffuser test")


def same(found: Any, wanted: Any, tolerance: float = 1e-12) -> None:
    np.testing.assert_allclose(found, np.broadcast_to(wanted, np.shape(found)), rtol=tolerance, atol=1e-300)


def used_columns(made: Formula) -> list[Any]:
    return [POINTS[:, index] for index in made.used]


@pytest.mark.parametrize("text", FORMULAS)
def test_python_source_agrees(text: str) -> None:
    made = formula(text)
    scope: dict[str, Any] = {}
    exec(compile(export(made, "python"), "exported", "exec"), scope)  # noqa: S102 - written by us
    found = scope["predict_T"](*used_columns(made))
    same(np.broadcast_to(found, 5), evaluate(made.expression, POINTS))


@given(tree=trees)
@settings(max_examples=150, deadline=None)
def test_python_source_of_any_tree_agrees(tree: Expression) -> None:
    made = formula(tree)
    scope: dict[str, Any] = {}
    exec(compile(export(made, "python"), "exported", "exec"), scope)  # noqa: S102 - written by us
    with np.errstate(all="ignore"):
        found = np.broadcast_to(scope["predict_T"](*used_columns(made)), 5)
    wanted = evaluate(tree, POINTS)
    sound = np.isfinite(wanted) & (np.abs(wanted) < 1e12) & (np.abs(wanted) > 1e-12)
    same(found[sound], wanted[sound], 1e-6)
    assert np.array_equal(np.isnan(found), np.isnan(wanted))


def compile_c(sources: list[str], folder: Path) -> ctypes.CDLL:
    command = [str(GCC), "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1", "-fPIC", "-shared"]
    for number, source in enumerate(sources):
        (folder / f"law{number}.c").write_text(source, encoding="ascii")
    files = [str(folder / f"law{number}.c") for number in range(len(sources))]
    done = subprocess.run(
        [*command, *files, "-o", str(folder / "law.so"), "-lm"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(folder / "law.so"))


@pytest.mark.skipif(GCC is None, reason="needs gcc")
def test_c_compiles_without_a_warning_and_agrees(tmp_path: Path) -> None:
    made = [formula(text, target=f"T{number}") for number, text in enumerate(FORMULAS)]
    library = compile_c([export(one, "c") for one in made], tmp_path)
    for number, one in enumerate(made):
        function = getattr(library, f"predict_T{number}")
        function.restype = ctypes.c_double
        function.argtypes = [ctypes.c_double] * len(one.used)
        found = [function(*(row[index] for index in one.used)) for row in POINTS]
        same(found, evaluate(one.expression, POINTS))


HOSTILE = (
    "int",
    "θ",
    "sin_",
    "y1",
    "NAN",
    "main",
    "é",
    "np",
    "lambda_",
    "_x",
    "pow",
    "predict_double",
    "self",
)


@pytest.mark.skipif(GCC is None, reason="needs gcc")
def test_c_with_hostile_names_compiles(tmp_path: Path) -> None:
    total = " + ".join(HOSTILE)
    columns = tuple(f'*/ {name} \\\n"??/' for name in HOSTILE)
    made = Formula(parse(total, HOSTILE), HOSTILE, columns, "double", "x\n#error y")
    library = compile_c([export(made, "c")], tmp_path)
    function = library.predict_double
    function.restype = ctypes.c_double
    function.argtypes = [ctypes.c_double] * len(HOSTILE)
    assert function(*range(len(HOSTILE))) == sum(range(len(HOSTILE)))


@pytest.mark.parametrize("format_name", ["python", "torch", "sympy"])
def test_python_with_hostile_names_is_python(format_name: str) -> None:
    total = " + ".join(HOSTILE)
    columns = tuple(f'""" {name} \\\nimport os; os.abort()' for name in HOSTILE)
    made = Formula(parse(total, HOSTILE), HOSTILE, columns, '"""', "x\nraise SystemExit")
    scope: dict[str, Any] = {"__name__": "exported"}
    exec(compile(export(made, format_name), "exported", "exec"), scope)  # noqa: S102 - written by us
    if format_name == "python":
        (function,) = [value for name, value in scope.items() if name.startswith("predict_")]
        assert function(*range(len(HOSTILE))) == sum(range(len(HOSTILE)))


def test_a_column_may_be_called_as_what_the_code_uses() -> None:
    names = ("float", "super")
    made = Formula(parse("1.5*float*super", names), names, names, "y", "physdiffuser test")
    for format_name in ("python", "numpy", "torch"):
        scope: dict[str, Any] = {"__name__": "exported"}
        exec(compile(export(made, format_name), "exported", "exec"), scope)  # noqa: S102 - written by us
        function = scope["Law"]() if format_name == "torch" else scope["predict_y"]
        assert float(function(2.0, 3.0)) == 9.0


def test_identifiers_are_distinct_and_resemble_the_names() -> None:
    assert c_identifiers(["θ", "theta", "Δx", "int"]) == ["theta", "theta_2", "Deltax", "int_"]
    assert python_identifiers(["np", "np_", "a"]) == ["np_", "np__2", "a"]


@pytest.mark.parametrize("text", FORMULAS)
def test_torch_source_and_module_agree(text: str) -> None:
    torch = pytest.importorskip("torch")
    made = formula(text)
    wanted = evaluate(made.expression, POINTS)
    module = to_torch(made.expression, NAMES)
    same(module(torch.tensor(POINTS)).detach().numpy(), wanted, 1e-9)
    scope: dict[str, Any] = {}
    exec(compile(export(made, "torch"), "exported", "exec"), scope)  # noqa: S102 - written by us
    law = scope["Law"]()
    found = law(*(torch.tensor(column) for column in used_columns(made)))
    found = found.detach().numpy() if isinstance(found, torch.Tensor) else found
    same(np.broadcast_to(found, 5), wanted, 1e-9)


def test_the_constants_of_a_torch_module_can_be_trained() -> None:
    torch = pytest.importorskip("torch")
    module = to_torch(parse("0.25*a", NAMES), NAMES)
    assert [tuple(parameter.shape) for parameter in module.parameters()] == [(0,)]
    expression = Apply("mul", (Number(0.5), Variable(0)))
    module = to_torch(expression, NAMES)
    table = torch.tensor(POINTS, dtype=torch.float32)
    assert module(table).dtype == torch.float32
    optimiser = torch.optim.SGD(module.parameters(), lr=0.05)
    for _ in range(100):
        optimiser.zero_grad()
        loss = ((module(table) - 2.0 * table[:, 0]) ** 2).mean()
        loss.backward()
        optimiser.step()
    assert module.constants.item() == pytest.approx(2.0, abs=1e-4)
    with pytest.raises(UsageError, match="columns a, b"):
        module(torch.zeros(3, 5))


@pytest.mark.parametrize("text", [text for text in FORMULAS if "1/0" not in text and "9**9" not in text])
def test_sympy_source_and_object_agree(text: str) -> None:
    sympy = pytest.importorskip("sympy")
    made = formula(text)
    scope: dict[str, Any] = {}
    exec(compile(export(made, "sympy"), "exported", "exec"), scope)  # noqa: S102 - written by us
    wanted = evaluate(made.expression, POINTS)
    values = {"a": 0.5, "b": 2.0} | CONSTANTS
    for expression in (scope["expression"], to_sympy(made.expression, NAMES)):
        at = {symbol: values[symbol.name] for symbol in expression.free_symbols}
        value = complex(sympy.N(expression.subs(at), 30))
        if math.isfinite(wanted[0]):
            assert value == pytest.approx(wanted[0], rel=1e-9)


def test_a_power_tower_is_exported_at_once() -> None:
    for format_name in FORMATS:
        assert export(formula("9**9**9 + a"), format_name)


def test_a_numpy_function_takes_tables_and_columns_and_travels() -> None:
    function = to_numpy(parse("a*b + G", NAMES, CONSTANTS), NAMES)
    same(function(POINTS), POINTS[:, 0] * POINTS[:, 1] + CONSTANTS["G"])
    assert function(a=2.0, b=[1.0, 3.0]).shape == (2,)
    assert function(a=2.0, b=1.0).shape == ()
    same(pickle.loads(pickle.dumps(function))(POINTS), function(POINTS))  # noqa: S301 - made here
    assert "a*b + G" in repr(function)
    for wrong in ({"a": 1.0}, {"a": 1.0, "b": 2.0, "c": 3.0}, {"a": [1.0, 2.0], "b": [1.0, 2.0, 3.0]}):
        with pytest.raises(UsageError):
            function(**wrong)
    with pytest.raises(UsageError, match="columns a, b"):
        function(np.ones((3, 3)))
    with pytest.raises(UsageError, match="not both"):
        function(POINTS, a=1.0)


def test_unknown_formats_are_usage_errors() -> None:
    with pytest.raises(UsageError, match="known are python"):
        export(formula("a"), "fortran")


def test_the_row_of_a_result_becomes_a_formula() -> None:
    answer = solution(equation("a*v_m_s"))
    assert answer.best is not None
    text = export(formula_of(answer, answer.best), "python")
    assert "# v_m_s is the column 'v (m/s)'" in text
    assert "return a*v_m_s" in text


@pytest.mark.parametrize("place", ["best", "pareto"])
def test_stored_texts_are_not_printed(place: str) -> None:
    """A changed result file cannot put text of its own into what is exported."""
    content = document(solution())
    rows = [content["best"]] if place == "best" else content["pareto"]
    for stored in rows:
        stored["latex"] = r"\input{/etc/passwd}"
    content["version"] = "1\n'; import os"
    read = solution_from_document(content)
    for row in (read.best, *read.pareto):
        assert row is not None
        for name in FORMATS:
            text = export(formula_of(read, row), name)
            assert "passwd" not in text
            assert "import os" not in text.splitlines()
        assert export(formula_of(read, row), "latex") == row.latex + "\n"


def test_an_alias_that_is_no_name_is_refused() -> None:
    content = document(solution())
    content["inputs"][0]["alias"] = "a); import os"
    with pytest.raises(DataError, match="is no name"):
        solution_from_document(content)
