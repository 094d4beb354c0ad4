"""Tables of any magnitude that doubles have are solved as those near 1 are."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import numpy.typing as npt
import pytest

from physdiffuser.core.progress import Progress
from physdiffuser.core.solution import Equation, Solution
from physdiffuser.data import dataset_from_arrays
from physdiffuser.data.checks import moderate_weights, weights_of
from physdiffuser.expressions import evaluate, parse
from physdiffuser.finalize.rescaling.magnitudes import Magnitudes
from physdiffuser.pipeline import solve_dataset
from physdiffuser.report.documents.json_document import document
from physdiffuser.report.documents.solution_reader import solution_from_document

FloatArray = npt.NDArray[np.float64]
TOOL = Path(__file__).parents[2] / "tools" / "stress_magnitudes.py"


def _columns(rows: int = 100) -> FloatArray:
    return np.random.default_rng(0).uniform(1, 5, (rows, 2))


def _best(solution: Solution) -> Equation:
    assert not [text for text in solution.warnings if "failed" in text or "switched off" in text]
    assert solution.best is not None
    return solution.best


@pytest.mark.parametrize(
    ("powers", "power"),
    [
        ((-300, -300), 0),
        ((300, 300), 0),
        ((200, -250), 100),
        ((-160, 155), -195),
        ((0, 0), 306),
        ((-195, 0), 0),
    ],
)
def test_a_product_is_found_whatever_the_magnitudes(powers: tuple[int, int], power: int) -> None:
    unit = _columns()
    table = unit * [10.0 ** powers[0], 10.0 ** powers[1]]
    target = unit[:, 0] * unit[:, 1] * 10.0**power
    solution = solve_dataset(dataset_from_arrays(table, target), time=60, steps=40, plugins=False)
    best = _best(solution)
    assert (solution.status, best.verdict) == ("exact", "verified")
    assert evaluate(best.expression, table) == pytest.approx(target, rel=1e-12)
    # The printed formula is the law, also when read back from the document.
    assert evaluate(parse(best.text, solution.names), table) == pytest.approx(target, rel=1e-12)
    again = solution_from_document(document(solution)).best
    assert again is not None
    assert again.text == best.text


@pytest.mark.parametrize("power", [-320, -250, -195, 195, 300])
def test_relative_scatter_at_any_magnitude(power: int) -> None:
    unit = _columns()
    target = unit[:, 0] * unit[:, 1] * 10.0 ** (power // 2) * 10.0 ** (power - power // 2)
    dataset = dataset_from_arrays(unit, target)
    best = _best(solve_dataset(dataset, time=60, steps=6, noise_model="relative", plugins=False))
    digits = 1e-3 if power < -308 else 1e-12
    assert evaluate(best.expression, unit) == pytest.approx(target, rel=digits)


def test_constants_and_errors_are_in_the_units_of_the_table() -> None:
    unit = _columns(60)
    target = 2.7391 * unit[:, 0] + 0.8871 + np.random.default_rng(3).normal(0, 0.02, 60)
    found = []
    for columns, power in ((0, 0), (-900, -720)):
        dataset = dataset_from_arrays(np.ldexp(unit, columns), np.ldexp(target, power))
        solution = solve_dataset(
            dataset, time=60, steps=3, generators=["sparse"], operators=["add", "mul"], plugins=False
        )
        found.append(next(one for one in solution.pareto if len(one.constants) == 2))
        assert solution.summaries[0].high == dataset.inputs[:, 0].max()
        assert solution.fit_points is not None
        assert np.array_equal(solution.fit_points.truth, dataset.target)
    usual, extreme = found
    assert extreme.rmse == pytest.approx(np.ldexp(usual.rmse, -720), rel=1e-3)
    assert usual.covariance is not None
    assert extreme.covariance is not None
    by_value = [sorted(one.constants, key=lambda constant: constant.value) for one in found]
    for (low, high), factors in zip(zip(*by_value, strict=True), (-720, 180), strict=True):
        for name in ("value", "low", "high"):
            assert getattr(high, name) == pytest.approx(np.ldexp(getattr(low, name), factors), rel=0.02)


def test_progress_and_first_formulas_are_in_the_units_of_the_table() -> None:
    unit = _columns(60)
    table, target = unit * 1e-200, unit[:, 0] * unit[:, 1] * 1e250
    told: list[Progress] = []
    law = "1e300*a*(1e300*(1e50*b))"
    dataset = dataset_from_arrays(table, target, names=["a", "b"])
    solution = solve_dataset(
        dataset,
        time=60,
        steps=1,
        initial=[law, "G*a"],
        constants={"G": 6.6743e-11},
        on_progress=told.append,
        generators=["sparse"],
        plugins=False,
    )
    assert evaluate(_best(solution).expression, table) == pytest.approx(target, rel=1e-12)
    assert told
    # The first report is of the mean.
    value = evaluate(parse(told[0].best, ("a", "b")), table)
    assert ((target.min() < value) & (value < target.max())).all()


@pytest.mark.parametrize("power", [-320, -200, 200, 300])
def test_errors_of_any_magnitude_weigh_alike(power: int) -> None:
    sigma = np.random.default_rng(1).uniform(1, 3, 50)
    weights = weights_of(sigma * 10.0 ** (power // 2) * 10.0 ** (power - power // 2))
    assert weights == pytest.approx(weights_of(sigma), rel=1e-3 if power < -308 else 1e-9)
    extreme = 1.0 / np.square(sigma) * 10.0 ** (power // 2) * 10.0 ** (power - power // 2)
    shares = moderate_weights(extreme) / moderate_weights(extreme).sum()
    usual = 1.0 / np.square(sigma)
    assert shares == pytest.approx(usual / usual.sum(), rel=1e-2 if power < -308 else 1e-9)


def test_no_weight_vanishes() -> None:
    sigma = np.geomspace(1e-300, 1e300, 20)
    for weights in (weights_of(sigma), moderate_weights(sigma)):
        assert (weights > 0).all()
        assert np.isfinite(np.square(weights).sum())


def test_usual_tables_are_left_as_they_are() -> None:
    table = _columns(30) * [1e-30, 1e40]
    assert Magnitudes.of(dataset_from_arrays(table, table[:, 0])).usual


def test_scaling_changes_no_digit() -> None:
    random = np.random.default_rng(5)
    table = (
        random.uniform(1, 5, (40, 3)) * 10.0 ** random.uniform(-100, 100, (40, 3)) * [1e-190, 1e150, 5e-324]
    )
    dataset = dataset_from_arrays(table, table[:, 0])
    magnitudes = Magnitudes.of(dataset)
    inner = magnitudes.apply(dataset)
    assert np.array_equal(np.ldexp(inner.inputs, np.array(magnitudes.columns)), dataset.inputs)
    assert np.array_equal(np.ldexp(inner.target, magnitudes.target), dataset.target)


@pytest.fixture(name="tool", scope="module")
def _tool() -> ModuleType:
    if not TOOL.exists():
        pytest.skip("the tools are not part of an installed package")
    spec = importlib.util.spec_from_file_location("stress_magnitudes", TOOL)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["stress_magnitudes"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("number", range(14))
def test_a_sample_of_the_stress_test(number: int, tool: ModuleType) -> None:
    report = tool.Report()
    tool.examine(tool.case(number, 0), report)
    assert report.cases == 1
    assert dict(report.faults) == {}


def test_the_stress_test_sees_faults(tool: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    case = tool.case(1, 0)

    def crashing(*args: object, **options: object) -> Solution:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(tool, "solve", crashing)
    report = tool.Report()
    tool.examine(case, report)
    assert list(report.faults) == ["crash"]
