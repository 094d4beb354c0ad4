"""Functions that act as limits of themselves are replaced by what they stand for."""

from __future__ import annotations

import numpy as np
import pytest

from physdiffuser.expressions import evaluate, parse
from physdiffuser.expressions.tree import walk
from physdiffuser.search.refinement.limiting_forms import limiting_form

NAMES = ("x", "y")
INPUTS = np.random.default_rng(0).uniform(0.5, 3.0, (200, 2))


@pytest.mark.parametrize(
    ("formula", "limit"),
    [
        ("y*(157080.63 - 1e5*atan(1e5*x))", "1/(1e5*x)"),
        ("1e8*(exp(1e-8*x*y) - 1)", "1e8*(1e-8*x*y)"),
        ("1 - tanh(4 + x)", "exp(-2*(4 + x))"),
        ("451570*((x + 0.013*y)**5.7e-8 - 1)", "5.7e-8*log(x + 0.013*y)"),
        ("-2e6*cos(0.001*x) + 2e6", "(0.001*x)**2"),
        ("exp(1 - 1*tanh(9*x))", "exp(-2*(9*x))"),
        ("3*y*sinh(x - 20)", "exp(-(x - 20))"),
        ("y*cosh(x + 11)", "exp(x + 11)"),
        ("2e7*tanh(1.2e-7*x)*y", "1.2e-7*x"),
        ("5e15/(1 + 4.6e24*exp(-2*x))", "5e15/(4.6e24*exp(-2*x))"),
    ],
)
def test_the_limit_takes_the_place_of_the_function(formula: str, limit: str) -> None:
    law = parse(formula, NAMES)
    found = limiting_form(law, INPUTS)
    assert found is not None
    assert any(node == parse(limit, NAMES) for node in walk(found))
    before, after = evaluate(law, INPUTS), evaluate(found, INPUTS)
    assert np.abs(after - before).max() < 1e-3 * np.abs(before).max()


@pytest.mark.parametrize(
    "formula",
    [
        "1 - exp(-x)",
        "2 + atan(20*x)",
        "x*tanh(y)",
        "3 - cos(0.01*x)",
        "1 - tanh(x)",
        "sinh(3*x)",
        "x**0.01 - 7",
        "x**2 - 1.01",
        "1 - (x - 1)**1e-8",
        "x + y",
        "x",
    ],
)
def test_other_formulas_are_left_alone(formula: str) -> None:
    assert limiting_form(parse(formula, NAMES), INPUTS) is None
