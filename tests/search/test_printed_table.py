"""What is printed of a solution is true of the table: errors, digits, and a Pareto front."""

from __future__ import annotations

import csv
import io
import json
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from physdiffuser.core.solution import Solution
from physdiffuser.data import dataset_from_arrays
from physdiffuser.expressions import evaluate, parse
from physdiffuser.expressions.tree import variables
from physdiffuser.pipeline import solve_dataset
from physdiffuser.report.documents.json_document import document
from physdiffuser.report.documents.solution_reader import solution_from_document
from physdiffuser.report.html import report_html
from physdiffuser.report.runfolder import pareto_csv
from physdiffuser.report.text.terminal import render

NAMES = ("p", "q")
LAWS = {
    "noise": "0*p",
    "logarithm": "1.88*log(p + 35.4) - q/7",
    "line": "3 + 2.1*p",
    "decay": "3.2*exp(-0.7*p)",
    "saturation": "p/(0.3 + q)",
    "wave": "q*sin(p)",
    "power": "2.31*p**1.37",
}
SEEDS = range(10)
# Solutions are kept: in one process each table is solved once.
pytestmark = pytest.mark.xdist_group("printed table")


def table(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A small table of one of the laws with 0, 1 or 10 % of noise; the first law is noise alone."""
    random = np.random.default_rng(seed)
    inputs = random.uniform(0.5, 5.0, (int(random.integers(15, 60)), 2))
    law = [*LAWS.values()][seed % len(LAWS)]
    truth = evaluate(parse(law, NAMES), inputs)
    spread = float(truth.std()) or 1.0
    return inputs, truth + (0.1, 0.01, 0.0)[seed % 3] * spread * random.normal(size=len(inputs))


@cache
def solved(seed: int) -> Solution:
    return solve_dataset(
        dataset_from_arrays(*table(seed), names=NAMES),
        steps=12,
        time=None,
        seed=seed,
        noise_model="constant",
        loss="squared",
        generators=["enumeration", "sparse", "evolution"],
        plugins=False,
    )


def printed_rows(solution: Solution) -> list[tuple[int, float, str]]:
    """Complexity, rmse and formula of the rows of the terminal's table, as a reader sees them."""
    head, *lines = render(solution).split("\n\n")[0].splitlines()
    rows = []
    for line in lines:
        _, size, error, *rest = line.replace("▸", " ").split()
        # The probability is two words, such as "81 %".
        skipped = ("test" in head) + 2 * ("probability" in head)
        rows.append((int(size), float(error), " ".join(rest[skipped:])))
    return rows


def error_of(text: str, inputs: np.ndarray, target: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(evaluate(parse(text, NAMES), inputs) - target))))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_printed_formula_has_the_printed_error(seed: int) -> None:
    inputs, target = table(seed)
    solution = solved(seed)
    rows = printed_rows(solution)
    assert len(rows) == len(solution.pareto)
    for _, error, text in rows:
        assert f"{error_of(text, inputs, target):.3g}" == f"{error:.3g}", text
    best = solution.best
    assert best is not None
    headline = render(solution).split("\n\n")[1].strip().partition(" = ")[2].splitlines()[0]
    assert f"{error_of(headline, inputs, target):.3g}" == f"{best.rmse:.3g}"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_stored_run_prints_the_same_table_and_page(seed: int) -> None:
    solution = solved(seed)
    again = solution_from_document(json.loads(json.dumps(document(solution))))
    assert printed_rows(again) == printed_rows(solution)
    page = report_html(solution)
    for _, _, text in printed_rows(solution):
        assert text.replace("<", "&lt;") in page


