"""Weighted sums of columns that a law depends on are found from the rows."""

from __future__ import annotations

import numpy as np
import pytest

from physdiffuser import solve
from physdiffuser.core.problem import Problem
from physdiffuser.expressions import evaluate, parse
from physdiffuser.noise.noise_floor import levels
from physdiffuser.reduction.factors import hypotheses
from physdiffuser.reduction.single_index import single_index

NAMES = ("x", "y", "z")


def problem(formula: str, rows: int = 400, noise: float = 0.01) -> Problem:
    random = np.random.default_rng(3)
    inputs = random.uniform(-2, 2, (rows, 3))
    target = evaluate(parse(formula, list(NAMES)), inputs) + np.zeros(rows)
    return Problem(inputs, target + noise * target.std() * random.normal(size=rows), NAMES)


def weights(formula: str, rows: int = 400, noise: float = 0.01) -> list[float] | None:
    """Of the columns in the sum that was found, relative to the first of them."""
    rows_of = problem(formula, rows, noise)
    found = single_index(rows_of, levels(rows_of, hypotheses(rows_of)))
    if not found:
        return None
    (feature,) = found[0].features
    slopes = evaluate(feature, np.eye(3)) - evaluate(feature, np.zeros((3, 3)))
    made: list[float] = (slopes / slopes[0]).tolist()
    return made


@pytest.mark.parametrize("noise", [0.0, 0.01, 0.1])
@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("1/(1 + exp(0.8 - 1.6*x - 0.9*y))", [1, 0.5625, 0]),
        ("3*cos(1.7*x - 0.9*y + 0.6*z)", [1, -0.9 / 1.7, 0.6 / 1.7]),
        ("exp(-(0.8*x + 0.5*z - 0.3)**2)", [1, 0, 0.625]),
    ],
)
def test_the_weights_are_found_and_other_columns_left_out(
    formula: str, expected: list[float], noise: float
) -> None:
    assert weights(formula, noise=noise) == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize(
    ("formula", "expected"),
    [("3*cos(0.7*(x - 1.4)*y)", "x*y - 1.4*y"), ("1/(1 + exp(1.5*x*z - 0.9*y))", "x*z - 0.6*y")],
)
def test_products_of_columns_may_be_in_the_sum(formula: str, expected: str) -> None:
    rows = problem(formula)
    (found,) = single_index(rows, levels(rows, hypotheses(rows)))
    values = evaluate(found.features[0], rows.inputs)
    wanted = evaluate(parse(expected, list(NAMES)), rows.inputs)
    assert abs(np.corrcoef(values, wanted)[0, 1]) > 0.999


@pytest.mark.parametrize("formula", ["x*y", "sin(x) + y**2", "2*x - 3*y + 1", "exp(x)", "x - x"])
def test_other_laws_have_no_such_sum(formula: str) -> None:
    assert weights(formula) is None


def test_few_rows_show_nothing() -> None:
    assert weights("tanh(x - 0.4*y)", rows=24) is None


def test_a_sigmoid_of_two_inputs_is_solved() -> None:
    rows = problem("1.4/(1 + exp(0.8 - 1.6*x - 0.9*y))")
    best = solve(rows.inputs, rows.target, names=list(NAMES), steps=30).best
    assert best is not None
    clean = evaluate(parse("1.4/(1 + exp(0.8 - 1.6*x - 0.9*y))", list(NAMES)), rows.inputs)
    left = evaluate(best.expression, rows.inputs) - clean
    assert float(np.sqrt(np.mean(left**2))) < 0.3 * 0.01 * float(clean.std())
    assert best.complexity <= 18
