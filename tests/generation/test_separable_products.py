"""Products of one function of each column are separated, and each function is found by itself."""

from __future__ import annotations

import numpy as np
import pytest

from physdiffuser.arrays import FloatArray
from physdiffuser.core.candidate import Candidate
from physdiffuser.core.formula_fits import loss_of
from physdiffuser.core.problem import Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.expressions import evaluate, parse
from physdiffuser.generation.enumeration.context import Context
from physdiffuser.generation.enumeration.registry import Size
from physdiffuser.generation.enumeration.stages.separable_products import SeparableProducts, separated

NAMES = ("x", "y")


def problem(formula: str, rows: int = 300, noise: float = 0.0) -> Problem:
    random = np.random.default_rng(2)
    inputs = random.uniform(-3, 3, (rows, 2))
    target = evaluate(parse(formula, list(NAMES)), inputs)
    return Problem(inputs, target + noise * target.std() * random.normal(size=rows), NAMES)


def offered(table: Problem) -> list[Candidate]:
    """What the stage offers for all columns."""
    work = SeparableProducts().run(Context(table), Size(), Reduction.of_columns((), range(2)))
    return [one for one in work if isinstance(one, Candidate)]


def correlation(one: FloatArray, other: FloatArray) -> float:
    return abs(float(np.corrcoef(one, other)[0, 1]))


def test_values_of_each_function_are_found() -> None:
    table = problem("(2 + sin(x))*exp(0.4*y)")
    found = separated(table.inputs, table.target, np.ones(table.rows))
    assert found is not None
    assert correlation(found[0], 2 + np.sin(table.inputs[:, 0])) > 1 - 1e-9
    assert correlation(found[1], np.exp(0.4 * table.inputs[:, 1])) > 1 - 1e-9
    np.testing.assert_allclose(np.prod(found, axis=0), table.target, atol=1e-6)


def test_a_function_whose_mean_is_zero_is_seen() -> None:
    table = problem("sin(2*x)*sin(y)")
    found = separated(table.inputs, table.target, np.ones(table.rows))
    assert found is not None
    assert correlation(found[1], np.sin(table.inputs[:, 1])) > 1 - 1e-6


def test_few_rows_are_not_separated() -> None:
    table = problem("(2 + sin(x))*exp(0.4*y)", rows=20)
    assert separated(table.inputs, table.target, np.ones(20)) is None


@pytest.mark.parametrize("noise", [0.0, 0.01])
@pytest.mark.parametrize("law", ["cos(2.3*x)*sin(1.3*y + 1)", "2.1*exp(-0.4*x)*(1.7 + cos(y))"])
def test_the_product_of_both_functions_is_offered(law: str, noise: float) -> None:
    table = problem(law, noise=noise)
    clean = problem(law)
    losses = [loss_of(one.expression, clean) for one in offered(table)]
    assert min(losses) < max(1e-20, (0.3 * noise) ** 2)


@pytest.mark.parametrize("law", ["cos(x) + 2*y", "sin(x - 0.4*y)", "sqrt(x**2 + 2*y**2)"])
def test_nothing_is_offered_for_other_laws(law: str) -> None:
    assert offered(problem(law, noise=0.01)) == []
