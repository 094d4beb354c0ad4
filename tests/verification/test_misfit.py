"""Score tests: what speaks against a law, and what does not."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from physdiffuser.core.problem import Problem
from physdiffuser.expressions import Expression, Number, parse
from physdiffuser.expressions.tree import substitute
from physdiffuser.selection.misfit import NOTHING, POLICY, misfit

RANDOM = np.random.default_rng(3)
ROWS = 300
INPUTS = RANDOM.uniform(0.5, 4.0, (ROWS, 2))
X, Y = INPUTS.T
NOISE = RANDOM.standard_normal(ROWS)


def fitted(text: str) -> Expression:
    """The formula with its decimals as fitted constants."""

    def replace(node: Expression) -> Expression | None:
        if isinstance(node, Number) and isinstance(node.value, Fraction):
            return Number(float(node.value))
        return None

    return substitute(parse(text, ("x", "y")), replace)


def against(text: str, target: np.ndarray, weights: np.ndarray | None = None) -> float:
    problem = Problem(INPUTS, target, ("x", "y"), weights=weights)
    return misfit(fitted(text), problem).nats


@pytest.mark.parametrize(
    ("text", "law"),
    [
        ("2.1*x**1.7*y", 2.0 * X**2 * Y + X),
        ("3.1*x/(1.2 + x)", 3.0 * X**1.3 / (1.2**1.3 + X**1.3)),
        ("2.1*x + 1.1", 2.0 * X + 1.0 + 0.1 * Y),
        ("2.1*sin(x)*y", 2.0 * np.sin(X) * Y * (1 + 0.05 * X * Y)),
        ("5.1*exp(-0.5*x)", (5.0 * np.exp(-0.5 * X)) ** 1.1 + 0.3),
    ],
)
def test_a_law_of_a_slightly_different_shape_is_contradicted(text: str, law: np.ndarray) -> None:
    assert against(text, law + 0.01 * law.std() * NOISE) > POLICY.pattern


@pytest.mark.parametrize(
    ("missing", "change"),
    [
        (0.1 * Y, "a further term in y"),
        (0.2 * X**2, "another shape in x"),
    ],
)
def test_what_is_missing_is_named(missing: np.ndarray, change: str) -> None:
    problem = Problem(INPUTS, 2.1 * X + 1.1 + missing + 0.05 * NOISE, ("x", "y"))
    assert misfit(fitted("2.1*x + 1.1"), problem).change == change


def test_a_small_error_of_a_fitted_constant_is_none_of_the_shape() -> None:
    target = 3.0 * X / (1.2 + X) + 0.01 * NOISE
    assert against("3.002*x/(1.2015 + x)", target) < POLICY.pattern
    # An exact constant is no fitted one.
    assert against("3*x/(1 + x)", target) > POLICY.pattern


def test_chances_are_as_stated() -> None:
    random, law = np.random.default_rng(8), 3.1 * X / (1.2 + X)
    nats = [against("3.1*x/(1.2 + x)", law + 0.05 * random.standard_normal(ROWS)) for _ in range(400)]
    # Tests of one table depend on each other, so that fewer than one in twenty reach a twentieth.
    assert 1 <= np.count_nonzero(np.array(nats) > np.log(20)) <= 35
    assert max(nats) < POLICY.pattern + 2


def test_errors_in_proportion_to_the_value_are_no_misfit_while_no_weights_are_known() -> None:
    law = 0.2 * X**4 * Y**2
    target = law * (1 + 0.05 * NOISE)
    assert against("0.2*x**4*y**2", target) < POLICY.pattern
    assert against("0.2*x**4*y**2", target, 1 / law**2) < POLICY.pattern


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_the_size_of_the_numbers_does_not_matter(scale: float) -> None:
    law = 3.0 * X**1.3 / (1.2**1.3 + X**1.3)
    problem = Problem(INPUTS * scale, (law + 0.01 * NOISE) * scale, ("x", "y"))
    formula = substitute(
        fitted("3.1*x/(1.2 + x)"),
        lambda node: Number(float(node.value) * scale) if isinstance(node, Number) else None,
    )
    assert misfit(formula, problem).nats == pytest.approx(
        against("3.1*x/(1.2 + x)", law + 0.01 * NOISE), rel=1e-4
    )


def test_what_cannot_be_tested_does_not_count() -> None:
    few = Problem(INPUTS[:3], X[:3], ("x", "y"))
    assert misfit(fitted("1.1*x + 2.1*y + 0.1"), few) == NOTHING
    assert against("0*x", X) == 0.0
    assert against("log(x - 2)", X) == 0.0
