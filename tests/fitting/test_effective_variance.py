"""Fits with errors of the inputs: York's line, consistency, and coverage of the intervals."""

from __future__ import annotations

import numpy as np
import pytest

from physdiffuser.expressions import Expression, evaluate, parse
from physdiffuser.expressions.tree import free_constants
from physdiffuser.fitting import refit
from physdiffuser.fitting.effective_variance import effective_fit
from physdiffuser.fitting.uncertainty import uncertainty

# Pearson's data with York's weights; slope and intercept as in Reed, *Am. J. Phys.* 60 (1992).
PEARSON_X = np.array([0.0, 0.9, 1.8, 2.6, 3.3, 4.4, 5.2, 6.1, 6.5, 7.4])
PEARSON_Y = np.array([5.9, 5.4, 4.4, 4.6, 3.5, 3.7, 2.8, 2.8, 2.4, 1.5])
WEIGHTS_X = np.array([1000, 1000, 500, 800, 200, 80, 60, 20, 1.8, 1.0])
WEIGHTS_Y = np.array([1, 1.8, 4, 8, 20, 20, 70, 70, 100, 500])


def constants(law: Expression) -> np.ndarray:
    return np.array(free_constants(law)[1])


def test_the_line_of_york() -> None:
    fit = effective_fit(
        parse("5.8e0 - 0.5e0*x", ["x"]),
        PEARSON_X[:, None],
        PEARSON_Y,
        (WEIGHTS_X**-0.5)[:, None],
        WEIGHTS_Y**-0.5,
    )
    assert fit is not None
    intercept, slope = constants(fit.expression)
    assert abs(slope) == pytest.approx(0.480533407, rel=1e-5)
    assert intercept == pytest.approx(5.479910224, rel=1e-5)


@pytest.mark.parametrize("stated", [True, False])
def test_the_slope_is_not_too_small(stated: bool) -> None:
    rng = np.random.default_rng(0)
    rows, error = 4_000, 0.4
    x = rng.uniform(-2, 2, rows)
    y = 1.7 * x + 0.3 + 0.5 * rng.standard_normal(rows)
    seen = (x + error * rng.standard_normal(rows))[:, None]
    law = parse("1.5e0*x + 0.3e0", ["x"])
    plain = constants(refit(law, seen, y).expression)
    fit = effective_fit(law, seen, y, np.full((rows, 1), error), np.full(rows, 0.5) if stated else None)
    assert fit is not None
    assert plain[0] < 1.57
    assert constants(fit.expression)[0] == pytest.approx(1.7, abs=0.06)
    assert np.sqrt(fit.variance.mean()) == pytest.approx(np.hypot(0.5, 1.7 * error), rel=0.05)


def inside(law: str, truth: list[float], rows: int, tables: int, aware: bool) -> float:
    """Share of constants within their 95 % intervals, with and without regard to the errors of the inputs."""
    rng = np.random.default_rng(rows)
    start = parse(law, ["x"])
    held = []
    for _ in range(tables):
        x = rng.uniform(0.5, 4, (rows, 1))
        y = evaluate(start, x) + 0.02 * rng.standard_normal(rows)
        seen = x + 0.05 * rng.standard_normal((rows, 1))
        errors = np.full((rows, 1), 0.05)
        sigma = np.full(rows, 0.02)
        if aware:
            fit = effective_fit(start, seen, y, errors, sigma)
            assert fit is not None
            law_fitted, sigma = fit.expression, np.sqrt(fit.variance)
        else:
            law_fitted = refit(start, seen, y).expression
        weights = sigma**-2.0
        skeleton, values = free_constants(law_fitted)
        known = uncertainty(
            skeleton,
            np.array(values),
            seen,
            y,
            weights=weights,
            sigma=float(weights.mean() ** -0.5),
        )
        low, high = known.intervals().T
        held.append((low <= truth) & (truth <= high))
    return float(np.mean(held))


LAWS = [("2.3e0*x + 0.7e0", [2.3, 0.7]), ("3.1e0*exp(-0.6e0*x)", [3.1, 0.6]), ("1.9e0*x**1.4e0", [1.9, 1.4])]


@pytest.mark.parametrize(("law", "truth"), LAWS)
def test_intervals_hold_the_constants(law: str, truth: list[float]) -> None:
    signed = [
        abs(value) * np.sign(found) for value, found in zip(truth, constants(parse(law, ["x"])), strict=True)
    ]
    aware, unaware = (inside(law, signed, 60, 300, aware) for aware in (True, False))
    assert 0.92 <= aware <= 0.98
    assert unaware < 0.85


def test_without_errors_of_inputs_it_is_least_squares() -> None:
    rng = np.random.default_rng(3)
    x = rng.uniform(1, 4, (50, 1))
    y = 2.3 * x[:, 0] + 0.1 * rng.standard_normal(50)
    law = parse("2.2e0*x", ["x"])
    fit = effective_fit(law, x, y, np.zeros((50, 1)))
    assert fit is not None
    assert constants(fit.expression) == pytest.approx(constants(refit(law, x, y).expression), rel=1e-6)
