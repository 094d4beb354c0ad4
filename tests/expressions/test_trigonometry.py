"""Sine and cosine against exact references."""

from __future__ import annotations

import numpy as np
import pytest

from physdiffuser.expressions.simplification.trigonometry import cos, sin


@pytest.mark.parametrize("decade", [-300, -8, 0, 1, 3, 6, 10, 16, 200])
def test_against_libm(decade: int) -> None:
    points = np.random.default_rng(decade + 300).uniform(-(10.0**decade), 10.0**decade, 20_000)
    np.testing.assert_allclose(sin(points), np.sin(points), rtol=1e-15, atol=0)
    np.testing.assert_allclose(cos(points), np.cos(points), rtol=0, atol=5e-16)


def test_special_values() -> None:
    points = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, np.pi, np.pi / 2, 1e308, 1e-300])
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(sin(points), np.sin(points), rtol=1e-15)
        np.testing.assert_allclose(cos(points), np.cos(points), rtol=0, atol=5e-16)
        assert np.signbit(sin(points))[1]


def test_into_a_buffer_and_in_single_precision() -> None:
    points = np.linspace(-4, 4, 50)
    buffer = np.empty(50)
    assert sin(points, buffer) is buffer
    np.testing.assert_array_equal(buffer, sin(points))
    single = points.astype(np.float32)
    assert cos(single).dtype == np.float32
    np.testing.assert_allclose(cos(single), np.cos(points), atol=1e-6)
    assert sin(np.float64(0.5)) == np.sin(0.5)
