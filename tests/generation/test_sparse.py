"""Sparse regression: the selection against known supports, and laws it must find by itself."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from physdiffuser.core.candidate import Candidate
from physdiffuser.core.problem import Budget, Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.expressions import Variable, evaluate, parse, to_text
from physdiffuser.fitting import refit
from physdiffuser.generation.sparse import build
from physdiffuser.generation.sparse.dictionary import make, whole_powers
from physdiffuser.generation.sparse.implicit import quadratics
from physdiffuser.generation.sparse.logarithmic import logarithmic
from physdiffuser.generation.sparse.regression import enough_rows, exact_span, forward, residual_of, scaled
from physdiffuser.search.archive import ParetoArchive


def search(
    formula: str, ranges: dict[str, tuple[float, float]], steps: int, noise: float = 0.0, rows: int = 800
) -> tuple[ParetoArchive, float]:
    """The archive after so many steps of sparse regression alone, and the loss of the truth."""
    random = np.random.default_rng(0)
    inputs = np.stack([random.uniform(*ranges[name], rows) for name in ranges], axis=1)
    clean = evaluate(parse(formula, list(ranges)), inputs)
    target = clean + noise * np.sqrt(np.mean(clean**2)) * random.normal(size=rows)
    problem = Problem(inputs, target, tuple(ranges))
    archive = ParetoArchive(problem)
    with np.errstate(all="ignore"):
        for candidate in build().propose(problem, archive, Budget(steps)):
            archive.offer(candidate)
    return archive, float(np.mean((target - clean) ** 2) / target.var())


@pytest.mark.parametrize(
    ("formula", "ranges"),
    [
        ("a*b + c*d + e*f", dict.fromkeys("abcdef", (1, 5))),
        ("sqrt(a**2 + b**2 + 2*a*b*cos(t))", {"a": (1, 5), "b": (1, 5), "t": (0.2, 3)}),
        ("k/((a - b)**2 + (c - d)**2)", {"k": (1, 2), "a": (3, 4), "b": (1, 2), "c": (3, 4), "d": (1, 2)}),
        ("3.1 - 2.7*x + 0.4*x**2 - 0.05*x**5", {"x": (-2, 3)}),
        ("(a + b)/(1 + a*b)", {"a": (0.1, 3), "b": (0.1, 3)}),
        ("(sin(a) + m*cos(a))/(cos(a) - m*sin(a))", {"a": (0.05, 0.6), "m": (0.1, 0.6)}),
        ("tan(a) - 4.9*w/cos(a)**2", {"a": (0.2, 1.3), "w": (0.01, 0.5)}),
        ("(a + b - sqrt((a - b)**2 + 4*c**2))/2", {"a": (1, 5), "b": (-3, 3), "c": (0.5, 4)}),
        ("(sqrt(k**2 + 4*k*c) - k)/2", {"k": (0.1, 2), "c": (0.1, 3)}),
        ("(sqrt(b**2 + 4*a*c) - b)/(2*a)", {"a": (1, 3), "b": (0.5, 2), "c": (1, 4)}),
        ("sqrt((1 + 4*z**2*r**2)/((1 - r**2)**2 + 4*z**2*r**2))", {"z": (0.1, 0.7), "r": (0.1, 3)}),
        ("log(a) + (1 - 1/n)*(1 - a) + x*(1 - a)**2", {"a": (0.1, 0.9), "n": (2, 20), "x": (0.2, 2)}),
        ("log(x**3 + 1.7*x + 0.9)", {"x": (0, 3)}),
        ("log(a**2 + 0.4*a*b + 1.3*b + 0.2)", {"a": (0, 3), "b": (0, 3)}),
        ("(x**6 - 2*x**3 + 1.5)/(x**4 + x + 2.7)", {"x": (-3, 3)}),
    ],
)
def test_clean_laws_are_found_exactly(formula: str, ranges: dict[str, tuple[float, float]]) -> None:
    archive, _ = search(formula, ranges, 60)
    assert archive.best_loss < 1e-18


@pytest.mark.parametrize(
    ("formula", "ranges"),
    [
        ("g*(343 + u)/(343 - v)", {"g": (200, 900), "u": (-40, 40), "v": (-50, 50)}),
        ("a*b*c/(a*b + b*c + c*a)", dict.fromkeys("abc", (1, 5))),
        ("e*r*s/(t*r + r*s + s*t)", {"e": (2, 9), "r": (1, 5), "s": (1, 5), "t": (1, 5)}),
    ],
)
def test_ratios_of_products_of_different_columns_are_found_from_few_rows(
    formula: str, ranges: dict[str, tuple[float, float]]
) -> None:
    archive, _ = search(formula, ranges, 60, rows=44)
    assert archive.best_loss < 1e-18


def test_a_sum_that_leaves_nothing_over_needs_fewer_rows() -> None:
    assert enough_rows(30, 40, exact=True)
    assert not enough_rows(30, 40, exact=False)
    assert not enough_rows(31, 40, exact=True)


def test_a_root_in_reciprocal_groups_is_found_and_written_shortly() -> None:
    names = ("m", "c", "p", "q", "a", "v")
    inputs = np.random.default_rng(0).uniform(1, 5, (800, 6))
    law = parse("c*sqrt((p - q*a)**2 + m**2*c**2) + q*v", names)
    problem = Problem(inputs, evaluate(law, inputs), names)
    features = [parse(text, names) for text in ("m*c/p", "c*a/v", "p/(q*a)")]
    reduction = Reduction.of([(Variable(1), Fraction(1)), (Variable(2), Fraction(1))], features)
    plain, linear = (make(whole_powers(reduction, -highest, highest), inputs) for highest in (2, 1))
    found = [
        item
        for item in quadratics(problem, reduction, plain, linear, exact=True, tolerance=1e-14)
        if isinstance(item, Candidate)
    ]
    assert any(to_text(item.expression, names) == "c*sqrt(m**2*c**2 + (p - q*a)**2) + q*v" for item in found)


def test_noisy_sums_reach_the_noise() -> None:
    archive, floor = search("2*a**2 + 3*b - a*b*c", {"a": (1, 3), "b": (1, 3), "c": (1, 3)}, 6, 0.02)
    assert archive.best_loss < 1.02 * floor


@pytest.mark.parametrize(
    ("formula", "ranges"),
    [
        ("14*x**1.7*(1 - x)**3.2", {"x": (0.02, 0.95)}),
        ("1.2e6*T**2*exp(-11600*W/T)", {"T": (1200, 2600), "W": (2, 5)}),
        ("-0.3*p**0.66*q**(-1.24)", {"p": (1, 50), "q": (1, 50)}),
    ],
)
def test_powers_and_exponentials_are_found_in_noise(
    formula: str, ranges: dict[str, tuple[float, float]]
) -> None:
    random = np.random.default_rng(3)
    inputs = np.stack([random.uniform(*ranges[name], 400) for name in ranges], axis=1)
    clean = evaluate(parse(formula, list(ranges)), inputs)
    noise = 0.01 * np.sqrt(np.mean(clean**2)) * random.normal(size=400)
    problem = Problem(inputs, clean + noise, tuple(ranges))
    reduction = Reduction.of_columns((), range(len(ranges)))
    proposed = [item for item in logarithmic(problem, reduction) if isinstance(item, Candidate)]
    fitted = [refit(candidate.expression, problem.inputs, problem.target) for candidate in proposed]
    with np.errstate(all="ignore"):
        best = min(fitted, key=lambda fit: fit.loss if np.isfinite(fit.loss) else np.inf)
        error = np.sqrt(np.mean(np.square(evaluate(best.expression, inputs) - clean)))
    # Closer to the law than the noise is, by what averaging over the rows gives.
    assert error < 0.3 * np.std(noise)


def test_powers_and_exponentials_want_a_target_of_one_sign() -> None:
    random = np.random.default_rng(3)
    problem = Problem(random.uniform(1, 2, (50, 1)), random.normal(size=50), ("x",))
    assert [*logarithmic(problem, Reduction((), (Variable(0),)))] == []


class TestRegression:
    def design(self, columns: int = 60) -> tuple[np.ndarray, np.ndarray]:
        random = np.random.default_rng(7)
        values = random.uniform(1, 3, (400, columns))
        target = 2.0 * values[:, 3] - 0.5 * values[:, 17] + 7.0 * values[:, 44]
        return scaled(values, target, np.ones(400))

    def test_the_exact_span_is_the_support(self) -> None:
        assert exact_span(*self.design(), 1e-9) == (3, 17, 44)

    def test_a_target_outside_the_span_has_none(self) -> None:
        design, target = self.design()
        assert exact_span(design, target + 1e-3 * np.sin(np.arange(400)), 1e-9) is None

    def test_forward_selection_finds_the_support(self) -> None:
        sizes = list(forward(*self.design()))
        assert sizes[2][0].columns == (3, 17, 44)
        assert sizes[2][0].residual < 1e-20

    def test_residuals_fall_with_size_and_equal_least_squares(self) -> None:
        design, target = self.design()
        target = target + 0.01 * np.random.default_rng(8).normal(size=400)
        best = [size[0] for size in forward(design, target, 5)]
        assert all(a.residual >= b.residual - 1e-12 for a, b in pairwise(best))
        for support in best:
            left = np.linalg.lstsq(design[:, support.columns], target, rcond=None)[1][0]
            assert residual_of(design, target, support.columns) == pytest.approx(left, rel=1e-6)
