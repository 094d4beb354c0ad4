"""Curves of one feature: each of the catalogue is found again, and laws with several constants inside."""

from __future__ import annotations

import numpy as np
import pytest

from physdiffuser.core.candidate import Candidate
from physdiffuser.core.problem import Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.expressions import Variable, evaluate, parse
from physdiffuser.expressions.tree import bind
from physdiffuser.functions.curves import best_points, skeleton
from physdiffuser.functions.family import Family, linear_form
from physdiffuser.functions.table import families_for
from physdiffuser.generation.enumeration.context import Context
from physdiffuser.generation.enumeration.parametric import POLICY as PARAMETRIC
from physdiffuser.generation.enumeration.registry import STAGES, Size
from physdiffuser.search.archive import ParetoArchive

CURVES = families_for("curves")


def offered(problem: Problem, reduction: Reduction) -> ParetoArchive:
    """What the stage proposes for a frame."""
    archive = ParetoArchive(problem)
    with np.errstate(all="ignore"):
        for item in STAGES["curves"].run(Context(problem), Size(), reduction):
            if isinstance(item, Candidate):
                archive.offer(item)
    return archive


@pytest.mark.parametrize("curve", CURVES, ids=lambda curve: curve.name)
def test_a_curve_of_the_catalogue_is_found_from_its_own_values(curve: Family) -> None:
    """With constants beside the points of the grid, and a magnitude far from 1."""
    random = np.random.default_rng(5)
    u = np.sort(random.uniform(0.5, 6.0, 60))
    with np.errstate(all="ignore"):
        grid = curve.tries("curves", u)
        inside = grid[len(grid) // 2] * 1.013
        many = len(linear_form(curve).terms)
        coefficients = np.concatenate([[0.4] if curve.spec.offset else [], np.linspace(1.1, -0.7, many)])
        tree, starts = skeleton(curve, Variable(0), inside, coefficients)
        target = 1e-12 * evaluate(bind(tree, starts), u[:, None])
    assert np.isfinite(target).all()
    assert np.ptp(target) > 1e-6 * np.abs(target).max()
    assert offered(Problem(u[:, None], target, ("u",)), Reduction.of_columns((), [0])).best_loss < 1e-12


@pytest.mark.parametrize("curve", CURVES, ids=lambda curve: curve.name)
def test_what_is_built_is_what_was_ranked(curve: Family) -> None:
    """The formula takes the values of the terms and coefficients that the grid gave."""
    random = np.random.default_rng(1)
    u = random.uniform(0.5, 6.0, 40)
    target = np.log1p(u) + 0.02 * np.sin(3 * u)
    points = list(best_points(curve, u, target, np.ones(40)))
    assert points
    for left, inside, coefficients in points:
        tree, starts = skeleton(curve, Variable(0), inside, coefficients)
        values = evaluate(bind(tree, starts), u[:, None])
        fit = np.log(values) if linear_form(curve).logarithmic else values
        variance = np.square(target - target.mean()).sum()
        assert np.square(fit - target).sum() / variance == pytest.approx(left, rel=1e-5)


@pytest.mark.parametrize(
    ("law", "limits", "rows"),
    [
        ("5.3*x/(0.8 + x**0.62)**(1/0.62)", (0.05, 30), 40),
        ("3.66 + 0.0668*x/(1 + 0.04*x**(2/3))", (5, 900), 30),
        ("1 - exp(-0.6*x)*(cos(2.3*x) + 0.26*sin(2.3*x))", (0, 6), 40),
        ("2.1e-4*x*(x - 9.7)*sqrt(36.5 - x)", (11, 35), 30),
        ("-84*(1 + 12.5*exp(-0.41*x))**(-1.43)", (0, 20), 30),
        ("1/(0.7 + 3*exp(-210/(x + 40)))", (-20, 60), 30),
        ("(1.2 + 0.73*x)/(1 + 0.31*x + 0.052*x**2)", (0, 20), 30),
    ],
)
def test_laws_of_handbooks_are_found_exactly(law: str, limits: tuple[float, float], rows: int) -> None:
    x = np.random.default_rng(3).uniform(*limits, (rows, 1))
    problem = Problem(x, evaluate(parse(law, ["x"]), x), ("x",))
    assert offered(problem, Reduction.of_columns((), [0])).best_loss < 1e-18


def test_a_factor_of_other_columns_is_divided_out() -> None:
    inputs = np.random.default_rng(0).uniform([275, 1e-9], [360, 1e-7], (50, 2))
    law = "3.03e-20*T*exp(-570.6/(T - 140))/r"
    problem = Problem(inputs, evaluate(parse(law, ["T", "r"]), inputs), ("T", "r"))
    reduction = next(reduction for reduction in _frames(problem) if reduction.features == (Variable(0),))
    assert offered(problem, reduction).best_loss < 1e-18


def test_too_few_rows_for_the_constants_give_nothing() -> None:
    x = np.linspace(1, 4, PARAMETRIC.rows_of_constant * 3 - 1)[:, None]
    problem = Problem(x, np.exp(-x[:, 0]) + 0.3 * np.sin(9 * x[:, 0]), ("x",))
    assert offered(problem, Reduction.of_columns((), [0])).offered == 0


def _frames(problem: Problem) -> list[Reduction]:
    from physdiffuser.reduction.factors import reductions

    return reductions(problem.inputs, problem.target)
