"""Constants that were set to special values: what is said about them."""

from __future__ import annotations

import numpy as np
import pytest

from physdiffuser.core.problem import Problem
from physdiffuser.core.solution import ConstantEstimate
from physdiffuser.data.arrays import dataset_from_arrays
from physdiffuser.expressions import Number, evaluate, parse
from physdiffuser.expressions.tree import substitute
from physdiffuser.finalize.constants.statements import constants_of
from physdiffuser.pipeline import solve_dataset


def constants(text: str, noise: float, fitted: dict[float, float] | None = None) -> list[ConstantEstimate]:
    """Constants of a formula on rows that follow it; `fitted` numbers are replaced by fitted values."""
    rng = np.random.default_rng(5)
    inputs = rng.uniform(0.5, 4.0, (200, 2))
    law = parse(text, ("x", "y"))
    clean = evaluate(law, inputs)
    target = clean + noise * clean.std() * rng.standard_normal(200)

    def freed(node: object) -> Number | None:
        if isinstance(node, Number) and fitted and float(node.value) in fitted:
            return Number(fitted[float(node.value)])
        return None

    return list(constants_of(substitute(law, freed), Problem(inputs, target, ("x", "y")))[0])


def test_a_set_constant_has_the_value_that_the_rows_give_it() -> None:
    (one,) = constants("2*pi*sqrt(x/y)", 0.01)
    assert one.set_to == one.text == "2*pi" and one.is_set and not one.exact
    assert one.low is None and one.high is None
    assert one.fitted is not None and one.sigma is not None and one.odds is not None
    assert one.fitted != 2 * np.pi and abs(one.fitted - 2 * np.pi) < 4 * one.sigma
    assert 1e-4 < one.sigma / one.fitted < 1e-2
    assert 0.0 < one.odds < 0.2


def test_a_fitted_constant_shows_its_error_and_was_not_set() -> None:
    first, second = constants("1.7*x + 3*y", 0.01, {1.7: 1.7001})
    assert (first.set_to, first.odds, first.fitted) == (None, None, 1.7001)
    assert first.sigma is not None and first.low is not None and first.low < 1.7 < (first.high or 0)
    assert first.text.startswith("1.7") and first.text.endswith(")")
    assert second.set_to == "3"


def test_odds_fall_as_the_rows_become_more_accurate() -> None:
    odds = [constants("3*x*y/4", noise)[0].odds for noise in (1e-1, 1e-2, 1e-3, 1e-4)]
    assert all(one is not None for one in odds)
    assert odds == sorted(odds, reverse=True)  # type: ignore[type-var]
    assert odds[-1] < 0.01 < odds[0]  # type: ignore[operator]


def test_what_other_constants_make_up_for_has_no_fitted_value() -> None:
    """Of `2*pi*sqrt(x/g)` the rows determine only one constant."""
    first, second = constants("2*pi*sqrt(x/9.81)", 0.01, {9.81: 9.811})
    assert first.set_to == "2*pi" and first.fitted is None and first.sigma is None and first.odds is None
    assert second.set_to is None and second.sigma is not None


@pytest.mark.parametrize("text", ["5/sqrt(1 - x**2/100)", "x**1.5*y", "sqrt(1 + x)/y"])
def test_the_form_of_a_formula_is_no_constant(text: str) -> None:
    listed = constants(text, 0.1, {5.0: 5.01, 100.0: 100.02})
    assert all(one.text not in ("1", "1.5", "3/2") for one in listed)


def test_exponents_that_are_thirds_are_constants() -> None:
    (one,) = constants("x**(2/3)", 0.01)
    assert one.set_to == "2/3" and one.fitted is not None and one.odds is not None


def test_only_the_digits_of_a_table_without_noise_prove_a_value() -> None:
    rng = np.random.default_rng(2)
    inputs = rng.uniform(1.0, 5.0, (100, 2))
    clean = 4 * np.pi * inputs[:, 0] ** 2 * inputs[:, 1]
    for noise, proof in ((0.0, True), (1e-4, False)):
        target = clean + noise * clean.std() * rng.standard_normal(100)
        best = solve_dataset(dataset_from_arrays(inputs, target), steps=5).best
        assert best is not None
        (one,) = best.constants
        assert one.set_to == "4*pi" and one.exact is proof
        assert one.odds is not None and one.odds < 0.01