@pytest.mark.parametrize("seed", SEEDS)
def test_the_table_is_a_pareto_front_wherever_it_is_printed(seed: int) -> None:
    solution = solved(seed)
    rows = list(csv.DictReader(io.StringIO(pareto_csv(solution))))
    # A leading sign is made harmless.
    assert [row["expression"].removeprefix("'") for row in rows] == [
        text for _, _, text in printed_rows(solution)
    ]
    tables = [
        [(size, error) for size, error, _ in printed_rows(solution)],
        [(row["complexity"], row["rmse"]) for row in document(solution)["pareto"]],
        [(int(row["complexity"]), float(row["rmse"])) for row in rows],
    ]
    for front in tables:
        for (size, error), (larger, smaller) in pairwise(front):
            assert size < larger and error > smaller
    assert solution.best in solution.pareto


@pytest.mark.parametrize("seed", SEEDS)
def test_no_printed_constant_is_lost_in_its_error(seed: int) -> None:
    for row in solved(seed).pareto:
        # The first row may be a mean near 0.
        for constant in row.constants if variables(row.expression) else ():
            if constant.low is not None and constant.high is not None:
                assert constant.high - constant.low < 20 * abs(constant.value)


def test_the_largest_relative_error_is_that_of_the_worst_row() -> None:
    x = 10.0 ** np.linspace(-3, 3, 60)
    target = x * 1.0
    target[0] = x[0] / 1.796
    solution = solve_dataset(
        dataset_from_arrays(x[:, None], target, names=["x"]),
        steps=1,
        time=None,
        initial=("x",),
        generators=["sparse"],
        operators=["add"],
        noise_model="constant",
        loss="squared",
        plugins=False,
        max_complexity=1,
    )
    assert solution.best is not None and solution.best.text == "x"
    assert solution.best.max_relative_error == pytest.approx(0.796)
    assert solution.status == "approximate"
    assert "largest relative error 79.6 %" in render(solution) or "largest error 79.6 %" in render(solution)


def test_a_wave_over_many_periods_is_exact() -> None:
    x = np.linspace(0.0, 2_000.0, 3_001)
    solution = solve_dataset(
        dataset_from_arrays(x[:, None], np.sin(x), names=["x"]),
        steps=1,
        time=None,
        initial=("sin(x)",),
        generators=["sparse"],
        plugins=False,
    )
    assert solution.best is not None and solution.best.text == "sin(x)"
    assert solution.status == "exact" and solution.best.verdict == "verified"


def test_a_rational_function_that_follows_a_logarithm_is_no_law() -> None:
    x = np.random.default_rng(0).uniform(0.5, 5.0, 500)
    solution = solve_dataset(
        dataset_from_arrays(x[:, None], 1.88 * np.log(x + 35.4), names=["p"]),
        steps=2,
        time=None,
        generators=["sparse"],
        operators=["add", "sub", "mul", "div"],
        plugins=False,
    )
    assert solution.best is not None and solution.best.rmse < 1e-9
    assert solution.status == "approximate" and solution.best.verdict == "unknown"
    assert any(text.startswith("interpolation: ") for text in solution.best.verification)
    assert any(text.startswith("interpolation: ") for text in solution.warnings)


@pytest.mark.parametrize("factor", [1e-120, pytest.param(3e150, marks=pytest.mark.slow), 7e150])
def test_a_table_of_extreme_magnitude_is_printed_as_truly(factor: float) -> None:
    random = np.random.default_rng(0)
    inputs = random.uniform(0.5, 5.0, (60, 2))
    target = (evaluate(parse(LAWS["logarithm"], NAMES), inputs) + 0.002 * random.normal(size=60)) * factor
    solution = solve_dataset(
        dataset_from_arrays(inputs, target, names=NAMES),
        steps=20,
        time=None,
        noise_model="constant",
        loss="squared",
        generators=["sparse", "enumeration", "evolution"],
        plugins=False,
    )
    rows = printed_rows(solution)
    assert len(rows) > 1
    for _, error, text in rows:
        residual = evaluate(parse(text, NAMES), inputs) / factor - target / factor
        assert float(np.sqrt(np.mean(np.square(residual)))) == pytest.approx(error / factor, rel=6e-3)
    for (size, error, _), (larger, smaller, _) in pairwise(rows):
        assert size < larger and error > smaller
