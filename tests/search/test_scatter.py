"""What the rows say of their errors, before any law is known."""

from __future__ import annotations

import numpy as np
import pytest

from physdiffuser.data import dataset_from_arrays
from physdiffuser.errors import DataError
from physdiffuser.pipeline import solve_dataset
from physdiffuser.search.scatter import look, weigh

SEEDS = range(8)


def readings(seed: int, rows: int = 25, relative: float = 0.0, constant: float = 0.0):  # type: ignore[no-untyped-def]
    """A power law over three decades with errors of either kind."""
    random = np.random.default_rng(seed)
    x = np.geomspace(0.02, 20, rows)
    y = 240 * x**-0.75
    y = y * (1 + relative * random.normal(size=rows)) + constant * y.max() * random.normal(size=rows)
    return x[:, None], y


def test_errors_in_proportion_are_told_from_constant_ones() -> None:
    relative = [look(*readings(seed, relative=0.04)).weights is not None for seed in SEEDS]
    positive = [(x, y) for x, y in (readings(seed, constant=1e-3) for seed in SEEDS) if (y > 0).all()]
    constant = [look(x, y).weights is not None for x, y in positive]
    assert all(relative) and positive and not any(constant)


def test_weights_fall_with_the_square_of_the_value() -> None:
    x, y = readings(0, relative=0.03)
    weights = look(x, y).weights
    assert weights is not None and weights.mean() == pytest.approx(1)
    slope = np.polyfit(np.log(y), np.log(weights), 1)[0]
    assert slope == pytest.approx(-2, abs=0.1)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_misprint_is_found_and_nothing_else(seed: int) -> None:
    x, y = readings(seed, relative=0.02)
    assert look(x, y).off == ()
    y[seed + 3] *= 10
    assert look(x, y).off == (seed + 3,)


def test_nothing_is_said_of_noise_or_of_signs_that_change() -> None:
    random = np.random.default_rng(0)
    x = random.uniform(1, 5, (60, 2))
    for y in (random.normal(size=60), random.uniform(1, 9, 60)):
        found = look(x, y)
        assert found.weights is None and found.off == ()


def test_given_weights_and_options_overrule() -> None:
    x, y = readings(1, relative=0.04)
    given = dataset_from_arrays(x, y, weights=np.linspace(1, 2, len(y)))
    assert weigh(given, "squared", "auto")[0].weights is given.weights
    plain = dataset_from_arrays(x, y)
    assert weigh(plain, "auto", "constant")[0].weights is None
    dataset, loss, said = weigh(plain, "auto", "relative")
    assert dataset.weights is not None and loss == "squared" and said == ()
    with pytest.raises(DataError, match="which is 0 in some rows"):
        weigh(dataset_from_arrays(x, np.where(np.arange(len(y)) == 2, 0.0, y)), "auto", "relative")


def test_a_law_over_decades_with_a_misprint_is_found() -> None:
    x, y = readings(3, relative=0.02)
    y[7] *= 10
    solution = solve_dataset(dataset_from_arrays(x, y, names=["m"]), time=None, steps=40)
    assert solution.best is not None
    np.testing.assert_allclose(
        solution.best.expression and [float(c.value) for c in solution.best.constants][:1], [240], rtol=0.05
    )
    assert any("data row 8 " in warning for warning in solution.warnings)
    assert any("in proportion" in warning for warning in solution.warnings)
