"""How usual a form is, counted among the training laws."""

from __future__ import annotations

from fractions import Fraction

import pytest

from physdiffuser.expressions import Expression, Number, Variable, complexity, parse
from physdiffuser.expressions.tree import call, power, sub
from physdiffuser.selection.description_length import NATS_PER_UNIT, form_nats
from physdiffuser.selection.form_prior import FormPrior, events, take_apart, usual_forms

NAMES = ("m", "v", "c", "x")


def form(text: str) -> Expression:
    return parse(text, NAMES)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("m/sqrt(1 - v**2/c**2)", "m/sqrt(1 - (v/c)**2)"),
        ("m*v/c*x", "x/c*v*m"),
        ("m - v + c", "c - (v - m)"),
        ("sqrt(m*v)/c", "sqrt(m)*sqrt(v)/c"),
        ("2.5*exp(-v*x)", "1.7*exp(-x*v)"),
    ],
)
def test_order_and_brackets_do_not_matter(one: str, other: str) -> None:
    prior = usual_forms()
    assert prior.nats(form(one), 4) == pytest.approx(prior.nats(form(other), 4), abs=1e-9)


@pytest.mark.parametrize(
    ("usual", "odd"),
    [
        ("m/sqrt(1 - v**2/c**2)", "m/cos(v/c)"),
        ("m*exp(-v*x/c)", "m*log(v + exp(x*c))"),
        ("m*v*x/c**2", "m*v + x*c**2/exp(m)"),
    ],
)
def test_laws_of_physics_take_less_than_stand_ins_of_their_size(usual: str, odd: str) -> None:
    assert usual_forms().nats(form(usual), 4) < usual_forms().nats(form(odd), 4)


def test_more_columns_to_choose_from_take_more() -> None:
    assert usual_forms().nats(form("m*v"), 20) > usual_forms().nats(form("m*v"), 2)


def test_probabilities_of_the_events_in_a_place_sum_to_one_at_most() -> None:
    prior = FormPrior.counted((event, 1) for event in events(take_apart(form("m*sqrt(1 - v**2) + exp(x)/c"))))
    for place, seen in prior.counts.items():
        total = sum(prior.probability(place, event) for event in seen)
        assert 0.0 < total <= 1.0 + 1e-12
        # What was never seen there has a share as well.
        assert prior.probability(place, "never seen") > 0.0


def test_parts_of_a_product_and_of_a_sum() -> None:
    whole = take_apart(form("3*m**2/sqrt(v)"))
    assert whole.kind == "product" and whole.factor == "exact"
    assert {exponent for _, exponent in whole.parts} == {Fraction(2), Fraction(-1, 2)}
    total = take_apart(form("m - v*c + 1"))
    assert total.kind == "sum" and [part.kind for part, _ in total.parts] == ["variable", "product", "number"]


@pytest.mark.parametrize(
    "text",
    [
        "2",
        "m",
        "m*v*c*x",
        "sin(sin(cos(m)))",
        "m**v**c",
        "((m + v)*c - x)**(7/3)",
        "abs(log(m))",
        "-m",
        "tanh(m)*0.73",
    ],
)
def test_any_formula_costs_something_and_no_more_than_its_complexity(text: str) -> None:
    assert 0.0 < form_nats(form(text), 5) <= (NATS_PER_UNIT + 0.1) * complexity(form(text))


def test_a_decimal_is_as_usual_as_a_fitted_constant() -> None:
    def bell(centre: Expression) -> float:
        square = power(sub(Variable(0), centre), Number(2))
        return usual_forms().nats(call("exp", call("neg", square)), 1)

    # What the number is, is not part of the form.
    assert bell(Number(Fraction(33, 10))) == bell(Number(3.3)) != bell(Number(1))
