"""The noise model is found together with the law, and rows with large values do not decide alone."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from physdiffuser.cli.app import cli
from physdiffuser.core.solution import Solution
from physdiffuser.data import dataset_from_arrays
from physdiffuser.expressions import evaluate
from physdiffuser.options import DEFAULTS
from physdiffuser.pipeline import solve, solve_dataset
from physdiffuser.search import table_search
from physdiffuser.search.noise_inference import is_wide, relative_weights, spans_decades

ROOT = Path(__file__).resolve().parents[2]


def attraction(seed: int, rows: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Newton's law over 15 decades, with 2 % error in each value."""
    rng = np.random.default_rng(seed)
    inputs = 10 ** rng.uniform([8, 22, 22], [13, 30, 30], (rows, 3))
    force = 6.674e-11 * inputs[:, 1] * inputs[:, 2] / inputs[:, 0] ** 2
    return inputs, force * (1 + 0.02 * rng.standard_normal(rows))


def answer(inputs: np.ndarray, target: np.ndarray, names: list[str], **options: object) -> Solution:
    # The simplest search is enough for these laws, whose noise is in question.
    few = {"generators": ["enumeration"], "operators": ["mul", "div", "pow"], **options}
    return solve_dataset(dataset_from_arrays(inputs, target, names=names, target_name="F"), **few)


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (0, 2))])
def test_a_law_over_many_decades_is_found(seed: int) -> None:
    solution = answer(*attraction(seed), ["r", "m1", "m2"], steps=20)
    assert solution.best is not None
    assert solution.best.text.endswith("*m1*m2/r**2")
    assert solution.best.constants[0].value == pytest.approx(6.674e-11, rel=0.02)
    assert any("proportional to its value" in text for text in solution.warnings)


def test_the_shipped_table_of_attractions_has_its_law() -> None:
    best = solve(ROOT / "examples" / "gravity.csv", steps=20, generators=["enumeration", "sparse"]).best
    assert best is not None
    assert best.text.endswith("*m1*m2/r**2")


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_counts(seed: int) -> None:
    rng = np.random.default_rng(seed)
    t = rng.uniform(0, 8, (200, 1))
    counts = rng.poisson(3000 * np.exp(-0.7 * t[:, 0])).astype(float)
    solution = answer(t, counts, ["t"], steps=12, operators=["add", "mul", "exp"])
    assert solution.best is not None
    assert solution.best.text.endswith("*t)")
    # Counts from 3,000 down to 10 have hardly a trace of a constant part.
    assert any("square root" in text or "constant and a" in text for text in solution.warnings)


def test_constant_errors_are_left_alone() -> None:
    rng = np.random.default_rng(0)
    inputs = rng.uniform(1, 5, (100, 2))
    clean = inputs[:, 0] ** 2 * inputs[:, 1]
    solution = answer(inputs, clean + 0.5 * rng.standard_normal(100), ["a", "b"], steps=15)
    assert solution.best is not None
    assert solution.best.text == "a**2*b"
    assert not any("errors of" in text for text in solution.warnings)


def test_a_table_with_constant_errors_is_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    weights = relative_weights
    monkeypatch.setattr(
        table_search, "relative_weights", lambda target: made.append(target) or weights(target)
    )
    rng = np.random.default_rng(1)
    inputs = rng.uniform(1, 5, (120, 2))
    clean = inputs[:, 0] ** 2 * inputs[:, 1]
    for errors, searches in ((0.4, 0), (0.02 * clean, 1)):
        solution = answer(inputs, clean + errors * rng.standard_normal(120), ["a", "b"], steps=10)
        assert solution.best is not None
        assert solution.best.text == "a**2*b"
        assert len(made) == searches


