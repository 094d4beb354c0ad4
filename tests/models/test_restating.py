"""Formulas as the networks would write them."""

from __future__ import annotations

import random

import numpy as np
import pytest

from physdiffuser.expressions import Expression, Number, evaluate, parse, to_prefix
from physdiffuser.expressions.tree import bind, mul, sub
from physdiffuser.fitting import fit_constants
from physdiffuser.models.tokens.arrangement import total
from physdiffuser.models.tokens.canonical_skeleton import canonical_skeleton
from physdiffuser.models.tokens.skeleton import with_linear_coefficients
from physdiffuser.training.laboratory import LaboratorySampler
from physdiffuser.training.laws import Law, LawSampler
from physdiffuser.training.stream import target_skeleton

NAMES = ("m", "v", "c", "x")


def form(text: str) -> Expression:
    return parse(text, NAMES)


def words(text: str) -> str:
    return " ".join(to_prefix(canonical_skeleton(form(text))))


def with_numbers(law: Law, source: random.Random) -> Expression:
    """A law of the stream as a search would find it, every constant a number."""
    terms = [(sign, mul(Number(source.uniform(0.3, 3.0)), term)) for sign, term in law.terms]
    return bind(total(terms), [source.uniform(0.3, 3.0) for _ in range(law.constants)])


@pytest.mark.parametrize(("sampler", "share"), [(LawSampler, 0.96), (LaboratorySampler, 0.9)])
def test_training_laws_come_back_as_they_were_written(
    sampler: type[LawSampler | LaboratorySampler], share: float
) -> None:
    source = random.Random(5)
    laws = sampler(source)
    drawn = [laws.sample() for _ in range(400)]
    same = [
        to_prefix(canonical_skeleton(with_numbers(law, source))) == to_prefix(target_skeleton(law))
        for law in drawn
    ]
    assert np.mean(same) >= share


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("m*v*c", "2.5*c*m*v"),
        ("m/sqrt(1 - v**2/c**2)", "m*(1 - (v/c)**2)**(-1/2)"),
        ("m - v + c", "c - (v - m)"),
        ("sqrt(m)*sqrt(v)/c", "3*sqrt(m*v)/c"),
        ("exp(-1.7*x)", "exp(x*(-0.3))"),
        ("1.5 + 0.4*m", "m - 0.7"),
        ("0.3/(x + 4.1)", "1/(2.2 + x)"),
    ],
)
def test_order_brackets_and_numbers_in_front_do_not_matter(one: str, other: str) -> None:
    assert words(one) == words(other)


def test_numbers_inside_are_constants_and_small_ones_stay() -> None:
    assert words("exp(-0.31*x)") == "exp neg mul C x4"
    assert words("sin(2*x)") == "sin mul 2 x4"
    assert words("m*x**1.37") == "mul x1 pow x4 C"
    assert words("x**(1/3)") == "pow x4 C"
    assert words("2*pi*sqrt(m/v)") == "sqrt div x1 x2"


@pytest.mark.parametrize(
    "text",
    [
        "0.4*m*exp(-1.3*v) + 2.1*c - 0.7",
        "m*x/(1.7 + x)",
        "sqrt(m**2 + 2.4*v**2)/c",
        "-(m - v)/(1 - m*v/(9.3*c**2))",
        "1.2*sin(0.8*x - 0.3*m)*v**1.6",
    ],
)
def test_least_squares_restores_what_was_left_out(text: str) -> None:
    inputs = np.random.default_rng(0).uniform(0.5, 2.0, (200, 4))
    target = evaluate(form(text), inputs)
    fit = fit_constants(with_linear_coefficients(canonical_skeleton(form(text))), inputs, target, starts=12)
    np.testing.assert_allclose(evaluate(fit.expression, inputs), target, rtol=1e-6, atol=1e-8)


def test_a_difference_keeps_its_sign_inside_a_function() -> None:
    difference = sub(form("m"), form("v"))
    assert to_prefix(canonical_skeleton(difference)) == ["add", "x1", "x2"]  # signs of terms are restored
    assert words("exp(m - v)") == "exp sub x1 x2"
    assert words("exp(-m - v)") == "exp neg add x1 x2"
