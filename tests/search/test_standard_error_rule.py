"""No constant is set to a value that lies farther than a standard error from its fitted value."""

from __future__ import annotations

import numpy as np
import pytest

from physdiffuser.core.problem import Problem
from physdiffuser.data.arrays import dataset_from_arrays
from physdiffuser.expressions import Number, Symbol, Variable, evaluate, parse, to_text
from physdiffuser.expressions.tree import mul, power
from physdiffuser.finalize.constants.standard_error import within_standard_error
from physdiffuser.finalize.constants.statements import constants_of
from physdiffuser.fitting.exact_constants.snapping import snap
from physdiffuser.pipeline import solve_dataset

NAMES = ("x", "z")


def rows_with_slope(slope: float, error: float = 0.01) -> Problem:
    """Rows whose least-squares slope is `slope` with this standard error."""
    x = np.linspace(1.0, 2.0, 100)
    noise = np.random.default_rng(3).standard_normal(100)
    noise -= x * (noise @ x) / (x @ x)
    noise *= error * np.sqrt(x @ x) / np.sqrt(noise @ noise / 99)
    return Problem(np.column_stack([x, x]), slope * x + noise, NAMES)


@pytest.mark.parametrize(("slope", "kept"), [(3.009, True), (2.991, True), (3.011, False), (2.985, False)])
def test_a_set_constant_may_lie_one_standard_error_from_its_fitted_value(slope: float, kept: bool) -> None:
    found, changes = within_standard_error(parse("3*x", NAMES), rows_with_slope(slope))
    if kept:
        assert found == parse("3*x", NAMES) and changes == ()
    else:
        assert to_text(found, NAMES, digits=5) == f"{slope:.5g}*x"
        assert len(changes) == 1 and "3 lies" in changes[0] and f"fitted {slope}" in changes[0]


@pytest.mark.parametrize(("slope", "said"), [(3.0011, "3"), (2.998, "3"), (3.0031, None)])
def test_the_special_value_that_a_fitted_constant_agrees_with_is_said(slope: float, said: str | None) -> None:
    law = mul(Number(slope), Variable(0))
    (constant,) = constants_of(law, rows_with_slope(slope, 0.001))[0]
    assert not constant.is_set and constant.agrees_with == said


def test_given_constants_and_numbers_1_stay() -> None:
    problem = rows_with_slope(3.05)
    g = Symbol("g", 3.0)
    given = Problem(problem.inputs, problem.target, NAMES, constants=(g,))
    law = parse("g*x", NAMES, constants={"g": 3.0})
    assert within_standard_error(law, given)[0] == law
    assert within_standard_error(parse("x", NAMES), problem)[0] == parse("x", NAMES)


def test_a_factor_1_and_powers_by_halves_are_form_and_may_lie_farther_off() -> None:
    x = np.linspace(1.0, 2.0, 200)
    noise = np.random.default_rng(1).standard_normal(200)
    slope = np.log(x) * x**1.5
    noise -= slope * (noise @ slope) / (slope @ slope)
    # The fitted power lies two standard errors from 3/2.
    error = 1e-4
    noise *= error * np.sqrt(slope @ slope) / np.sqrt(noise @ noise / 199)
    target = x**1.5 + 2.0 * error * slope + noise
    found = snap(power(Variable(0), Number(1.5001)), x[:, None], target)
    assert found.expression == parse("x**1.5", NAMES)


def test_snapping_never_moves_a_constant_by_more() -> None:
    for slope, snapped in ((3.0009, True), (3.0011, False)):
        problem = rows_with_slope(slope, 0.001)
        found = snap(mul(Number(slope), Variable(0)), problem.inputs, problem.target)
        assert (found.expression == parse("3*x", NAMES)) is snapped


@pytest.mark.parametrize("seed", [2, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (0, 1, 3))])
def test_solve_states_no_set_constant_farther_off(seed: int) -> None:
    rng = np.random.default_rng(seed)
    inputs = rng.uniform(1.0, 4.0, (120, 2))
    clean = evaluate(parse("2*pi*sqrt(x/z) + x/4", NAMES), inputs)
    target = clean * (1 + 0.003 * rng.standard_normal(120))
    best = solve_dataset(dataset_from_arrays(inputs, target, names=NAMES), steps=15).best
    assert best is not None
    for constant in best.constants:
        if constant.is_set and constant.fitted is not None and constant.sigma is not None:
            assert abs(constant.value - constant.fitted) <= 1.0001 * constant.sigma
