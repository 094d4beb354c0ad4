"""With how many digits a column was written, and whether a formula meets them."""

from __future__ import annotations

import numpy as np
import pytest

from physdiffuser import solve
from physdiffuser.noise.precision import decimal_precision, meets_digits


@pytest.mark.parametrize("digits", [2, 4, 6, 9])
def test_rounded_numbers_have_the_precision_of_their_digits(digits: int) -> None:
    values = np.random.default_rng(0).uniform(1, 1000, 50)
    written = np.array([float(f"{value:.{digits}g}") for value in values])
    assert decimal_precision(written) == 0.5 * 10.0 ** (1 - digits)


def test_small_values_count_as_much_as_large_ones() -> None:
    target = np.array([float(f"{value:.4g}") for value in np.logspace(-6, 6, 25)])
    tolerance = decimal_precision(target)
    assert meets_digits(target, target * (1 + 1e-4), tolerance)
    # The residuals are small beside the largest value, and large beside most others.
    assert not meets_digits(target, target + 1.0, tolerance)


def test_rounded_values_over_decades_are_no_exact_table() -> None:
    """A formula of the few largest values has residuals below their rounding, but errors of 2 % elsewhere."""
    random = np.random.default_rng([77, 10])
    ranges = np.log([(1e24, 1e30), (1e2, 1e4), (1e7, 1e11)])
    large, small, distance = (np.exp(random.uniform(low, high, 80)) for low, high in ranges)
    force = 6.674e-11 * large * small / distance**2 * (1 + 0.02 * random.standard_normal(80))
    written = np.array([float(f"{value:.5g}") for value in force])
    solution = solve({"M": large, "m": small, "r": distance, "F": written}, steps=30, time=60)
    assert solution.best is not None
    assert solution.best.text.endswith("*M*m/r**2")
