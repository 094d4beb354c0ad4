"""Formulas in other units have the same values."""

from __future__ import annotations

import numpy as np
import pytest

from physdiffuser.expressions import evaluate, parse, to_text
from physdiffuser.expressions.units.rescale import FORMS, Form, rescaled

NAMES = ("a", "b")
FORMULAS = (
    "a*b",
    "2.5*a**2/b",
    "sqrt(a*b) + 3",
    "a*exp(-b/1.7) + 0.5",
    "(a - b)*(a + 2*b)/(1 + a)",
    "-a + log(b)**2",
    "abs(a)*sin(2*a - 0.3)/b**1.5",
    "pi*a**0.5/(b - 7)",
)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("text", FORMULAS)
@pytest.mark.parametrize(
    ("columns", "target"), [((24, -36), 12), ((-300, 204), -240), ((0, 0), 960), ((7, 3), 5)]
)
def test_values_are_those_of_the_old_formula(
    text: str, columns: tuple[int, int], target: int, form: Form
) -> None:
    new = np.ldexp(np.random.default_rng(0).uniform(1, 5, (30, 2)), [-columns[0], -columns[1]])
    old = np.ldexp(new, columns)
    formula = parse(text, NAMES)
    found = rescaled(formula, columns, target, form)
    assert found is not None
    assert evaluate(found.expression, new) == pytest.approx(
        np.ldexp(evaluate(formula, old), target), rel=1e-12
    )


def test_a_power_law_takes_all_powers_of_two_into_one_constant() -> None:
    found = rescaled(parse("2.512345*a**2/sqrt(b)", NAMES), (-12, -24), 12)
    assert found is not None
    assert to_text(found.expression, NAMES) == "2.512345*a**2/sqrt(b)"


def test_exact_numbers_stay_exact_where_they_are_small() -> None:
    found = rescaled(parse("3*a", NAMES), (2, 0), 0)
    assert found is not None
    assert to_text(found.expression, NAMES) == "12*a"


def test_fitted_constants_know_where_they_come_from() -> None:
    found = rescaled(parse("2.512345*a + 7.512345", NAMES), (100, 0), -20)
    assert found is not None
    assert found.origins[np.ldexp(2.512345, 80)] == (2.512345, 80)
    assert found.origins[np.ldexp(7.512345, -20)] == (7.512345, -20)


@pytest.mark.parametrize("exponent", [1030, -1080])
def test_a_constant_that_is_no_normal_double_is_refused(exponent: int) -> None:
    assert rescaled(parse("2.3*a", NAMES), (0, 0), exponent) is None
