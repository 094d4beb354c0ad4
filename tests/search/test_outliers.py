"""Gross outliers in small tables, decided together with the law."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from physdiffuser.core.problem import Problem
from physdiffuser.data import dataset_from_arrays
from physdiffuser.expressions import evaluate, parse
from physdiffuser.noise.outlier_policy import POLICY as OUTLIERS
from physdiffuser.noise.precision import decimal_precision
from physdiffuser.pipeline import solve_dataset
from physdiffuser.search.archive import ParetoArchive
from physdiffuser.search.outliers import OutlierFinder, Outliers
from physdiffuser.selection.description_length import rounding_loss

# Anscombe, "Graphs in statistical analysis", American Statistician 27 (1973): the third data set.
ANSCOMBE_X = np.array([10, 8, 13, 9, 11, 14, 6, 4, 12, 7, 5], float)
ANSCOMBE_Y = np.array([7.46, 6.77, 12.74, 7.11, 7.81, 8.84, 6.08, 5.39, 8.15, 6.42, 5.73])

LAWS = {
    "line": ("4 + 0.35*x", "x", 0.5, 9.0),
    "power law": ("3.2*x**1.6", "x", 0.5, 9.0),
    "exponential": ("0.7*exp(0.5*x)", "x", 0.0, 6.0),
    "decay to a level": ("2.2 + 5.3*exp(-0.8*x)", "x", 0.0, 5.0),
    "logarithm": ("1.7 + 2.6*log(x)", "x", 0.5, 20.0),
    "saturation": ("9.1*x/(2.3 + x)", "x", 0.3, 15.0),
    "reciprocal": ("41/x", "x", 0.5, 6.0),
    "product": ("1.9*x*z", "xz", 0.5, 5.0),
    "plane": ("3.3 + 1.2*x - 0.7*z", "xz", 0.0, 5.0),
}
PEAK = ("0.6 + 7/(1 + 9*(x - 2.6)**2)", "x", 0.0, 6.0)


def rows_of(
    law: tuple[str, str, float, float], rows: int, wrong: int, noise: float, seed: int
) -> tuple[Problem, set[int]]:
    """A small table with noise, and so many rows of it far off."""
    text, names, low, high = law
    random = np.random.default_rng(seed)
    inputs = random.uniform(low, high, (rows, len(names)))
    truth = evaluate(parse(text, tuple(names)), inputs)
    target = truth + noise * truth.std() * random.normal(size=rows)
    off = random.permutation(rows)[:wrong]
    target[off] += random.choice([-1, 1], wrong) * truth.std() * random.uniform(2, 5, wrong)
    return Problem(inputs, np.round(target, 4), tuple(names)), set(off.tolist())


def outliers_of(problem: Problem, *laws: str) -> Outliers | None:
    """The outliers against the usual laws and these ones."""
    archive = ParetoArchive(problem)
    for law in laws:
        from physdiffuser.core.candidate import Candidate

        archive.offer(Candidate(parse(law, problem.names), "test"))
    floor = rounding_loss(problem.target, decimal_precision(problem.target))
    return OutlierFinder(problem, archive, replace(archive.description_length, floor=floor)).find()


def test_one_outlier_beside_ten_points_on_a_line_is_named_and_the_line_is_found() -> None:
    table = dataset_from_arrays(ANSCOMBE_X[:, None], ANSCOMBE_Y, names=["x"])
    solution = solve_dataset(table, time=None, steps=12)
    assert solution.best is not None
    x = np.linspace(4, 14, 5)[:, None]
    np.testing.assert_allclose(evaluate(solution.best.expression, x), 4.01 + 0.345 * x[:, 0], rtol=2e-3)
    assert any("data row 3 lies far from the law" in warning for warning in solution.warnings)
    assert solution.rows == 10


def test_all_rows_count_where_least_squares_is_asked_for() -> None:
    table = dataset_from_arrays(ANSCOMBE_X[:, None], ANSCOMBE_Y, names=["x"])
    solution = solve_dataset(table, time=None, steps=2, loss="squared")
    assert solution.rows == 11
    assert not any("did not count" in warning for warning in solution.warnings)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize(("rows", "wrong", "noise"), [(12, 1, 0.0), (20, 2, 0.03)])
def test_gross_outliers_of_usual_laws_are_found(
    law: tuple[str, str, float, float], rows: int, wrong: int, noise: float
) -> None:
    problem, off = rows_of(law, rows, wrong, noise, seed=rows)
    found = outliers_of(problem)
    assert found is not None and set(found.rows) == off
    truth = evaluate(parse(law[0], problem.names), problem.inputs)
    error = evaluate(found.law, problem.inputs) - truth
    assert np.sqrt(np.mean(error**2)) < 0.1 * truth.std()


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize(("rows", "noise"), [(8, 0.03), (14, 0.2)])
def test_clean_small_tables_keep_all_their_rows(
    law: tuple[str, str, float, float], rows: int, noise: float
) -> None:
    problem, _ = rows_of(law, rows, 0, noise, seed=100 + rows)
    assert outliers_of(problem) is None


def test_a_law_for_all_rows_is_preferred_to_outliers_that_it_explains() -> None:
    problem, _ = rows_of(PEAK, 16, 0, 0.01, seed=3)
    assert outliers_of(problem, PEAK[0]) is None


def test_an_exact_law_has_no_outliers_and_tables_of_other_sizes_are_left_alone() -> None:
    problem, _ = rows_of(LAWS["line"], 12, 0, 0.0, seed=1)
    archive = ParetoArchive(problem)
    assert outliers_of(replace(problem, target=4 + 0.35 * problem.inputs[:, 0]), "4 + 0.35*x") is None
    for rows in (OUTLIERS.min_rows - 1, OUTLIERS.max_rows + 1):
        other, _ = rows_of(LAWS["line"], rows, 1, 0.0, seed=1)
        assert OutlierFinder(other, archive, archive.description_length).find() is None


def test_equal_steps_give_equal_answers_with_outliers() -> None:
    table = dataset_from_arrays(ANSCOMBE_X[:, None], ANSCOMBE_Y, names=["x"])
    one, other = (solve_dataset(table, time=None, steps=6, seed=4) for _ in range(2))
    assert [row.text for row in one.pareto] == [row.text for row in other.pareto]
    assert one.warnings == other.warnings
