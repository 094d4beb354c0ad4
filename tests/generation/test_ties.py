"""One fitted constant in the place of two that are nearly equal."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from physdiffuser.expressions import Number, evaluate, parse
from physdiffuser.expressions.tree import Expression, fitted_constants, substitute
from physdiffuser.generation.neighbours.ties import ties


def fitted(text: str) -> Expression:
    """A formula whose decimals are fitted constants."""

    def free(node: Expression) -> Expression | None:
        decimal = isinstance(node, Number) and float(node.value) != int(node.value)
        return Number(float(node.value)) if decimal else None

    return substitute(parse(text, ("x", "y")), free)


@pytest.mark.parametrize(
    ("text", "tied"),
    [
        ("2.51/sqrt(1 - x**2) - 2.5", "2.51*(1/sqrt(1 - x**2) - 1)"),
        ("2.51*x + 2.5*y", "2.51*(x + y)"),
        ("-(2.51*x) + 2.5*y", "2.51*(y - x)"),
        ("1.51/(1.5 + exp(x))", "1/(1 + exp(x)/1.5)"),
        ("1.51*y/(1.5 - exp(x))", "y/(1 - exp(x)/1.5)"),
        ("1.51*y/(exp(x) - 1.5)", "y/(exp(x)/1.5 - 1)"),
    ],
)
def test_two_constants_become_one(text: str, tied: str) -> None:
    expression = fitted(text)
    found = ties(expression)
    assert found and all(fitted_constants(one) == fitted_constants(expression) - 1 for one in found)
    points = np.random.default_rng(0).uniform(0.1, 0.9, (20, 2))
    wanted = evaluate(parse(tied, ("x", "y")), points)
    assert any(np.allclose(evaluate(one, points), wanted, rtol=1e-9) for one in found)


def test_different_constants_stay_two() -> None:
    assert ties(fitted("2.5*x - 3.5*y")) == []
    assert ties(fitted("2.5*x - 2*y")) == [], "an exact number is no fitted one"


def test_values_are_near_those_of_the_formula() -> None:
    expression = fitted("1.51/(1.5 + exp(x)) + y")
    points = np.random.default_rng(0).uniform(0.1, 0.9, (20, 2))
    for one in ties(expression):
        assert_allclose(evaluate(one, points), evaluate(expression, points), rtol=0.05)
