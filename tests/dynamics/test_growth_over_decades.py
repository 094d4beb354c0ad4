"""States that change by orders of magnitude with relative errors, and what the held-out rows add."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from physdiffuser.dynamics.all_rows import CHOSEN
from physdiffuser.dynamics.solve import solve_dynamics
from physdiffuser.dynamics.trajectories.smoothing import smooth, smooth_all, smooth_logarithm
from physdiffuser.expressions import evaluate

TIMES = np.linspace(0.0, 10.0, 80)


def pulses(times: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.asarray(np.exp(4.0 * np.cos(1.9 * times)))


@pytest.mark.parametrize("sign", [1, -1])
def test_the_logarithm_of_pulses_is_smoothed(sign: int) -> None:
    rng = np.random.default_rng(0)
    values = sign * pulses(TIMES) * (1.0 + 0.03 * rng.standard_normal(TIMES.size))
    [curve] = smooth_all([(TIMES, values)])
    assert curve.sign == sign and curve.kind == "relative"
    assert 0.02 < curve.noise < 0.045
    inner = TIMES[5:-5]
    np.testing.assert_allclose(curve.value(inner), sign * pulses(inner), rtol=0.1)


def test_derivatives_and_their_errors_are_those_of_the_exponential() -> None:
    rng = np.random.default_rng(1)
    curve = smooth_logarithm(TIMES, pulses(TIMES) * (1.0 + 0.03 * rng.standard_normal(TIMES.size)))
    step, times = 1e-5, TIMES[10:20]
    for order in (0, 1):
        slope = (curve.value(times + step, order) - curve.value(times - step, order)) / (2.0 * step)
        np.testing.assert_allclose(curve.value(times, order + 1), slope, rtol=1e-5, atol=1e-3)
    np.testing.assert_allclose(curve.derivative().value(times), curve.value(times, 1))
    move = 1e-6 * rng.standard_normal(curve.spline.c.size)
    moved = curve.spline.__class__(curve.spline.t, curve.spline.c + move, curve.spline.k)
    for order in (0, 1, 2):
        expected = curve.basis(times, order) @ move
        changed = type(curve)(moved, curve.noise, curve.kind, None, 0.0, sign=1).value(times, order)
        np.testing.assert_allclose(changed - curve.value(times, order), expected, rtol=1e-3, atol=1e-6)


def test_constant_errors_and_changes_of_sign_leave_the_values() -> None:
    rng = np.random.default_rng(2)
    noisy = pulses(TIMES) + 0.5 * rng.standard_normal(TIMES.size)
    assert smooth_all([(TIMES, noisy)])[0].sign == 0
    wave = np.sin(TIMES) * (1.0 + 0.02 * rng.standard_normal(TIMES.size))
    assert smooth_all([(TIMES, wave)], "relative")[0].sign == 0
    assert smooth(TIMES, pulses(TIMES), "relative").sign == 0


def test_growth_that_only_the_last_rows_limit_is_not_called_verified() -> None:
    """The first four fifths of this logistic curve are exponential within the noise."""
    times, rng = np.linspace(0.0, 10.0, 150), np.random.default_rng(4)
    growth = 0.0017 * np.exp(0.55 * times)
    values = growth / (1.0 + growth / 10.0)
    table = {"t": times, "x": values * (1.0 + 0.01 * rng.standard_normal(times.size))}
    found = solve_dynamics(table, order=1, steps=1)
    assert not found.is_verified
    states = values[[0, -1]]
    rate = evaluate(found.expressions[0], np.column_stack([states, np.zeros(2)]))
    np.testing.assert_allclose(rate, 0.55 * states * (1.0 - states / 10.0), rtol=0.05)
    sentences = [sentence for one in found.equations if one.best for sentence in one.best.verification]
    assert CHOSEN in sentences
