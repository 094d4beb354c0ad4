"""Values and derivatives of trees."""

from __future__ import annotations

import math

import numpy as np
import pytest
from expression_strategies import COLUMNS, exact_trees, fitted_trees
from hypothesis import HealthCheck, given, settings

from physdiffuser.expressions import (
    OPERATORS,
    Apply,
    Expression,
    Number,
    Parameter,
    Variable,
    evaluate,
    parse,
    value_and_jacobian,
)
from physdiffuser.expressions.operators import BUILT_IN_NAMES
from physdiffuser.expressions.tree import free_constants

QUICK = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
# Where each function of one argument is smooth and of moderate size.
PLACES = {"asin": (-0.9, 0.9), "acos": (-0.9, 0.9), "sqrt": (0.1, 4.0), "log": (0.1, 4.0), "tan": (-1.2, 1.2)}


@pytest.mark.parametrize("name", sorted(BUILT_IN_NAMES))
def test_values_are_those_of_the_sympy_form(name: str) -> None:
    import sympy

    spec = OPERATORS[name]
    rng = np.random.default_rng(0)
    low, high = PLACES.get(name, (0.2, 2.0))
    inputs = rng.uniform(low, high, (20, spec.arity))
    tree = Apply(name, tuple(Variable(index) for index in range(spec.arity)))
    symbols = sympy.symbols("u v", real=True)[: spec.arity]
    form = spec.sympy(*symbols)
    expected = [float(form.evalf(30, subs=dict(zip(symbols, row, strict=True)))) for row in inputs]
    np.testing.assert_allclose(evaluate(tree, inputs), expected, rtol=1e-14)


@pytest.mark.parametrize("name", sorted(BUILT_IN_NAMES))
def test_derivatives_are_those_of_the_sympy_form(name: str) -> None:
    import sympy

    spec = OPERATORS[name]
    rng = np.random.default_rng(1)
    low, high = PLACES.get(name, (0.2, 2.0))
    symbols = sympy.symbols("u v", real=True)[: spec.arity]
    form = spec.sympy(*symbols)
    tree = Apply(name, tuple(Parameter(index) for index in range(spec.arity)))
    for _ in range(5):
        point = rng.uniform(low, high, spec.arity)
        _, jacobian = value_and_jacobian(tree, np.zeros((1, 1)), point)
        for index, symbol in enumerate(symbols):
            exact = sympy.diff(form, symbol).doit().evalf(30, subs=dict(zip(symbols, point, strict=True)))
            assert jacobian[index, 0] == pytest.approx(float(sympy.re(exact)), rel=1e-13)


@QUICK
@given(fitted_trees)
def test_derivatives_of_whole_trees_match_finite_differences(tree: Expression) -> None:
    skeleton, start = free_constants(tree)
    if not start:
        return
    inputs = np.random.default_rng(0).uniform(0.3, 2.0, (4, COLUMNS))
    parameters = np.array(start)
    value, jacobian = value_and_jacobian(skeleton, inputs, parameters)
    np.testing.assert_array_equal(value, evaluate(tree, inputs))
    for index in range(len(start)):
        wide, narrow = (
            central(skeleton, inputs, parameters, index, step * abs(parameters[index]))
            for step in (1e-4, 1e-5)
        )
        with np.errstate(all="ignore"):
            size = np.abs(narrow)
            # Where two step widths agree the finite difference can be trusted.
            sure = np.isfinite(narrow) & np.isfinite(jacobian[index]) & (size > 1e-6 * (1 + np.abs(value)))
            sure &= np.abs(wide - narrow) <= 1e-6 * size
        np.testing.assert_allclose(jacobian[index][sure], narrow[sure], rtol=1e-4)


def central(
    skeleton: Expression, inputs: np.ndarray, parameters: np.ndarray, index: int, step: float
) -> np.ndarray:
    up, down = parameters.copy(), parameters.copy()
    up[index] += step
    down[index] -= step
    with np.errstate(all="ignore"):
        return (evaluate(skeleton, inputs, up) - evaluate(skeleton, inputs, down)) / (up[index] - down[index])


@QUICK
@given(exact_trees)
def test_many_starts_at_once_are_each_start_alone(tree: Expression) -> None:
    skeleton = Apply("add", (Apply("mul", (Parameter(0), tree)), Apply("exp", (Parameter(1),))))
    inputs = np.random.default_rng(0).uniform(0.3, 2.0, (3, COLUMNS))
    starts = np.array([[0.5, 1.5, -2.0], [0.1, -0.3, 0.7]])
    values, jacobians = value_and_jacobian(skeleton, inputs, starts)
    assert values.shape == (3, 3)
    assert jacobians.shape == (2, 3, 3)
    np.testing.assert_array_equal(values, evaluate(skeleton, inputs, starts))
    for index in range(3):
        value, jacobian = value_and_jacobian(skeleton, inputs, starts[:, index])
        np.testing.assert_allclose(values[index], value, rtol=1e-15)
        np.testing.assert_allclose(jacobians[:, index], jacobian, rtol=1e-15)


@QUICK
@given(fitted_trees)
def test_evaluation_never_warns_raises_or_changes_its_inputs(tree: Expression) -> None:
    inputs = np.array([[0.0, -1.0, 1e308], [1.0, np.inf, -1e-308], [-0.0, 1e200, np.nan]])
    before = inputs.copy()
    value = evaluate(tree, inputs)
    assert value.shape == (3,)
    assert value.dtype == np.float64
    np.testing.assert_array_equal(inputs, before)
    value[:] = 0.0  # the caller's own array
    np.testing.assert_array_equal(inputs, before)


def test_constants_fill_the_column() -> None:
    np.testing.assert_array_equal(evaluate(parse("2*pi", []), np.zeros((3, 0))), np.full(3, 2 * math.pi))


def test_integers_beyond_doubles_are_infinite() -> None:
    inputs = np.ones((1, 1))
    assert evaluate(Number(10**400), inputs)[0] == math.inf
    assert evaluate(Number(-(10**400)), inputs)[0] == -math.inf


def test_parameters_without_values_are_an_error() -> None:
    with pytest.raises(ValueError, match="no values were given"):
        evaluate(Parameter(0), np.ones((1, 1)))


def test_zero_to_a_power_has_the_derivatives_that_exist() -> None:
    tree = Apply("pow", (Parameter(0), Parameter(1)))
    _, jacobian = value_and_jacobian(tree, np.zeros((1, 1)), np.array([0.0, 2.0]))
    np.testing.assert_array_equal(jacobian[:, 0], [0.0, 0.0])
