"""Cheap rewritings: constants near half integers, phases, powers as products."""

from __future__ import annotations

import math

import numpy as np
import pytest
from small_problems import NAMES

from physdiffuser.data import dataset_from_arrays
from physdiffuser.expressions import Apply, Number, complexity, evaluate, parse
from physdiffuser.expressions.tree import substitute, walk
from physdiffuser.pipeline import solve_dataset
from physdiffuser.search.refinement.rewriting import rounded, small_phases, without_powers, worth_rounding


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("1.0004321*a**1.49971", "1*a**1.5"),
        ("0.7312345*a", "0.7312345*a"),
        ("a*2.003456 + 130.06123", "a*2 + 130.06123"),
        ("a**-1.995678", "a**-2"),
    ],
)
def test_constants_near_half_integers_are_tried_as_such(given: str, expected: str) -> None:
    assert rounded(parse(given, NAMES)) == parse(expected, NAMES)


def test_beside_other_constants_only_exponents_are_rounded() -> None:
    given, expected = "0.7312345*a**1.4997123 + 3.5031234", "0.7312345*a**1.5 + 3.5031234"
    assert worth_rounding(parse(given, NAMES)) == parse(expected, NAMES)
    assert worth_rounding(parse("1.0004321*a**1.4997123", NAMES)) == parse("1*a**1.5", NAMES)


@pytest.mark.parametrize(
    "given",
    [
        "2*sin(a + 10.9956)",
        "cos(3*a - 47.13)*b",
        "sin(b*cos(a + 6.5) - 20.25)",
        "sin(a + 1.5) + cos(b + 11)",
        "a + 9.5",
    ],
)
def test_phases_are_brought_within_half_a_turn(given: str) -> None:
    before = substitute(
        parse(given, NAMES),
        lambda node: Number(float(node.value)) if isinstance(node, Number) and node.value % 1 else None,
    )
    after = small_phases(before)
    inputs = np.random.default_rng(0).uniform(1, 5, (50, len(NAMES)))
    np.testing.assert_allclose(evaluate(after, inputs), evaluate(before, inputs), rtol=1e-9, atol=1e-9)
    fitted = [abs(float(node.value)) for node in walk(after) if isinstance(node, Number) and not node.exact]
    assert max(fitted) <= math.pi or after == before


@pytest.mark.parametrize(
    ("formula", "wanted"),
    [
        ("a**2", "a*a"),
        ("b/a**3", "b/(a*a*a)"),
        ("(a**2 + b)**2", "(a*a + b)*(a*a + b)"),
        ("a**-2", "1/(a*a)"),
        ("a**(1/2) + exp(a**2)", "a**(1/2) + exp(a*a)"),
        ("a**b + a**1.5", "a**b + a**1.5"),
        ("a**7", "a**7"),
    ],
)
def test_whole_powers_are_products_where_powers_may_not_occur(formula: str, wanted: str) -> None:
    assert without_powers(parse(formula, NAMES)) == parse(wanted, NAMES)


@pytest.mark.parametrize(
    ("operators", "formula"),
    [
        ("mul", "a**3"),
        ("add sub mul", "a**2 - b"),
        ("add sub mul div", "a**3 - 2*a*b + 1"),
        ("add sub mul div", "a**2/(1 + b**2)"),
        ("add sub mul div sqrt", "b*sqrt(a**2 + b**2)"),
    ],
)
def test_laws_with_powers_are_found_without_the_operator(operators: str, formula: str) -> None:
    inputs = np.random.default_rng(0).uniform(1, 5, (200, 2))
    law = parse(formula, NAMES)
    allowed = operators.split()
    found = solve_dataset(
        dataset_from_arrays(inputs, evaluate(law, inputs), names=NAMES), operators=allowed, time=30
    )
    assert found.status == "exact" and found.best is not None
    used = {node.operator for node in walk(found.best.expression) if isinstance(node, Apply)}
    assert used <= set(allowed)
    assert found.best.complexity <= complexity(law) + 8
