"""The whole way from a table to a law."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from physdiffuser import solve
from physdiffuser.core.progress import Progress
from physdiffuser.core.solution import Equation
from physdiffuser.data import dataset_from_arrays
from physdiffuser.errors import UsageError
from physdiffuser.expressions import evaluate, parse
from physdiffuser.pipeline import solve_dataset
from physdiffuser.report.documents.json_document import document
from physdiffuser.search import timing


def table(rows: int = 300, noise: float = 0.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    inputs = random.uniform(1, 5, (rows, 3))
    target = inputs[:, 0] * inputs[:, 1] ** 2 / 2
    return inputs, target * (1 + noise * random.normal(size=rows))


def test_a_law_is_exact_and_verified() -> None:
    inputs, target = table()
    solution = solve_dataset(dataset_from_arrays(inputs, target, names=["m", "v", "z"]), time=20)
    assert solution.status == "exact" and solution.best is not None
    assert solution.best.text == "m*v**2/2" and solution.best.verdict == "verified"
    assert solution.best.max_relative_error < 1e-12
    assert any("z" in warning for warning in solution.warnings)
    assert solution.test_rows == 60 and solution.derivation


def assert_half_of_mv2(best: Equation | None) -> None:
    """The law was found; its fitted factor lies a standard error or more from 1/2, and stays."""
    assert best is not None and best.text.endswith("*m*v**2")
    (factor,) = best.constants
    assert factor.sigma is not None and not factor.is_set
    assert 0.9 * factor.sigma < abs(factor.value - 0.5) < 4 * factor.sigma < 0.005


def test_noise_gives_an_approximate_law_of_the_right_form() -> None:
    inputs, target = table(noise=0.02)
    solution = solve_dataset(dataset_from_arrays(inputs, target, names=["m", "v", "z"]), steps=8)
    assert solution.status == "approximate" and solution.best is not None
    assert_half_of_mv2(solution.best)


def test_the_learned_generator_is_asked_before_a_noisy_law_is_believed() -> None:
    # Short laws that are far better than all simpler ones, and exact ones, are accepted without it.
    rng = np.random.default_rng(3)
    inputs = rng.uniform(1.0, 3.0, (120, 3))
    short = inputs[:, 0] * inputs[:, 1] ** 2 / 2
    long = short * np.exp(-0.7 * inputs[:, 2]) + 1.3 * inputs[:, 2]
    for law, noise, asked in ((long, 0.02, True), (short, 0.02, False), (short, 0.0, False)):
        target = law + noise * law.std() * rng.normal(size=120)
        solution = solve_dataset(dataset_from_arrays(inputs, target), steps=100, time=None)
        assert bool(solution.timing.get("steps_autoregressive")) is asked


def test_of_curves_that_fit_alike_the_usual_form_is_believed() -> None:
    random = np.random.default_rng(0)
    v, c, m = random.uniform(0.1, 0.9, 1000), random.uniform(1, 3, 1000), random.uniform(1, 5, 1000)
    target = m / np.sqrt(1 - (v / c) ** 2)
    noisy = target + 0.05 * target.std() * random.normal(size=1000)
    initial = ("m/cos(v/c)", "m/sqrt(1 - v**2/c**2)", "m*(1 + v**2/(2*c**2))")
    dataset = dataset_from_arrays(np.column_stack([v, c, m]), noisy, names=["v", "c", "m"])
    solution = solve_dataset(dataset, steps=3, time=None, initial=initial)
    assert solution.best is not None and solution.best.text == "m/sqrt(1 - v**2/c**2)"


def test_the_pareto_front_is_ordered_and_holds_the_best() -> None:
    inputs, target = table(noise=0.02)
    solution = solve_dataset(dataset_from_arrays(inputs, target), steps=4, time=None)
    complexities = [equation.complexity for equation in solution.pareto]
    assert complexities == sorted(set(complexities))
    assert solution.best in solution.pareto


def test_equal_steps_give_equal_documents() -> None:
    random = np.random.default_rng(1)
    inputs = random.uniform(1, 5, (100, 2))
    target = inputs[:, 0] * np.exp(-0.3 * inputs[:, 1]) + 0.05 * random.normal(size=100)
    texts = set()
    for _ in range(2):
        solution = solve_dataset(dataset_from_arrays(inputs, target), steps=12, time=None, seed=5)
        content = document(solution)
        content.pop("timing")
        texts.add(json.dumps(content, sort_keys=True))
    assert len(texts) == 1


def test_free_constants_come_with_intervals_that_hold_them() -> None:
    random = np.random.default_rng(2)
    x = random.uniform(0, 6, 400)
    target = 2.31 * np.exp(-0.437 * x) + 0.02 * random.normal(size=400)
    solution = solve_dataset(dataset_from_arrays(x[:, None], target, names=["t"]), steps=8)
    assert solution.best is not None
    free = [constant for constant in solution.best.constants if not constant.exact]
    assert len(free) == 2
    for truth in (2.31, 0.437):
        assert any(c.low <= truth <= c.high or c.low <= -truth <= c.high for c in free)  # type: ignore[operator]


def test_known_constants_appear_by_name() -> None:
    random = np.random.default_rng(3)
    inputs = random.uniform(1, 5, (200, 2)) * np.array([1e24, 1e7])
    target = 6.6743e-11 * inputs[:, 0] / inputs[:, 1] ** 2
    dataset = dataset_from_arrays(inputs, target, names=["M", "r"])
    solution = solve_dataset(dataset, time=20, constants={"G": 6.6743e-11})
    assert solution.best is not None and solution.best.text == "G*M/r**2"
    assert solution.known_constants == {"G": 6.6743e-11}


def test_known_constants_are_held_to_their_units() -> None:
    random = np.random.default_rng(0)
    axis, mass = random.uniform(1e10, 1e12, 300), random.uniform(1e29, 1e31, 300)
    inputs = np.column_stack([axis, mass])
    kepler = dataset_from_arrays(
        inputs, 2 * np.pi * np.sqrt(axis**3 / (6.674e-11 * mass)), names=["a", "M"], target_name="T"
    )
    units = {"a": "m", "M": "kg", "T": "s"}

    def law(constants: str, **more: str) -> str:
        solution = solve_dataset(kepler, steps=30, time=None, constants=constants, units={**units, **more})
        assert solution.best is not None and solution.status == "exact"
        return solution.best.text

    assert law("G=6.674e-11 m**3/(kg*s**2)") == "2*pi*sqrt(a**3/(G*M))"
    # A constant of that value and another unit is a coincidence.
    assert "G" not in law("G=6.674e-11 kg")
    assert "G" not in law("G=6.674e-11", G="kg")


def test_weights_hide_a_bad_row() -> None:
    inputs, target = table(noise=0.01)
    target[3] *= 40
    weights = np.ones(300)
    weights[3] = 1e-8
    solution = solve_dataset(
        dataset_from_arrays(inputs, target, names=["m", "v", "z"], weights=weights), steps=8
    )
    assert_half_of_mv2(solution.best)


def test_the_robust_loss_bears_outliers() -> None:
    inputs, target = table(noise=0.01)
    target[::50] *= 5
    dataset = dataset_from_arrays(inputs, target, names=["m", "v", "z"])
    best = solve_dataset(dataset, steps=20, loss="robust").best
    assert best is not None
    # The fitted factor lies almost exactly one standard error from 1/2.
    if best.text != "m*v**2/2":
        assert_half_of_mv2(best)


def test_a_constant_target_is_its_value() -> None:
    inputs, _ = table()
    solution = solve_dataset(dataset_from_arrays(inputs, np.full(300, 2.5)), time=5)
    assert solution.best is not None and solution.best.text == "2.5" and solution.status == "exact"


def test_si_magnitudes() -> None:
    random = np.random.default_rng(4)
    inputs = random.uniform(1, 5, (200, 3)) * np.array([1e-34, 1e14, 1e-23])
    target = 1 / (np.exp(inputs[:, 0] * inputs[:, 1] / (inputs[:, 2] * 400)) - 1)
    solution = solve_dataset(dataset_from_arrays(inputs, target, names=["h", "f", "k"]), time=30)
    assert solution.best is not None
    prediction = evaluate(solution.best.expression, inputs)
    np.testing.assert_allclose(prediction, target, rtol=1e-9)


@pytest.mark.parametrize(
    ("size", "noise"), [(1e-300, 0.0), (1e100, 0.0), (1e300, 0.0), (1e-250, 0.01), (1e250, 0.01)]
)
def test_squares_of_the_target_need_not_be_numbers(size: float, noise: float) -> None:
    inputs, target = table(rows=60, noise=noise)
    inputs[:, 0] *= size
    data = dataset_from_arrays(inputs[:, :2], target * size, names=["m", "v"])
    solution = solve_dataset(data, steps=6, generators=["enumeration"], operators=["mul", "div", "pow"])
    assert solution.best is not None and solution.best.text == "m*v**2/2"
    assert solution.best.r2 > 0.999
    assert not any("failed" in warning or "test set" in warning for warning in solution.warnings)


def test_operators_are_kept_to() -> None:
    inputs, target = table(noise=0.02)
    solution = solve_dataset(
        dataset_from_arrays(inputs, target), steps=5, time=None, operators=["add", "mul"]
    )
    for equation in solution.pareto:
        assert not set("/-") & set(equation.text.replace("e-", "e")) and "**" not in equation.text


def test_progress_improves_and_cancelling_returns_the_best(tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    inputs = random.uniform(0, 1, (100, 4))
    path = tmp_path / "noise.csv"
    rows = np.column_stack([inputs, random.normal(size=100)])
    np.savetxt(path, rows, delimiter=",", header="a,b,c,d,y", comments="")
    seen: list[Progress] = []
    # Processor time: on a busy machine the clock says little.
    started = time.process_time()
    solution = solve(path, time=30, on_progress=seen.append, cancelled=lambda: bool(seen))
    assert solution.best is not None and time.process_time() - started < 10
    assert all(progress.front for progress in seen)


@pytest.mark.parametrize(
    "options",
    [
        {"operators": ["plus"]},
        {"time": -1.0},
        {"steps": 0},
        {"loss": "cubic"},
        {"operators": "add,mul"},
        {"generators": "sparse"},
        {"device": "gpu"},
        {"constants": {"lambda": 1.0}},
    ],
)
def test_bad_options_are_usage_errors(options: dict[str, object]) -> None:
    inputs, target = table(20)
    with pytest.raises(UsageError):
        solve_dataset(dataset_from_arrays(inputs, target), **options)  # type: ignore[arg-type]


GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
DEVICE_LAWS = {
    "m*v**2/2": 0.0,
    "m*z/(m + z) + v*sqrt(m)": 0.01,
    "m*exp(-0.6*v) + 2*z": 0.02,
    "m*v*log(z)/sqrt(m + v)": 0.05,
}


@pytest.mark.parametrize("device", ["cpu-torch", pytest.param("cuda", marks=GPU)])
@pytest.mark.parametrize("law", DEVICE_LAWS)
def test_equal_steps_give_equal_laws_on_every_device(law: str, device: str) -> None:
    names = ("m", "v", "z")
    random = np.random.default_rng(3)
    inputs = random.uniform(1, 5, (100, 3))
    target = evaluate(parse(law, names), inputs) * (1 + DEVICE_LAWS[law] * random.normal(size=100))
    dataset = dataset_from_arrays(inputs, target, names=list(names))
    by_numpy, there = (
        solve_dataset(dataset, steps=6, time=None, generators=["enumeration", "neighbours"], device=one)
        for one in ("cpu", device)
    )
    assert by_numpy.best is not None and there.best is not None
    assert there.best.complexity == by_numpy.best.complexity
    np.testing.assert_allclose(
        evaluate(there.best.expression, inputs), evaluate(by_numpy.best.expression, inputs), rtol=1e-6
    )


def test_units_let_a_constant_of_nature_be_recognised() -> None:
    frequency = np.random.default_rng(6).uniform(1e14, 9e14, 200)
    dataset = dataset_from_arrays(
        frequency[:, None], 6.62607015e-34 * frequency, names=["f"], target_name="E"
    )
    solution = solve_dataset(dataset, time=10, units={"f": "1/s", "E": "J"})
    assert solution.best is not None and solution.best.text == "h*f"
    assert solution.known_constants == {"h": 6.62607015e-34}
    without = solve_dataset(dataset, time=10)
    assert without.best is not None and "h" not in without.best.text


@pytest.mark.parametrize(("large", "what"), [(40, "reading the table"), (41, "the start of the program")])
def test_reading_counts_and_a_slow_one_leaves_a_short_search(
    large: int, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timing, "POLICY", replace(timing.POLICY, min_search=0.05))
    monkeypatch.setattr("physdiffuser.search.table_search.LARGE_TABLE", large)
    x = np.linspace(1.0, 2.0, 40)
    dataset = dataset_from_arrays(x[:, None], np.exp(np.sin(9 * x)) + x**x)
    started = time.monotonic()
    solution = solve_dataset(dataset, time=5.0, started=started - 60.0, generators=["enumeration"])
    assert any(f"{what} took 6" in warning for warning in solution.warnings)
    assert solution.best is not None
    quick = solve_dataset(dataset, time=0.5, generators=["enumeration"])
    assert not any(what in warning for warning in quick.warnings)
