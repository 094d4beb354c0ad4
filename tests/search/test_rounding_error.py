"""The error that rounding causes is measured as the errors of formulas are."""

from __future__ import annotations

import numpy as np
import pytest

from physdiffuser.finalize.shown_rows import rounding_error


def test_without_weights_it_is_a_share_of_the_spread() -> None:
    target = np.random.default_rng(0).normal(3.0, 2.0, 1000)
    assert rounding_error(target, None, 1e-8) == pytest.approx(1e-4 * target.std())


def test_rows_of_many_decades_count_by_their_weights() -> None:
    """A proportional error of 2 per cent has a weighted rmse above that of rounding to five digits."""
    target = np.geomspace(1e-8, 1e-2, 40)
    weights = target**-2.0
    weights /= weights.mean()
    rmse = np.sqrt(np.average(np.square(0.02 * target), weights=weights))
    assert rounding_error(target, weights, 1e-9) < 0.1 * rmse
    assert rounding_error(target, None, 1e-9) > rmse
