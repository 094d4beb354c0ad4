"""Noise told from structure before any law is known."""

from __future__ import annotations

import numpy as np
import pytest

from physdiffuser.core.problem import Problem
from physdiffuser.expressions import evaluate, parse
from physdiffuser.noise.noise_floor import is_noisy, levels
from physdiffuser.reduction.factors import hypotheses

SMOOTH = [
    ("a*exp(-b*c)", {"a": (1, 5), "b": (1, 3), "c": (0.1, 2)}),
    ("1/(a - b)", {"a": (3, 5), "b": (0.5, 2)}),
    ("a*sin(b*c)", {"a": (1, 5), "b": (1, 2), "c": (0.2, 1)}),
    ("x**2.7 + log(y)", {"x": (0.1, 3), "y": (0.1, 30)}),
]
ROUGH = [
    # A pole beside the range, corners, many waves, and a column that matters little.
    ("1/(a - b)**2", {"a": (2.01, 5), "b": (0.5, 2)}),
    ("abs(a - b)", {"a": (1, 3), "b": (1, 3)}),
    ("sin(40*a) + b", {"a": (0, 3), "b": (0, 1)}),
    ("a*b + c/100", {"a": (1, 3), "b": (1, 3), "c": (1, 3)}),
]


def noisy(
    formula: str,
    ranges: dict[str, tuple[float, float]],
    noise: float,
    rows: int = 600,
    kind: str = "constant",
) -> bool:
    random = np.random.default_rng(0)
    inputs = np.stack([random.uniform(*ranges[name], rows) for name in ranges], axis=1)
    target = evaluate(parse(formula, list(ranges)), inputs)
    size = np.abs(target) if kind == "relative" else np.sqrt(np.mean(target**2))
    unit = random.standard_t(3, rows) if kind == "student" else random.normal(size=rows)
    target = target + noise * size * unit
    problem = Problem(inputs, target, tuple(ranges))
    return is_noisy(problem, levels(problem, hypotheses(problem)))


@pytest.mark.parametrize(("formula", "ranges"), SMOOTH + ROUGH)
def test_exact_tables_are_not_noisy(formula: str, ranges: dict[str, tuple[float, float]]) -> None:
    assert not noisy(formula, ranges, 0.0)


# Where a law decays, polynomials fitted with equal weights are less exact than rows with relative errors.
KINDS = {"constant": SMOOTH, "student": SMOOTH, "relative": SMOOTH[1:]}


@pytest.mark.parametrize("noise", [0.01, 0.1])
@pytest.mark.parametrize(
    ("kind", "formula", "ranges"), [(kind, *law) for kind in KINDS for law in KINDS[kind]]
)
def test_noise_shows(kind: str, formula: str, ranges: dict[str, tuple[float, float]], noise: float) -> None:
    assert noisy(formula, ranges, noise, kind=kind)


def test_a_single_degree_is_no_floor() -> None:
    # Infinite slope at the end of the range; too few rows for polynomials to follow it.
    assert not noisy("3.1*sqrt(1 - (T/9.2)**2.6)", {"T": (0.3, 9)}, 0.0, rows=32)


@pytest.mark.parametrize(
    ("formula", "ranges", "noise"),
    [
        ("w**2*exp(-t/w)", {"w": (0.2, 1), "t": (1, 8)}, 0.01),
        ("exp(8*a*b)", {"a": (0, 1), "b": (0, 1)}, 0.1),
    ],
)
def test_few_rows_in_a_steep_corner_do_not_hide_noise(
    formula: str, ranges: dict[str, tuple[float, float]], noise: float
) -> None:
    assert noisy(formula, ranges, noise, rows=240)
    assert not noisy(formula, ranges, 0.0, rows=240)


def test_pure_noise_is_left_undecided() -> None:
    # Nothing is explained: the law may as well be one that polynomials cannot follow.
    random = np.random.default_rng(1)
    problem = Problem(random.uniform(1, 2, (300, 2)), random.normal(size=300), ("a", "b"))
    assert not is_noisy(problem, levels(problem, hypotheses(problem)))


def test_few_rows_are_left_undecided() -> None:
    assert not noisy("a*b", {"a": (1, 3), "b": (1, 3)}, 0.1, rows=8)
