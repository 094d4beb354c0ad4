"""Smoothing, integration and shooting against known solutions."""

from __future__ import annotations

import numpy as np

from physdiffuser.dynamics.integration.flow import ORDER_4, System, integrate, simulate
from physdiffuser.dynamics.integration.shooting import Segments, fit_segments
from physdiffuser.dynamics.trajectories.smoothing import smooth, smooth_all
from physdiffuser.expressions import parse


def test_derivatives_of_noise_free_values_are_accurate() -> None:
    times = np.linspace(0.0, 10.0, 150)
    curve = smooth(times, np.sin(times))
    assert curve.interpolates
    assert np.abs(curve.value(times, 1) - np.cos(times)).max() < 1e-6


def test_the_noise_is_estimated_and_its_kind_is_told() -> None:
    rng = np.random.default_rng(0)
    times = np.sort(rng.uniform(0.0, 10.0, 300))
    clean = np.exp(0.4 * times)
    constant = smooth(times, np.sin(times) + 0.05 * rng.standard_normal(300))
    assert 0.04 < constant.noise < 0.06
    [relative] = smooth_all([(times, clean * (1 + 0.03 * rng.standard_normal(300)))])
    assert relative.kind == "relative"
    assert 0.024 < relative.noise < 0.036


def test_errors_of_the_derivative_are_those_found_by_repetition() -> None:
    rng = np.random.default_rng(1)
    times = np.linspace(0.0, 6.0, 120)
    missed, stated = [], []
    for _ in range(20):
        curve = smooth(times, np.sin(times) + 0.02 * rng.standard_normal(120))
        missed.append(curve.value(times, 1) - np.cos(times))
        stated.append(curve.error(times, 1))
    ratio = np.sqrt(np.mean(np.square(missed))) / np.sqrt(np.mean(np.square(stated)))
    assert 0.6 < ratio < 1.5


def test_integration_meets_the_solution_of_an_oscillator() -> None:
    system = System((parse("y", ["x", "y", "t"]), parse("-x", ["x", "y", "t"])))
    times = np.linspace(0.0, 6.0, 61)
    path = integrate(system, np.zeros((0, 1)), np.array([[[1.0]], [[0.0]]]), times[None, :])
    assert np.abs(path[:, 0, 0, 0] - np.cos(times)).max() < 1e-12
    coarse = integrate(system, np.zeros((0, 1)), np.array([[[1.0]], [[0.0]]]), times[None, :], method=ORDER_4)
    assert 1e-12 < np.abs(coarse[:, 0, 0, 0] - np.cos(times)).max() < 1e-4
    assert np.abs(simulate(system, np.array([1.0, 0.0]), times)[:, 0] - np.cos(times)).max() < 1e-6


def test_a_solution_that_blows_up_is_a_value() -> None:
    system = System((parse("x**2", ["x", "t"]),))
    path = simulate(system, np.array([1.0]), np.linspace(0.0, 2.0, 21))
    assert np.isfinite(path[:5]).all()
    assert np.isnan(path[-1]).all()


def test_shooting_finds_constants_and_initial_states() -> None:
    rng = np.random.default_rng(2)
    times = np.linspace(0.0, 8.0, 81)
    truth = np.column_stack([np.cos(1.3 * times), -1.3 * np.sin(1.3 * times)])
    values = truth + 0.01 * rng.standard_normal(truth.shape)
    from physdiffuser.expressions import Parameter
    from physdiffuser.expressions.tree import Variable, mul

    system = System((mul(Parameter(0), Variable(1)), mul(Parameter(1), Variable(0))))
    segments = Segments(
        times[None, :],
        values[None],
        np.array([[0.9, 0.2]]),
        np.full((1, 81, 2), 0.01),
        truth.std(axis=0),
        fixed=False,
    )
    fit = fit_segments(system, np.array([0.8, -1.2]), segments, substeps=2)
    errors = np.sqrt(np.diag(fit.covariance))
    assert np.abs(fit.parameters - [1.0, -1.69]).max() < 4 * errors.max() < 0.02
    assert np.abs(fit.initial[0] - truth[0]).max() < 0.02
    squares, counts = fit.squares()
    assert 0.7 < squares.sum() / counts.sum() < 1.3


def test_a_simulation_that_meets_a_pole_ends() -> None:
    system = System((parse("1/(1 - x)", ["x", "t"]),))
    path = simulate(system, np.array([0.0]), np.linspace(0.0, 2.0, 21), tolerance=1e-10)
    assert path[0, 0] == 0.0
    assert not np.isfinite(path[-1]).all() or abs(path[-1, 0]) < 1e6
