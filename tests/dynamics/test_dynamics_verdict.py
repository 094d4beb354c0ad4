"""Each rule that a verified system must keep, one after the other, and whole cases that break them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.integrate import solve_ivp

from physdiffuser.dynamics.integration.shooting import ShootingFit
from physdiffuser.dynamics.search.selection import Fitted
from physdiffuser.dynamics.solve import solve_dynamics
from physdiffuser.dynamics.verification.simulation import Simulation
from physdiffuser.dynamics.verification.verdict import POLICY as VERDICT
from physdiffuser.dynamics.verification.verdict import fit_limit, judge_system, serial_correlation, with_check
from physdiffuser.expressions import Parameter, Variable
from physdiffuser.expressions.tree import mul, power

FloatArray = npt.NDArray[np.float64]

ERRORS = [np.array([0.01])]


def fitted(residuals: FloatArray | None = None, exponent: bool = False) -> Fitted:
    """`dx/dt = -0.5*x`, or with a fitted exponent, with residuals of one segment of 120 points."""
    white = np.random.default_rng(0).standard_normal((1, 120, 1))
    skeleton = power(Variable(0), Parameter(0)) if exponent else mul(Parameter(0), Variable(0))
    fit = ShootingFit(
        np.array([-0.5]), np.ones((1, 1)), white if residuals is None else residuals, np.eye(1) * 1e-4, True
    )
    return Fitted((skeleton,), fit, 0.0, 119, 1)


def simulation(**changed: Any) -> Simulation:
    """One that agrees with rows that tell something."""
    good = Simulation((np.ones((150, 1)),), np.ones(1), np.ones(1), "the last fifth", 1.0, False, True, True)
    return replace(good, **changed)


def test_a_system_that_keeps_every_rule_is_verified() -> None:
    assert judge_system(fitted(), simulation(), [20.0], False, ERRORS).verdict == "verified"


def waves() -> FloatArray:
    return np.sqrt(2.0) * np.sin(np.linspace(0.0, 20.0, 120))[None, :, None]


@pytest.mark.parametrize(
    ("system", "simulated", "gaps", "errors", "words"),
    [
        (fitted(), simulation(agrees=False), [20.0], ERRORS, "differs from the last fifth"),
        (fitted(), simulation(diverged=True), [20.0], ERRORS, "differs from the last fifth"),
        (fitted(), simulation(agrees=None, held_out=""), [20.0], ERRORS, "too few points"),
        (fitted(), simulation(informative=False), [20.0], ERRORS, "hardly varies"),
        (fitted(), simulation(), [VERDICT.min_gap - 1.0], ERRORS, "another system"),
        (fitted(1.3 * fitted().fit.residuals), simulation(), [20.0], ERRORS, "larger than the noise"),
        (fitted(waves()), simulation(), [20.0], ERRORS, "are correlated"),
        (fitted(), simulation(), [20.0], [np.array([0.2])], "hardly differs from zero"),
        (fitted(), simulation(), [20.0], [np.array([np.nan])], "hardly differs from zero"),
        (fitted(exponent=True), simulation(), [20.0], ERRORS, "an exponent was fitted"),
    ],
)
def test_one_rule_that_is_broken_is_enough(
    system: Fitted, simulated: Simulation, gaps: list[float], errors: list[FloatArray], words: str
) -> None:
    judged = judge_system(system, simulated, gaps, False, errors)
    assert judged.verdict == "unknown"
    assert any(words in sentence for sentence in judged.sentences)
    assert judged.probability < judge_system(fitted(), simulation(), [20.0], False, ERRORS).probability


def test_independent_residuals_are_not_correlated_and_waves_are() -> None:
    rng = np.random.default_rng(5)
    white = [serial_correlation(fitted(rng.standard_normal((4, 13, 1)))) for _ in range(200)]
    assert np.mean(np.array(white) > 3.0) < 0.01
    assert serial_correlation(fitted(waves())) > 10.0


def test_the_limit_of_the_mean_square_falls_with_the_number_of_values() -> None:
    assert fit_limit(60) > fit_limit(600) > 1.1


def test_a_further_check_may_only_lower_a_verdict() -> None:
    judged = judge_system(fitted(), simulation(), [20.0], False, ERRORS)
    assert with_check(judged, True, "holds").verdict == "verified"
    worse = with_check(judged, False, "does not hold")
    assert worse.verdict == "unknown" and worse.states[-1] == "failed"
    assert worse.sentences[-1] == "does not hold"


def path(
    rates: Callable[[float, FloatArray], list[float]], initial: list[float], end: float
) -> tuple[FloatArray, FloatArray]:
    times = np.linspace(0.0, end, 150)
    return times, solve_ivp(rates, (0.0, end), initial, t_eval=times, rtol=1e-10, atol=1e-11).y.T


@pytest.mark.slow
def test_an_orbit_of_which_positions_are_known_is_no_verified_system_of_first_order() -> None:
    """Along one orbit the velocity is a function of the position; nowhere else."""

    def rates(time: float, z: FloatArray) -> list[float]:
        pull = -1.3 / np.hypot(z[0], z[1]) ** 3
        return [z[2], z[3], pull * z[0], pull * z[1]]

    times, states = path(rates, [1.0, 0.0, 0.0, 1.2], 10.0)
    noisy = states[:, :2] + 0.01 * np.random.default_rng(0).standard_normal((150, 2))
    found = solve_dynamics({"t": times, "x": noisy[:, 0], "y": noisy[:, 1]}, steps=2)
    assert found.order == 2 or not found.is_verified


@pytest.mark.slow
def test_a_chaotic_system_of_which_one_state_is_hidden_is_not_verified() -> None:
    def rates(time: float, z: FloatArray) -> list[float]:
        return [10 * (z[1] - z[0]), z[0] * (28 - z[2]) - z[1], z[0] * z[1] - 8 / 3 * z[2]]

    times, states = path(rates, [1.0, 2.0, 20.0], 6.0)
    noisy = states[:, :2] * (1.0 + 0.01 * np.random.default_rng(1).standard_normal((150, 2)))
    found = solve_dynamics({"t": times, "x": noisy[:, 0], "y": noisy[:, 1]}, steps=2, order=1)
    assert not found.is_verified


def test_rows_at_rest_verify_nothing() -> None:
    times, states = path(lambda t, z: [1.1 * z[0] * (1 - z[0])], [0.1], 40.0)
    noisy = states[:, 0] + 0.01 * np.random.default_rng(2).standard_normal(150)
    assert not solve_dynamics({"t": times, "x": noisy}, steps=2, order=1).is_verified


def test_positions_of_an_oscillator_are_no_verified_system_of_first_order() -> None:
    times, states = path(lambda t, z: [z[1], -2.0 * z[0] - 0.1 * z[1]], [1.0, 0.0], 15.0)
    noisy = states[:, 0] + 0.01 * np.random.default_rng(3).standard_normal(150)
    assert not solve_dynamics({"t": times, "x": noisy}, steps=2, order=1).is_verified
