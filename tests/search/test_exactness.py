"""A law is exact; a formula that only follows the rows closely is an interpolation."""

from __future__ import annotations

import numpy as np
import pytest
from decimals import to_be_fitted

from physdiffuser.data import dataset_from_arrays
from physdiffuser.expressions import Expression, Number, Variable, evaluate
from physdiffuser.expressions.tree import add, mul
from physdiffuser.finalize.exactness import Exactness, exactness
from physdiffuser.fitting import refit

RNG = np.random.default_rng(0)
FIT_BOUND = 1e-9


def polynomial(coefficients: list[float]) -> Expression:
    """By Horner's rule, the constant last."""
    tree: Expression = Number(coefficients[0])
    for coefficient in coefficients[1:]:
        tree = add(mul(tree, Variable(0)), Number(coefficient))
    return tree


def judged(tree: Expression, x: np.ndarray, target: np.ndarray) -> Exactness:
    dataset = dataset_from_arrays(x[:, None], target, names=["x"])
    return exactness(tree, dataset, evaluate(tree, x[:, None]))


@pytest.mark.parametrize("degree", [14, 18])
def test_a_polynomial_through_another_function_is_an_interpolation(degree: int) -> None:
    x = RNG.uniform(-0.8, 0.8, 500)
    target = np.sin(x**2) * np.cos(x) - 1
    tree = polynomial([float(value) for value in np.polyfit(x, target, degree)])
    error = np.abs(evaluate(tree, x[:, None]) / target - 1).max()
    assert error < FIT_BOUND
    found = judged(tree, x, target)
    assert not found.exact and found.interpolation.startswith("interpolation: ")


@pytest.mark.parametrize(
    "law",
    [
        "2.5*x",
        "1.37*x - 0.71",
        "2.31*exp(-0.437*x)",
        "0.11*x**3 - 1.37*x**2 + 0.71*x + 4.19",
        "2.31*exp(-0.437*x) + 1.13*exp(-2.71*x) + 0.31",
        "1.3*exp(-0.21*x)*sin(3.17*x + 0.43) + 2.3*exp(-0.57*x)*sin(1.31*x + 0.77) + 0.91",
        "3.7*x/(0.51 + x)",
        "sin(37.5*x)",
    ],
)
def test_a_law_with_fitted_constants_is_exact(law: str) -> None:
    tree = to_be_fitted(law, ("x",))
    x = RNG.uniform(0.5, 5.0, 300)
    target = evaluate(tree, x[:, None])
    fitted = refit(tree, x[:, None], target).expression
    assert judged(fitted, x, target) == Exactness(True)


def test_as_many_constants_as_rows_explain_nothing() -> None:
    x = np.array([0.5, 1.0, 2.0, 3.5, 4.1])
    target = np.array([1.31, 0.72, 2.93, 4.44, 1.95])
    tree = polynomial([float(value) for value in np.polyfit(x, target, 4)])
    found = judged(tree, x, target)
    assert not found.exact and "as many digits" in found.interpolation


def test_a_formula_that_misses_a_row_is_neither() -> None:
    x = RNG.uniform(1.0, 2.0, 50)
    assert judged(Variable(0), x, x + 1e-6) == Exactness(False)
