"""Usual laws of one argument times powers of the columns."""

from __future__ import annotations

import numpy as np
import pytest

from physdiffuser import solve

RANDOM = np.random.default_rng(12)
T, D = RANDOM.uniform(0.1, 10, 100), RANDOM.uniform(1, 5, 100)
NOISE = RANDOM.standard_normal(100)


@pytest.mark.parametrize(
    "target",
    [
        D * 2.1 * (np.exp(-0.21 * T) - np.exp(-1.7 * T)),
        np.sqrt(D) * 4.3 / (1 + 12.5 * np.exp(-0.9 * T)),
        D**2 * (T / D) ** 3 / (np.exp(1.4 * T / D) - 1),
    ],
)
def test_a_usual_law_times_a_power_is_found_in_noise(target: np.ndarray) -> None:
    noisy = target + 0.01 * target.std() * NOISE
    found = solve(np.column_stack([T, D]), noisy, names=["t", "d"], steps=20, generators=["enumeration"])
    assert found.best is not None
    assert found.best.rmse < 1.15 * 0.01 * target.std()
    assert found.best.complexity <= 18, found.best.text
