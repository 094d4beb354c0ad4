"""The usual laws of one input: proposed first, and in the Pareto table unless a simpler row fits as well."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest

from physdiffuser.core.problem import Budget, Problem
from physdiffuser.core.solution import Solution
from physdiffuser.data import dataset_from_arrays
from physdiffuser.expressions import OPERATORS, Apply, Expression, Number, evaluate, parse
from physdiffuser.expressions.tree import parameter_count, substitute, walk
from physdiffuser.fitting import refit
from physdiffuser.functions.standard_forms import standard_forms
from physdiffuser.generation.enumeration.generator import EnumerationGenerator
from physdiffuser.pipeline import solve_dataset
from physdiffuser.search.archive import ParetoArchive

FloatArray = npt.NDArray[np.float64]

CASES = {
    "logarithm without division": ("15.6 - 0.87*log(x)", "add,sub,mul,log", 1.0, 60.0),
    "power law without powers": ("3.2*x**1.6", "add,mul,exp,log", 0.5, 8.0),
    "exponential on a level without exp": ("0.4 + 0.3*2**x", "add,mul,pow", -3.0, 6.0),
    "exponential on a level": ("2.2 + 5.3*exp(-0.8*x)", "add,sub,mul,exp", 0.0, 5.0),
    "saturation": ("3.65*(1 - exp(-0.08*x))", "add,sub,mul,div,exp", 0.2, 45.0),
    "hyperbolic saturation": ("9.1*x/(2.3 + x)", "add,mul,div", 0.3, 15.0),
    "bell curve": ("4.7*exp(-(x - 3.1)**2/1.9)", "add,sub,mul,div,pow,exp", 0.0, 6.0),
    "resonance": ("5.2/(0.8 + (x - 2.7)**2)", "add,sub,mul,div,pow", 0.0, 6.0),
}


def rows_of(text: str, low: float, high: float, noise: float = 0.02) -> tuple[FloatArray, FloatArray]:
    """Twenty rows of a law of x."""
    random = np.random.default_rng(5)
    x = np.sort(random.uniform(low, high, 20))[:, None]
    y = evaluate(parse(text, ("x",)), x)
    return x, y + noise * y.std() * random.normal(size=20)


@pytest.mark.parametrize(("text", "operators", "low", "high"), CASES.values(), ids=CASES)
def test_the_first_step_proposes_the_usual_law(text: str, operators: str, low: float, high: float) -> None:
    x, y = rows_of(text, low, high)
    problem = Problem(x, y, ("x",), operators=frozenset(operators.split(",")))
    best = evaluate(refit(free(text), x, y).expression, x)
    with np.errstate(all="ignore"):
        proposed = list(EnumerationGenerator().propose(problem, ParetoArchive(problem), Budget(1)))
    near = [
        candidate.expression
        for candidate in proposed
        if problem.allows(candidate.expression)
        and np.abs(evaluate(candidate.expression, x) - best).max() < 1e-3 * y.std()
    ]
    assert near


def free(text: str) -> Expression:
    """The law with its decimal numbers as fitted constants."""

    def replace(node: Expression) -> Expression | None:
        decimal = isinstance(node, Number) and isinstance(node.value, Fraction)
        return Number(float(node.value)) if decimal and isinstance(node, Number) else None

    return substitute(parse(text, ("x",)), replace)


@pytest.mark.parametrize("operators", ["add,sub,mul,log", "add,mul,pow", "sub,mul,div,exp", "mul"])
@pytest.mark.parametrize("columns", [1, 3])
def test_usual_laws_hold_only_operators_that_are_allowed(operators: str, columns: int) -> None:
    allowed = frozenset(operators.split(","))
    forms = standard_forms(columns, frozenset(range(columns)), allowed)
    used = {node.operator for form in forms for node in walk(form) if isinstance(node, Apply)}
    assert used <= allowed
    # Of one input the cubic has the most, four; a linear function has one more than it has inputs.
    most = 4 if columns == 1 else columns + 1
    assert all(1 <= parameter_count(form) <= most for form in forms)
    assert len(forms) <= len(standard_forms(columns, frozenset(range(columns)), frozenset(OPERATORS)))


def shows(solution: Solution, x: FloatArray, wanted: FloatArray, tolerance: float) -> bool:
    return any(
        np.sqrt(np.mean((evaluate(row.expression, x) - wanted) ** 2)) < tolerance for row in solution.pareto
    )


def test_the_logarithm_is_shown_where_a_shifted_one_fits_better() -> None:
    # What is measured bends a little away from the law, so that log(x + c), as complex, fits better.
    x, y = rows_of("16.1 - log(x + 1.4)", 1.0, 60.0, noise=0.15)
    table = dataset_from_arrays(x, y, names=["P"])
    solution = solve_dataset(table, time=None, steps=8, operators=["add", "sub", "mul", "log"])
    slope, level = np.polyfit(np.log(x[:, 0]), y, 1)
    assert shows(solution, x, level + slope * np.log(x[:, 0]), 0.02 * y.std())


@pytest.mark.parametrize(
    ("law", "low", "high"), [("0.4 + 0.3*2**x", -3.0, 6.0), ("9.1*x/(2.3 + x)", 0.3, 15.0)]
)
def test_the_table_holds_the_usual_law(law: str, low: float, high: float) -> None:
    x, y = rows_of(law, low, high, noise=0.01)
    solution = solve_dataset(dataset_from_arrays(x, y, names=["x"]), time=None, steps=8)
    best = evaluate(refit(free(law), x, y).expression, x)
    assert shows(solution, x, best, 0.01 * y.std())


def test_rows_are_ordered_by_complexity_with_falling_errors() -> None:
    x, y = rows_of("16.1 - log(x + 1.4)", 1.0, 60.0, noise=0.15)
    rows = solve_dataset(dataset_from_arrays(x, y, names=["P"]), time=None, steps=8).pareto
    assert [row.complexity for row in rows] == sorted(row.complexity for row in rows)
    assert all(after.rmse < before.rmse for before, after in itertools.pairwise(rows))
