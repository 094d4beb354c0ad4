"""Columns that act only together, in tables of many columns."""

from __future__ import annotations

import numpy as np
import pytest

from physdiffuser.core.problem import Budget, Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.expressions import evaluate, parse, to_text
from physdiffuser.generation.enumeration import build
from physdiffuser.reduction.variable_merging import merged
from physdiffuser.search.archive import ParetoArchive

LAGGED_PIPE = "(T-S)/(log(R/r)/(2*pi*k)+1/(2*pi*h*R))"
PIPE = {
    "T": (350, 500),
    "S": (280, 300),
    "R": (0.05, 0.15),
    "r": (0.01, 0.04),
    "k": (0.03, 0.2),
    "h": (4, 20),
}
ORIFICE = "c*a*sqrt(2*(p-q)/d)/sqrt(1-b**4)"
ORIFICE_RANGES = {"c": (0.6, 0.9), "a": (0.1, 1), "p": (5, 9), "q": (1, 4), "d": (0.8, 1.2), "b": (0.2, 0.7)}


def table(law: str, ranges: dict[str, tuple[float, float]], noise: float, rows: int = 250) -> Problem:
    rng = np.random.default_rng(0)
    inputs = np.stack([rng.uniform(*limits, rows) for limits in ranges.values()], axis=1)
    exact = evaluate(parse(law, tuple(ranges)), inputs)
    error = noise * np.sqrt(np.mean(exact**2)) * rng.normal(size=rows)
    return Problem(inputs, exact + error, tuple(ranges))


def reductions(problem: Problem) -> tuple[list[Reduction], float]:
    """What is merged, and the nominal seconds."""
    seconds = 0.0
    work = merged(problem, Reduction.of_columns((), range(problem.columns)))
    while True:
        try:
            seconds += next(work)
        except StopIteration as end:
            return end.value, seconds


@pytest.mark.parametrize("noise", [0.0, 0.01])
@pytest.mark.parametrize(
    ("law", "ranges", "factor", "exponent"),
    [(LAGGED_PIPE, PIPE, "T - S", 1), (ORIFICE, ORIFICE_RANGES, "p - q", 0.5)],
)
def test_a_difference_is_seen_among_many_columns(
    law: str, ranges: dict[str, tuple[float, float]], factor: str, exponent: float, noise: float
) -> None:
    problem = table(law, ranges, noise)
    found, seconds = reductions(problem)
    first = found[0]
    assert [(to_text(base, problem.names), float(power)) for base, power in first.factors] == [
        (factor, exponent)
    ]
    assert len(first.features) == 4
    assert 0.0 < seconds < 0.5


@pytest.mark.parametrize("noise", [0.0, 0.01])
@pytest.mark.parametrize(
    "law",
    ["a*b*exp(-c/d)*g*h", "a*b/c + d*g/h", "sqrt(a)*c*(b+1)/(d*(g+h*a))", "a*(1+0.1*sin(5*b))*c*d/(g*h)"],
)
def test_columns_that_act_alone_stay_alone(law: str, noise: float) -> None:
    problem = table(law, dict.fromkeys("abcdgh", (1.0, 4.0)), noise)
    assert not reductions(problem)[0]


def test_operators_are_kept_to() -> None:
    problem = table(ORIFICE, ORIFICE_RANGES, 0.0)
    allowed = Problem(
        problem.inputs,
        problem.target,
        problem.names,
        operators=frozenset({"add", "mul", "div", "sqrt", "pow"}),
    )
    for reduction in reductions(allowed)[0]:
        trees = [*reduction.features, *(base for base, _ in reduction.factors)]
        assert all(allowed.allows(tree) for tree in trees)


def test_few_columns_are_left_to_the_collapse() -> None:
    assert reductions(table("(a-b)*c", dict.fromkeys("abc", (1.0, 4.0)), 0.0)) == ([], 0.0)


def test_a_law_of_a_difference_among_six_columns_is_found() -> None:
    problem = table(LAGGED_PIPE, PIPE, 0.0)
    archive = ParetoArchive(problem)
    for candidate in build().propose(problem, archive, Budget(60)):
        archive.offer(candidate)
        if archive.best_loss < 1e-18:
            break
    assert archive.best_loss < 1e-18
