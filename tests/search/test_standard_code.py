"""What usual laws of one input cost, and how fitted signs and rare places are counted."""

from __future__ import annotations

import math

import numpy as np
import pytest

from physdiffuser.expressions import Expression, Number, parse
from physdiffuser.expressions.tree import substitute
from physdiffuser.selection.description_length import form_nats
from physdiffuser.selection.form_prior import usual_forms
from physdiffuser.selection.standard_code import FURTHER_NATS, STANDARD_NATS, standard_nats, usual_nats


def fitted(text: str, *names: str) -> Expression:
    """A formula whose decimals are fitted constants."""

    def free(node: Expression) -> Expression | None:
        is_decimal = isinstance(node, Number) and float(node.value) != int(node.value)
        return Number(float(node.value)) if is_decimal else None

    return substitute(parse(text, names or ("x",)), free)


@pytest.mark.parametrize(
    "text",
    [
        "1.5/(1 + 2.5*exp(0.5*x))",
        "1.5*exp(2.5*exp(0.5*x))",
        "1.5*(1 - 2.5*exp(0.5*x))**2",
        "1.5*x**2.5/(0.5 + x**2.5)",
        "1.5*(1/x**12 - 0.5/x**6)",
    ],
)
def test_a_usual_law_costs_little_however_rare_its_parts_are(text: str) -> None:
    law = fitted(text)
    by_parts = usual_forms().nats(law, 1)
    assert STANDARD_NATS <= usual_nats(law, 1) < max(by_parts, FURTHER_NATS)


def test_a_formula_of_two_columns_is_not_in_the_list() -> None:
    law = fitted("1.5/(1 + 2.5*exp(0.5*x*y))", "x", "y")
    assert standard_nats(law, 2, 20.0) == math.inf


def test_a_usual_law_costs_no_more_where_a_judge_doubts_it() -> None:
    law = fitted("1.5/(1 + 2.5*exp(0.5*x))")
    assert form_nats(law, 1, conditional=80.0) == form_nats(law, 1)
    other = fitted("1.5/(1 + 2.5*exp(0.5*x**3.5))")
    assert form_nats(other, 1, conditional=80.0) > form_nats(other, 1)


def test_the_sign_of_a_fitted_number_costs_nothing() -> None:
    plus, minus = (fitted(f"cos(x)*sin(1.3*y {sign} 0.57)", "x", "y") for sign in "+-")
    assert usual_forms().nats(plus, 2) == pytest.approx(usual_forms().nats(minus, 2))


def test_what_was_never_counted_in_a_place_costs_as_in_a_wider_one() -> None:
    prior = usual_forms()
    rare = fitted("x*(1/sqrt(1 - y**2/8.7) - 1)", "x", "y")
    assert np.isfinite(prior.nats(rare, 2)) and prior.nats(rare, 2) < 40
