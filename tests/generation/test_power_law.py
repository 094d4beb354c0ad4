"""Power-law factors are found in noise that hides most rows."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from physdiffuser.core.problem import Budget, Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.expressions import Variable
from physdiffuser.generation.enumeration.generator import EnumerationGenerator
from physdiffuser.noise.noise_floor import best_first, best_of_each_size, is_noisy, levels
from physdiffuser.reduction.power_law import power_law_reductions
from physdiffuser.search.archive import ParetoArchive

NAMES = ("a", "b", "c", "d")


def law(noise: float, seed: int = 0, rows: int = 800) -> Problem:
    """`a**4*(c + d)*c**2*d**2/b**5` over six decades, with noise of the same size everywhere."""
    random = np.random.default_rng(seed)
    inputs = random.uniform(1, 5, (rows, 4))
    a, b, c, d = inputs.T
    target = a**4 * (c + d) * (c * d) ** 2 / b**5
    scale = noise * np.sqrt(np.mean(target**2))
    return Problem(inputs, target + scale * random.normal(size=rows), NAMES)


@pytest.mark.parametrize("noise", [0.01, 0.05, 0.1])
def test_what_is_a_power_is_divided_out_and_the_rest_stays(noise: float) -> None:
    for seed in range(4):
        reductions = power_law_reductions(law(noise, seed))
        factors = [(dict(reduction.factors), reduction.features) for reduction in reductions]
        wanted = {Variable(0): Fraction(4), Variable(1): Fraction(-5)}
        assert (wanted, (Variable(2), Variable(3))) in factors
        assert all(1 <= len(reduction.features) <= 3 for reduction in reductions)


def test_such_a_frame_shows_the_noise() -> None:
    noisy = law(0.02)
    assert is_noisy(noisy, levels(noisy, power_law_reductions(noisy)))
    exact = law(0.0)
    assert not is_noisy(exact, levels(exact, power_law_reductions(exact)))


def test_frames_that_miss_something_are_told_from_those_that_do_not() -> None:
    noisy = law(0.02)
    right = Reduction.of_columns([(0, Fraction(4)), (1, Fraction(-5))], (2, 3))
    wrong = Reduction.of_columns([(0, Fraction(4)), (1, Fraction(-5)), (2, Fraction(5, 2))], (3,))
    bare = Reduction.of_columns((), range(4))
    known = levels(noisy, [wrong, right, bare])
    assert best_of_each_size([bare, wrong, right], known) == [right]
    assert best_first([bare, wrong, right], known) == [right, bare, wrong]


def test_the_law_is_found_soon() -> None:
    problem = law(0.02)
    a, b, c, d = problem.inputs.T
    truth = a**4 * (c + d) * (c * d) ** 2 / b**5
    floor = np.mean((problem.target - truth) ** 2) / problem.target.var()
    archive = ParetoArchive(problem)
    with np.errstate(all="ignore"):
        for candidate in EnumerationGenerator().propose(problem, archive, Budget(13)):
            archive.offer(candidate)
            if archive.best_loss < 1.02 * floor:
                return
    pytest.fail("not found")


@pytest.mark.parametrize("unit", [1e-200, 1e-20, 1e20, 1e200])
def test_units_do_not_matter(unit: float) -> None:
    problem = law(0.01)
    scaled = Problem(problem.inputs * [unit, 1, 1, 1], problem.target / unit, NAMES)
    assert power_law_reductions(scaled) == power_law_reductions(problem)


def test_negative_targets_and_columns() -> None:
    random = np.random.default_rng(1)
    inputs = np.column_stack([random.uniform(1, 4, (500, 2)), random.uniform(-1, 1, 500)])
    target = -(inputs[:, 0] ** 3) / inputs[:, 1] * (2 + inputs[:, 2]) + 0.05 * random.normal(size=500)
    reductions = power_law_reductions(Problem(inputs, target, NAMES[:3]))
    found = [(dict(reduction.factors), reduction.features) for reduction in reductions]
    assert ({Variable(1): Fraction(-1)}, (Variable(0), Variable(2))) in found or (
        {Variable(0): Fraction(3)}, (Variable(1), Variable(2))
    ) in found  # fmt: skip


def test_nothing_is_said_without_a_power_law() -> None:
    random = np.random.default_rng(2)
    inputs = random.uniform(1, 4, (300, 3))
    assert power_law_reductions(Problem(inputs, random.normal(size=300), NAMES[:3])) == []
    signed = random.uniform(-1, 1, (300, 3))
    assert power_law_reductions(Problem(signed, signed[:, 0] * signed[:, 1], NAMES[:3])) == []
    few = Problem(inputs[:12], inputs[:12, 0] * inputs[:12, 1], NAMES[:3])
    assert power_law_reductions(few) == []