def test_relative_errors_over_decades_need_one_search(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(loop: object) -> bool:
        raise AssertionError("the search with equal weights has been made")

    monkeypatch.setattr(table_search, "needs_other_search", refuse)
    rng = np.random.default_rng(4)
    inputs = 10 ** rng.uniform(0, 4, (80, 2))
    target = 68.9 * np.sqrt(inputs[:, 0] ** 3 / inputs[:, 1]) * (1 + 0.02 * rng.standard_normal(80))
    solution = answer(inputs, target, ["a", "b"], steps=30)
    assert solution.best is not None and solution.best.complexity <= 9
    assert any("proportional to its value" in text for text in solution.warnings)


def test_constant_errors_over_decades_are_recognised() -> None:
    rng = np.random.default_rng(5)
    inputs = 10 ** rng.uniform(0.5, 3, (80, 1))
    target = 3.0 * inputs[:, 0] ** 2 + 5.0 * rng.standard_normal(80)
    assert spans_decades(target)
    solution = answer(inputs, target, ["a"], steps=10)
    assert solution.best is not None and solution.best.complexity <= 5
    assert not any("errors of" in text for text in solution.warnings)


def test_an_option_overrules() -> None:
    inputs, target = attraction(0)
    solution = answer(inputs, target, ["r", "m1", "m2"], steps=6, noise_model="constant")
    assert not any("weighted" in text for text in solution.warnings)
    mixed = answer(inputs, target, ["r", "m1", "m2"], steps=6, noise_model="mixed")
    assert any("constant and a proportional part" in text for text in mixed.warnings)


@pytest.mark.parametrize("model", ["constant", "relative", "poisson", "mixed", "robust"])
def test_every_model_can_be_asked_for(model: str) -> None:
    rng = np.random.default_rng(1)
    inputs = rng.uniform(1, 9, (60, 1))
    target = 3.3 * inputs[:, 0] ** 2 * (1 + 0.03 * rng.standard_normal(60))
    best = answer(inputs, target, ["v"], steps=8, noise_model=model).best
    assert best is not None
    assert best.text.endswith("*v**2")


def test_small_ranges_need_no_weights() -> None:
    assert not is_wide(np.linspace(1, 2, 50))
    assert not is_wide(np.array([1.0, 100.0]))
    assert is_wide(np.geomspace(1, 10, 50))
    assert is_wide(np.linspace(-1, 1, 50))


@pytest.mark.parametrize("target", [np.zeros(9), np.array([0.0, 1, 2, 3]), np.geomspace(1e-300, 1e300, 9)])
def test_weights_are_finite_and_positive(target: np.ndarray) -> None:
    weights = relative_weights(target)
    assert np.isfinite(weights).all()
    assert (weights > 0).all()


def test_the_old_name_of_the_option() -> None:
    with pytest.warns(FutureWarning, match="noise_model"):
        assert DEFAULTS.changed(scatter="relative").noise_model == "relative"
    with CliRunner().isolated_filesystem():
        Path("data.csv").write_text("x,y\n" + "".join(f"{x},{x * x}\n" for x in range(1, 20)))
        done = CliRunner().invoke(
            cli, ["solve", "data.csv", "--scatter", "relative", "--steps", "5", "--json"]
        )
        assert done.exit_code == 0
        assert json.loads(done.stdout)["best"]["expression"] == "x**2"
        assert "--scatter is now called --noise-model" in done.stderr


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (0, 2))])
def test_heavy_tails_are_recognised(seed: int) -> None:
    rng = np.random.default_rng(seed)
    inputs = rng.uniform(1, 5, (150, 2))
    clean = 2.37 * inputs[:, 0] * inputs[:, 1]
    solution = answer(inputs, clean + 0.3 * rng.standard_t(1.5, 150), ["a", "b"], steps=15, loss="auto")
    assert solution.best is not None
    assert solution.best.text.endswith("*a*b")
    assert solution.best.constants[0].value == pytest.approx(2.37, rel=0.02)
    assert any("heavy tails" in text for text in solution.warnings) or any(
        "far from" in text for text in solution.warnings
    )


def test_a_power_law_with_large_relative_errors_is_not_bent_by_rows_that_lie_low() -> None:
    # Weighted by the measured values, such rows count most, and a law that falls behind seems better.
    rng = np.random.default_rng(0)
    x = np.exp(rng.uniform(-4, 8, 60))
    y = 3.1 * x**0.62 * np.exp(0.5 * rng.normal(size=60))
    found = answer(x[:, None], y, ["x"], steps=8, operators=["add", "mul", "pow"])
    assert found.best is not None
    values = np.log(evaluate(found.best.expression, np.array([[1e-2], [1.0], [1e3]])))
    np.testing.assert_allclose(np.diff(values) / np.log([1e2, 1e3]), 0.62, atol=0.05)
