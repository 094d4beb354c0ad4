"""Scale symmetries: what is found is a symmetry of the law, and what is none is given up."""

from __future__ import annotations

from collections.abc import Generator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from physdiffuser.core.problem import Budget, Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.expressions import Variable, evaluate, parse, to_text
from physdiffuser.generation.enumeration import build
from physdiffuser.reduction.factors import hypotheses
from physdiffuser.reduction.scale_groups import scale_reductions
from physdiffuser.reduction.scale_symmetries import scalings
from physdiffuser.reduction.trend import divided, plausible, trend
from physdiffuser.search.archive import ParetoArchive

# Laws with symmetries of three columns and more, and as many features as they leave.
LAWS: list[tuple[str, dict[str, tuple[float, float]], int]] = [
    ("A*k/(l-k)*(exp(-k*t)-exp(-l*t))", {"A": (1, 5), "k": (0.2, 1), "l": (1.3, 3), "t": (0.2, 4)}, 2),
    (
        "sqrt((g*k+s*k**3/d)*tanh(k*h))",
        {"g": (5, 15), "k": (0.5, 3), "s": (1, 4), "d": (1, 3), "h": (0.2, 2)},
        2,
    ),
    ("R*T/(V-b)-a/(sqrt(T)*V*(V+b))", {"R": (1, 3), "T": (1, 4), "V": (4, 9), "b": (0.5, 2), "a": (1, 5)}, 3),
    ("v*s/(k*(1+j/i)+s)", dict.fromkeys("vskji", (1, 5)), 2),
]


def table(law: str, ranges: dict[str, tuple[float, float]], noise: float = 0.0, rows: int = 300) -> Problem:
    rng = np.random.default_rng(4)
    inputs = np.stack([rng.uniform(*limits, rows) for limits in ranges.values()], axis=1)
    target = evaluate(parse(law, tuple(ranges)), inputs)
    target = target + noise * np.sqrt(np.mean(target**2)) * rng.normal(size=rows)
    return Problem(inputs=inputs, target=target, names=tuple(ranges), seed=0)


def bare(problem: Problem) -> Reduction:
    return Reduction((), tuple(parse(name, problem.names) for name in problem.names))


def result(work: Generator[float, None, Any]) -> Any:
    """What is returned in the end; what is yielded on the way are seconds."""
    while True:
        try:
            assert 0.0 <= next(work) < 0.2
        except StopIteration as end:
            return end.value


@pytest.mark.parametrize("noise", [0.0, 0.003])
@pytest.mark.parametrize(("law", "ranges", "features"), LAWS, ids=[law for law, _, _ in LAWS])
def test_what_is_found_is_a_symmetry(law: str, ranges: dict[str, Any], features: int, noise: float) -> None:
    problem = table(law, ranges, noise)
    found = result(scale_reductions(problem, [bare(problem)]))
    reduction = next(reduction for reduction in found if len(reduction.features) == features)
    # Where the features are the same, so is the target divided by the factor. Their logarithms are linear
    # in those of the columns, so columns can be moved along what the features do not see.
    clean = table(law, ranges).inputs
    names = tuple(ranges)
    moved = clean * np.exp(np.log(2.0) * _unseen(reduction, len(names)))
    before, after = (
        evaluate(parse(law, names), inputs) / reduction.product(inputs) for inputs in (clean, moved)
    )
    np.testing.assert_allclose(reduction.values(moved), reduction.values(clean), rtol=1e-9)
    assert not np.allclose(moved, clean)
    np.testing.assert_allclose(after, before, rtol=1e-9)


def _unseen(reduction: Reduction, columns: int) -> np.ndarray:
    """A direction in the columns' logarithms along which no feature changes."""
    ones = np.ones((1, columns))
    powers = []
    for column in range(columns):
        doubled = ones.copy()
        doubled[0, column] = 2.0
        powers.append(np.log2(reduction.values(doubled)[0] / reduction.values(ones)[0]))
    _, _, directions = np.linalg.svd(np.array(powers).T)
    last: np.ndarray = directions[-1]
    return last


def test_directions_are_those_of_the_law() -> None:
    problem = table("a*b/(a*c+b*c)", {"a": (1, 5), "b": (1, 5), "c": (1, 5)})
    some = divided(problem, bare(problem))
    assert some is not None
    slopes, error = trend(*some)
    assert slopes is not None and error < 1e-3
    best = scalings(*some, slopes)[0]
    # c alone is a power and goes first; a and b grow together with y.
    assert (best.pivot, best.factor) == (2, Fraction(-1)) and not any(best.exponents)
    assert any(
        scaling.pivot == 1 and scaling.exponents[0] == -1 and not scaling.exponents[2]
        for scaling in scalings(*some, slopes)
    )


def test_frames_that_are_none_are_given_up() -> None:
    problem = table("a**2*b/(b+c)", {"a": (1, 3), "b": (1, 5), "c": (1, 5)}, 0.01)

    def reduction(factor: str, exponent: int, *features: str) -> Reduction:
        trees = tuple(parse(text, problem.names) for text in features)
        return Reduction.of([(parse(factor, problem.names), Fraction(exponent))], trees)

    right, wrong = reduction("a", 2, "b/c"), reduction("a", 2, "b*c")
    columns = bare(problem)
    assert plausible(problem, [wrong, right, columns]) == [right, columns]


def test_all_stay_where_no_polynomial_follows() -> None:
    problem = table("sin(9*a*b)", {"a": (1, 5), "b": (1, 5)})
    reductions = [
        Reduction.of([(Variable(0), Fraction(1))], [parse("a/b", problem.names)]),
        bare(problem),
    ]
    assert plausible(problem, reductions) == reductions
    assert result(scale_reductions(problem, reductions)) == []


def test_they_are_worked_out_once_in_a_run() -> None:
    law, ranges, _ = LAWS[3]
    problem = table(law, ranges)
    archive = ParetoArchive(problem)
    first = result(archive.analysis.later())
    # Whoever asks later pays the same nominal seconds and gets the same result.
    assert first and result(archive.analysis.later()) is first


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_a_law_of_groups_is_found(noise: float) -> None:
    law, ranges, _ = LAWS[0]
    problem = table(law, ranges, noise)
    archive = ParetoArchive(problem)
    with np.errstate(all="ignore"):
        for candidate in build().propose(problem, archive, Budget(steps=40)):
            archive.offer(candidate)
    clean = table(law, ranges)
    floor = float(np.mean((problem.target - clean.target) ** 2) / problem.target.var())
    assert archive.best_loss < max(1.02 * floor, 1e-20)


def test_few_rows_and_columns_that_do_not_matter() -> None:
    problem = table("a*b/(b+c)", {"a": (1, 3), "b": (1, 5), "c": (1, 5), "d": (1, 5)}, rows=5)
    assert result(scale_reductions(problem, hypotheses(problem))) == []
    problem = table("a*b/(b+c)", {"a": (1, 3), "b": (1, 5), "c": (1, 5), "d": (1, 5)})
    reduction = result(scale_reductions(problem, [bare(problem)]))[0]
    assert [to_text(feature, problem.names) for feature in reduction.features] in (["b/c"], ["c/b"])
    assert reduction.columns == {0, 1, 2} and reduction.factors
