"""Fitted constants that agree with physical constants."""

from __future__ import annotations

import re

import numpy as np
import pytest

from physdiffuser.core.solution import Solution
from physdiffuser.data.arrays import dataset_from_arrays
from physdiffuser.data.statements.constants import PHYSICAL_CONSTANTS, names_constants, parse_constants
from physdiffuser.errors import UsageError
from physdiffuser.expressions import evaluate, parse, to_text
from physdiffuser.finalize.constants.physical import FARTHEST, agreement
from physdiffuser.pipeline import solve_dataset
from physdiffuser.report.text.terminal import render

scipy_constants = pytest.importorskip("scipy.constants")


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (scipy_constants.G * 1.0002, 0.0003 * scipy_constants.G, "G"),
        (scipy_constants.c**2, 1e-4 * scipy_constants.c**2, "c**2"),
        (-scipy_constants.R, 1e-4, "-R"),
        (1 / (4 * np.pi * scipy_constants.epsilon_0), 1e6, "1/(4*pi*epsilon_0)"),
        (scipy_constants.h * scipy_constants.c / scipy_constants.k, 1e-7, "h*c/k_B"),
        (scipy_constants.N_A, 1e20, "N_A"),
        (scipy_constants.sigma, 1e-12, "sigma_SB"),
    ],
)
def test_values_of_codata_are_recognised(value: float, error: float, text: str) -> None:
    found = agreement(value, error)
    assert found is not None and to_text(found.expression) == text
    known = {name: constant.value for name, constant in PHYSICAL_CONSTANTS.items()}
    exact = float(evaluate(parse(text, [], known), np.zeros((1, 1)))[0])
    assert found.value == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("error", [None, 0.0, float("inf"), float("nan"), 1.0, 1e-30])
def test_what_is_not_known_or_lies_apart_agrees_with_nothing(error: float | None) -> None:
    assert agreement(8.2, error) is None


@pytest.mark.parametrize("precision", [1e-2, 1e-3, 1e-4])
def test_arbitrary_numbers_seldom_agree(precision: float) -> None:
    values = 10.0 ** np.random.default_rng(3).uniform(-6, 6, 1000)
    found = [agreement(value, precision * value) for value in values]
    assert sum(one is not None for one in found) <= 20
    for value, one in zip(values, found, strict=True):
        assert one is None or abs(one.value - value) <= 1.01 * FARTHEST * precision * value


def gravity(**options: object) -> tuple[str, list[str | None]]:
    rng = np.random.default_rng(1)
    inputs = rng.uniform(1.0, 9.0, (200, 3)) * [1e3, 1e3, 1.0]
    clean = scipy_constants.G * inputs[:, 0] * inputs[:, 1] / inputs[:, 2] ** 2
    dataset = dataset_from_arrays(
        inputs, clean * (1 + 1e-3 * rng.standard_normal(200)), names=["m1", "m2", "r"]
    )
    best = solve_dataset(dataset, steps=6, **options).best  # type: ignore[arg-type]
    assert best is not None
    return best.text, [constant.agrees_with for constant in best.constants]


def test_a_note_names_the_constant_and_the_formula_stays() -> None:
    text, notes = gravity()
    assert notes == ["G"] and "G" not in text


def test_with_auto_the_formula_has_the_name() -> None:
    text, notes = gravity(constants="auto")
    assert text == "G*m1*m2/r**2" and notes == [None]


def energy(noise: float, **options: object) -> Solution:
    """Table of the relativistic energy in SI units."""
    rng = np.random.default_rng(0)
    inputs = np.column_stack([rng.uniform(1, 5, 300), rng.uniform(1e7, 2.8e8, 300)])
    c = scipy_constants.c
    clean = inputs[:, 0] * c**2 / np.sqrt(1 - inputs[:, 1] ** 2 / c**2)
    target = clean * (1 + noise * rng.standard_normal(300))
    dataset = dataset_from_arrays(inputs, target, names=["m", "v"], target_name="E")
    return solve_dataset(dataset, steps=20, **options)  # type: ignore[arg-type]


def test_products_of_constants_stand_in_the_formula_and_it_is_verified() -> None:
    best = energy(1e-3, constants="auto").best
    assert best is not None and best.text == "c**2*m/sqrt(1 - v**2/c**2)"
    assert best.verdict == "verified"
    assert [constant.set_to for constant in best.constants] == ["c**2", "c**2"]


@pytest.mark.parametrize("noise", [0.0, 1e-3])
def test_in_si_units_each_number_has_a_meaning_and_few_digits(noise: float) -> None:
    solution = energy(noise)
    best = solution.best
    assert best is not None and best.verdict == "verified"
    first, *others = [constant for constant in best.constants if constant.text != "1"]
    assert all(one.value == pytest.approx(scipy_constants.c**2, rel=3e-3) for one in (first, *others))
    assert first.agrees_with == "c**2"
    for text in (render(solution), best.latex, *best.derivation, *solution.warnings):
        assert not re.search(r"\d[.\d]{16,}", text), text


def test_auto_may_stand_beside_other_constants() -> None:
    assert [one.symbol.name for one in parse_constants("auto, k=0.5, c")] == ["k", "c"]
    assert names_constants("k=0.5,auto") and names_constants({"auto": None})
    assert not names_constants("c") and not names_constants(None)
    with pytest.raises(UsageError, match="is given twice"):
        parse_constants("c,auto,c")
