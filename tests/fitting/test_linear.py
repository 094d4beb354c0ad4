"""Linear least squares: magnitudes, dependence, weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from physdiffuser.fitting.linear import linear_least_squares, power_of_two, solve_columns, unit_columns


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


@pytest.mark.parametrize(
    ("size", "power"),
    [
        (1.0, 2.0),
        (0.75, 1.0),
        (3.0, 4.0),
        (0.0, 2.0),  # as 1
        (np.inf, 2.0),
        (np.nan, 2.0),
        (-3.0, 2.0),
        (5e-324, 2.0**-1021),
        (1.7e308, 2.0**1021),
    ],
)
def test_the_power_of_two_above_a_size(size: float, power: float) -> None:
    assert power_of_two(np.array([size]))[0] == power


def test_no_columns_explain_nothing() -> None:
    target = np.array([1.0, 2.0])
    fit = linear_least_squares(np.empty((0, 2)), target)
    assert fit.rank == 0 and fit.coefficients.shape == (0,)
    np.testing.assert_array_equal(fit.residual, target)
    assert fit.residual is not target


def test_columns_of_zeros_get_no_coefficient() -> None:
    columns = np.array([[0.0, 0.0, 0.0], [1.0, 2.0, 4.0]])
    fit = linear_least_squares(columns, 3 * columns[1])
    assert fit.rank == 1
    np.testing.assert_allclose(fit.coefficients, [0.0, 3.0], atol=1e-15)
    solved = solve_columns(columns[None], 3 * columns[1])
    np.testing.assert_allclose(solved.coefficients[0], [0.0, 3.0], atol=1e-15)


def test_of_dependent_columns_the_coefficients_are_the_smallest() -> None:
    x = np.array([1.0, 2.0, 4.0])
    fit = linear_least_squares(np.array([x, x]), 6 * x)
    np.testing.assert_allclose(fit.coefficients, [3.0, 3.0])


def test_a_residual_is_unweighted_and_rows_of_weight_zero_do_not_count() -> None:
    rng = np.random.default_rng(5)
    columns, target = rng.normal(size=(2, 20)), rng.normal(size=20)
    weights = rng.uniform(0.5, 2, 20)
    weights[:5] = 0.0
    fit = linear_least_squares(columns, target, weights)
    root = np.sqrt(weights)
    expected = np.linalg.lstsq((columns * root).T, target * root, rcond=None)[0]
    np.testing.assert_allclose(fit.coefficients, expected, rtol=1e-12)
    np.testing.assert_allclose(fit.residual, target - expected @ columns, atol=1e-13)
    for factor in (1e-300, 1e300):
        scaled = linear_least_squares(columns, target, weights * factor)
        np.testing.assert_allclose(scaled.coefficients, expected, rtol=1e-12)


@pytest.mark.parametrize(("apart", "rank"), [(1e-10, 2), (1e-17, 1)])
def test_columns_count_as_dependent_at_the_rounding_of_doubles(apart: float, rank: int) -> None:
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=(2, 40))
    assert linear_least_squares(np.array([x, x + apart * y]), y).rank == rank


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_columns_and_targets_of_any_size_keep_their_digits(size: float) -> None:
    rng = np.random.default_rng(9)
    columns = rng.normal(size=(2, 30))
    weights = rng.uniform(1, 2, 30)
    target = 3 * columns[0] - 2 * columns[1]
    for scaled, factor in ((columns * size, 1 / size), (columns, 1.0)):
        fit = linear_least_squares(scaled, target, weights * size)
        np.testing.assert_allclose(fit.coefficients, np.array([3.0, -2.0]) * factor, rtol=1e-13)
        fit = linear_least_squares(scaled, target * size, weights / size)
        np.testing.assert_allclose(fit.coefficients, np.array([3.0, -2.0]) * factor * size, rtol=1e-13)


def test_refinement_recovers_digits_that_one_solution_loses() -> None:
    """The columns x**0 to x**9 on [1, 2]: the condition is about 1e10."""
    x = np.linspace(1.0, 2.0, 80)
    columns = np.array([x**k for k in range(10)])
    wanted = np.arange(1.0, 11.0)
    fit = linear_least_squares(columns, wanted @ columns)
    assert np.abs(fit.residual).max() < 1e-12 * np.abs(wanted @ columns).max()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4), st.booleans())
def test_batched_solutions_are_those_of_lstsq(seed: int, count: int, many_targets: bool) -> None:
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(5, count, 30)) + rng.normal(size=(5, count, 1))
    target = rng.normal(size=(5, 30)) if many_targets else rng.normal(size=30)
    solved = solve_columns(columns, target)
    for start in range(5):
        wanted = target[start] if many_targets else target
        expected = np.linalg.lstsq(columns[start].T, wanted, rcond=None)[0]
        np.testing.assert_allclose(solved.coefficients[start], expected, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(solved.residual[start], wanted - expected @ columns[start], atol=1e-12)
        basis = solved.basis[start]
        np.testing.assert_allclose(basis @ basis.T, np.eye(count), atol=1e-14)
        # The same span: projecting on the basis leaves the same.
        np.testing.assert_allclose(
            wanted - basis.T @ (basis @ wanted), wanted - expected @ columns[start], atol=1e-12
        )


@pytest.mark.parametrize(("apart", "dependent"), [(0.5e-11, True), (2e-11, False)])
def test_batched_columns_count_as_dependent_below_the_tolerance(apart: float, dependent: bool) -> None:
    columns = np.zeros((1, 3, 4))
    columns[0, 0, 0] = 1.0
    columns[0, 1, :2] = 1.0, apart
    columns[0, 2, 2] = 1.0
    target = np.array([1.0, 1.0, 1.0, 1.0])
    solved = solve_columns(columns, target)
    assert bool((solved.basis[0, 1] == 0.0).all()) is dependent
    assert bool(solved.coefficients[0, 1] == 0.0) is dependent
    assert solved.coefficients[0, 2] == pytest.approx(1.0)
    assert solved.residual[0, 1] == (1.0 if dependent else pytest.approx(0.0, abs=1e-12))


def test_batched_columns_are_orthogonal_though_nearly_dependent() -> None:
    rng = np.random.default_rng(7)
    x, y, z = rng.normal(size=(3, 50))
    columns = np.array([[x, x + 1e-9 * y, x + 1e-9 * z]])
    basis = solve_columns(columns, y).basis[0]
    np.testing.assert_allclose(basis @ basis.T, np.eye(3), atol=1e-13)


def test_a_batched_residual_of_large_columns_is_orthogonal_to_them() -> None:
    rng = np.random.default_rng(8)
    columns = rng.normal(size=(1, 3, 5000)) + 1e3
    target = 1e6 * columns[0, 0] + rng.normal(size=5000)
    solved = solve_columns(columns, target)
    assert np.abs(solved.basis[0] @ solved.residual[0]).max() < 1e-9


def test_the_target_is_not_written_to() -> None:
    target = np.arange(4.0)
    solve_columns(np.ones((1, 1, 4)), target)
    np.testing.assert_array_equal(target, np.arange(4.0))


@pytest.mark.parametrize("size", [1e-300, 1e-139, 1.0, 1e139, 1e300])
def test_unit_columns_at_any_magnitude(size: float) -> None:
    columns = np.array([[[3.0, 4.0], [0.0, 2.0]]]) * size
    lengths, unit = unit_columns(columns)
    np.testing.assert_allclose(lengths, np.array([[5.0, 2.0]]) * size)
    np.testing.assert_allclose(unit, [[[0.6, 0.8], [0.0, 1.0]]])


def test_unit_columns_of_zeros_and_of_what_is_not_finite() -> None:
    with np.errstate(all="ignore"):
        lengths, unit = unit_columns(np.array([[[0.0, 0.0], [np.nan, 1.0], [np.inf, 1.0], [3.0, 4.0]]]))
    assert lengths[0, 0] == 1.0 or (unit[0, 0] == 0.0).all()
    np.testing.assert_array_equal(unit[0, 0], [0.0, 0.0])
    assert not np.isfinite(lengths[0, 1:3]).any()
    assert lengths[0, 3] == 5.0
    np.testing.assert_allclose(unit[0, 3], [0.6, 0.8])
