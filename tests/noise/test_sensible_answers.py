"""Tables of the kinds that once had nonsensical answers: noise, few rows, free constants, SI magnitudes.

The shipped table of attractions is in `tests/search/test_noise_inference.py`.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from benchmarks_feynman.measured_tables import measured_table
from physdiffuser import solve
from physdiffuser.core.solution import Equation
from physdiffuser.expressions import evaluate, to_text
from physdiffuser.expressions.tree import variables

FloatArray = np.ndarray


def best_of(inputs: FloatArray, target: FloatArray, names: list[str], steps: int = 8) -> Equation:
    best = solve(inputs, target, names=names, target="y", steps=steps).best
    assert best is not None
    return best


@pytest.mark.parametrize(
    ("number", "factors"),
    [(0, (2.3, -1.0, 1.0, -2.0)), (1, (0.81, 2.0, -1.0, 0.5))],
)
def test_of_forty_rows_no_column_is_forgotten_by_a_verified_law(
    number: int, factors: tuple[float, ...]
) -> None:
    rng = np.random.default_rng(number)
    inputs = rng.uniform(1.0, 5.0, (40, 3))
    clean = factors[0] * np.prod(inputs ** np.array(factors[1:]), axis=1)
    best = best_of(inputs, clean * (1 + 0.01 * rng.normal(size=40)), ["a", "b", "c"])
    assert variables(best.expression) == {0, 1, 2} or best.verdict != "verified"
    np.testing.assert_allclose(evaluate(best.expression, inputs), clean, rtol=0.02)


def test_an_error_of_two_per_cent_and_an_irrelevant_column_give_a_plain_reciprocal() -> None:
    rng = np.random.default_rng(1)
    inputs = rng.uniform(1.0, 5.0, (120, 3))
    clean = 3.7 * inputs[:, 0] / inputs[:, 1]
    best = best_of(inputs, clean * (1 + 0.02 * rng.normal(size=120)), ["f", "u", "w"])
    assert re.fullmatch(r"[\d.]+\*f/u", best.text), best.text


@pytest.mark.parametrize(("value", "exponent"), [(1.73, 0.67), (10.4, 3.1)])
def test_free_constants_are_not_called_special(value: float, exponent: float) -> None:
    rng = np.random.default_rng(7)
    x = rng.uniform(0.5, 8.0, (100, 1))
    clean = value * x[:, 0] ** exponent
    best = best_of(x, clean * (1 + 0.01 * rng.normal(size=100)), ["x"])
    text = to_text(best.expression, ["x"])
    assert not re.search(r"pi|sqrt\(\d|\b\d+/\d+\b", text), text
    assert not any(constant.exact for constant in best.constants)
    factor, power = best.constants
    assert factor.value == pytest.approx(value, rel=0.02) and abs(power.value) == pytest.approx(
        abs(exponent), abs=0.02
    )


def test_a_power_law_over_decades_leaves_no_pattern_among_the_faint() -> None:
    rng = np.random.default_rng(3)
    mass = np.exp(rng.uniform(np.log(0.2), np.log(20.0), 40))
    clean = 1.1 * mass**3.9
    best = best_of(mass[:, None], clean * np.exp(0.15 * rng.normal(size=40)), ["M"])
    faint = np.sort(mass)[:12]
    ratio = evaluate(best.expression, faint[:, None]) / (1.1 * faint**3.9)
    np.testing.assert_allclose(ratio, 1.0, atol=0.25)


def test_the_law_of_alpha_decay_has_no_constants_set_by_chance() -> None:
    table = measured_table("alpha_decay")
    best = best_of(table.inputs, table.target, list(table.names))
    assert not any(constant.exact for constant in best.constants)
    assert "pi" not in best.text
    residual = table.target - evaluate(best.expression, table.inputs)
    charge, energy = table.inputs.T
    usual = np.column_stack([charge / np.sqrt(energy), np.ones(table.rows)])
    left = table.target - usual @ np.linalg.lstsq(usual, table.target, rcond=None)[0]
    assert float(np.mean(residual**2)) < 1.3 * float(np.mean(left**2))


def test_a_relativistic_energy_in_si_has_the_form_of_a_textbook() -> None:
    rng = np.random.default_rng(0)
    mass, speed = rng.uniform(1e-30, 9e-30, 200), rng.uniform(1e7, 2.9e8, 200)
    energy = mass * 299792458.0**2 / np.sqrt(1 - (speed / 299792458.0) ** 2)
    best = best_of(np.column_stack([mass, speed]), energy, ["m", "v"], steps=60)
    assert re.fullmatch(r"[\d.e+]+\*m/sqrt\(1 - v\*\*2/[\d.e+]+\)", best.text), best.text
