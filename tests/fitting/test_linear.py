"""Linear least squares: magnitudes, dependence, weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from physdiffuser.fitting.linear import linear_least_squares, solve_columns


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(-34, 30), st.integers(-34, 30))
def test_exact_coefficients_at_any_magnitude(seed: int, count: int, size: int, target_size: int) -> None:
    rng = np.random.default_rng(seed)
    scales = 10.0 ** rng.uniform(-34, 30, count)
    columns = rng.normal(size=(count, 40)) * scales[:, None] * 10.0**size
    coefficients = rng.uniform(0.5, 2, count) / scales * 10.0 ** (target_size - size)
    target = coefficients @ columns
    fit = linear_least_squares(columns, target)
    assert fit.rank == count
    np.testing.assert_allclose(fit.coefficients, coefficients, rtol=1e-11)
    batched = solve_columns(columns[None], target)
    np.testing.assert_allclose(batched.coefficients[0], coefficients, rtol=1e-11)


def test_dependent_columns_are_seen_and_harmless() -> None:
    rng = np.random.default_rng(1)
    columns = rng.normal(size=(3, 50))
    columns[2] = 2.0 * columns[0] - columns[1]
    target = columns[0] + columns[1]
    fit = linear_least_squares(columns, target)
    assert fit.rank == 2
    np.testing.assert_allclose(fit.coefficients @ columns, target, atol=1e-13)
    solved = solve_columns(columns[None], target)
    assert solved.coefficients[0, 2] == 0.0
    assert np.abs(solved.basis[0, 2]).max() == 0.0
    assert np.abs(solved.residual).max() < 1e-13


def test_weights_are_repeated_rows() -> None:
    rng = np.random.default_rng(2)
    columns, target = rng.normal(size=(2, 30)), rng.normal(size=30)
    times = rng.integers(1, 4, 30)
    weighted = linear_least_squares(columns, target, times.astype(float))
    repeated = linear_least_squares(np.repeat(columns, times, axis=1), np.repeat(target, times))
    np.testing.assert_allclose(weighted.coefficients, repeated.coefficients, rtol=1e-12)


def test_agrees_with_lstsq_when_ill_conditioned() -> None:
    x = np.linspace(1.0, 2.0, 60)
    columns = np.array([x**k for k in range(8)])
    target = np.sin(3 * x)
    ours = linear_least_squares(columns, target)
    theirs = np.linalg.lstsq(columns.T, target, rcond=None)[0]
    assert np.sum(ours.residual**2) <= np.sum((target - theirs @ columns) ** 2) * (1 + 1e-6)


def test_starts_that_are_not_finite_do_not_spoil_the_others() -> None:
    rng = np.random.default_rng(3)
    columns = rng.normal(size=(3, 2, 20))
    columns[1, 0, 4] = np.nan
    target = rng.normal(size=20)
    with np.errstate(all="ignore"):
        solved = solve_columns(columns, target)
    assert np.isnan(solved.residual[1]).all()
    for start in (0, 2):
        expected = linear_least_squares(columns[start], target).coefficients
        np.testing.assert_allclose(solved.coefficients[start], expected, rtol=1e-12)


@pytest.mark.parametrize("rows", [1, 2])
def test_fewer_rows_than_columns(rows: int) -> None:
    rng = np.random.default_rng(4)
    columns, target = rng.normal(size=(3, rows)), rng.normal(size=rows)
    fit = linear_least_squares(columns, target)
    assert fit.rank == rows
    np.testing.assert_allclose(fit.coefficients @ columns, target, atol=1e-12)
    coefficients = solve_columns(columns[None], target).coefficients
    np.testing.assert_allclose(coefficients[0] @ columns, target, atol=1e-12)
