"""A formula with a pole between the rows is not shown if there is a form without it."""

from __future__ import annotations

import numpy as np
import pytest

from physdiffuser.core.candidate import Candidate
from physdiffuser.core.problem import Problem
from physdiffuser.expressions import evaluate, parse, to_text
from physdiffuser.finalize.evidence.poles import box_points, has_pole, regular_form
from physdiffuser.finalize.finalize import finalize
from physdiffuser.search.archive import ParetoArchive

NAMES = ("x", "y")
INPUTS = np.random.default_rng(0).uniform(0.0, 2.5, (300, 2))


@pytest.mark.parametrize(
    ("formula", "regular"),
    [
        ("x*(1 - x**5)/(1 - x)", "x + x**2 + x**3 + x**4 + x**5"),
        ("x/(1 - x) - x**6/(1 - x)", "x + x**2 + x**3 + x**4 + x**5"),
        ("(x**3 - 1)/(x - 1) + y", "1 + x + x**2 + y"),
        ("exp((1 - x**3)/(1 - x))", "exp(1 + x + x**2)"),
        ("(exp(2*x) - exp(2*y))/(exp(x) - exp(y))", "exp(x) + exp(y)"),
    ],
)
def test_what_divides_out_is_divided_out(formula: str, regular: str) -> None:
    tree = parse(formula, NAMES)
    found = regular_form(tree, INPUTS)
    assert found is not None and to_text(found, NAMES) == regular
    np.testing.assert_allclose(evaluate(found, INPUTS), evaluate(tree, INPUTS), rtol=1e-9)


@pytest.mark.parametrize("formula", ["1/(x - 1)", "x/(y - x)**2", "tan(x)", "log(x - y)", "(1 - x)**-3"])
def test_a_true_pole_is_seen_and_stays(formula: str) -> None:
    tree = parse(formula, NAMES)
    assert has_pole(tree, box_points(INPUTS)) and regular_form(tree, INPUTS) is None


@pytest.mark.parametrize("formula", ["(1 - x**2)/(1 + x)", "1/(x**2 + 0.1)", "x/(x + y)", "log(1 + x)"])
def test_no_pole_is_seen_where_none_is(formula: str) -> None:
    assert not has_pole(parse(formula, NAMES), box_points(INPUTS))


def test_the_table_shows_the_regular_form() -> None:
    target = evaluate(parse("x + x**2 + x**3 + x**4 + x**5", NAMES), INPUTS)
    problem = Problem(INPUTS, target, NAMES)
    archive = ParetoArchive(problem)
    archive.offer(Candidate(parse("x*(1 - x**5)/(1 - x)", NAMES), "test"))
    laws, chosen = finalize(archive, problem, 1e-22, float("inf"))
    assert not has_pole(laws[chosen].final, box_points(INPUTS))
    assert laws[chosen].loss < 1e-22
