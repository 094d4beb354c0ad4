"""The estimator: what scikit-learn asks of one, and what users of tables of measurements need."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import InconsistentVersionWarning, NotFittedError, SkipTestWarning
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

from physdiffuser import PhysDiffuserRegressor
from physdiffuser.data.distinct_rows import distinct_rows
from physdiffuser.errors import PluginError, UsageError
from physdiffuser.estimator.fitted_laws import earlier_formulas
from physdiffuser.targets.tables import merged_dataset

PICKLES = Path(__file__).parent / "pickles"
RNG = np.random.default_rng(0)
TABLE = pd.DataFrame({"m": RNG.uniform(1, 5, 80), "v (m/s)": RNG.uniform(1, 5, 80)})
ENERGY = TABLE["m"] * TABLE["v (m/s)"] ** 2 / 2


@pytest.fixture(scope="module")
def law() -> PhysDiffuserRegressor:
    return PhysDiffuserRegressor(time=30, steps=50).fit(TABLE, ENERGY.rename("E"))


def test_every_check_of_scikit_learn_passes() -> None:
    """With nothing marked as expected to fail: `expected_failed_checks` is not given."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)
        quick = PhysDiffuserRegressor(time=30, steps=1, operators=["add", "mul"])
        results = check_estimator(quick, on_fail=None)
    failed = [
        (result["check_name"], result["exception"]) for result in results if result["status"] != "passed"
    ]
    # What remains are skips for want of a dependency or a switch in the environment.
    assert [check for check, reason in failed if "SCIPY_ARRAY_API" not in str(reason)] == []
    assert len(results) > 50


def test_finds_the_law_of_a_data_frame(law: PhysDiffuserRegressor) -> None:
    assert law.best_.text == "m*v_m_s**2/2"
    assert law.solution_.aliases == {"v_m_s": "v (m/s)"}
    assert law.solution_.target == "E"
    assert list(law.feature_names_in_) == ["m", "v (m/s)"]
    fresh = pd.DataFrame({"m": [2.0, 10.0], "v (m/s)": [3.0, 20.0]})
    assert np.allclose(law.predict(fresh), [9.0, 2000.0])
    assert law.score(TABLE, ENERGY) == pytest.approx(1.0)


def test_equations_are_the_pareto_front(law: PhysDiffuserRegressor) -> None:
    front = law.equations_
    assert {"expression", "complexity", "rmse", "r2", "latex", "verdict", "chosen"} <= set(front.columns)
    assert front["complexity"].is_monotonic_increasing
    assert front.loc[front["chosen"], "expression"].tolist() == [law.best_.text]


def test_exports_agree_with_predict(law: PhysDiffuserRegressor) -> None:
    import sympy
    import torch

    values = TABLE.to_numpy()
    predicted = law.predict(TABLE)
    assert np.array_equal(law.to_numpy()(values), predicted)
    assert np.allclose(law.to_torch()(torch.tensor(values)).detach().numpy(), predicted)
    formula = law.sympy()
    assert isinstance(formula, sympy.Expr)
    symbols = {symbol.name: symbol for symbol in formula.free_symbols}
    assert float(formula.subs({symbols["m"]: 2, symbols["v_m_s"]: 3})) == 9.0
    assert law.latex() == law.best_.latex
    for row, text in enumerate(law.equations_["latex"], start=1):
        assert law.latex(row) == text
    assert list(law.equations_.index) == list(range(1, len(law.equations_) + 1))
    assert law.equations_.loc[law.equations_["chosen"], "latex"].tolist() == [law.latex()]
    for row in (0, -1, len(law.equations_) + 1):
        with pytest.raises(UsageError, match=f"no row {row}: its rows are numbered from 1 to"):
            law.latex(row)


def test_a_fitted_estimator_can_be_stored(law: PhysDiffuserRegressor) -> None:
    again = pickle.loads(pickle.dumps(law))  # noqa: S301  # our own bytes
    assert again.best_.text == law.best_.text
    assert np.array_equal(again.predict(TABLE), law.predict(TABLE))


def test_works_inside_scikit_learn() -> None:
    model = make_pipeline(FunctionTransformer(np.square), PhysDiffuserRegressor(time=30, steps=20))
    scores = cross_val_score(model, TABLE.to_numpy(), TABLE["m"].to_numpy() ** 2, cv=2)
    assert scores.min() > 0.9999
    params = PhysDiffuserRegressor(max_complexity=9, operators=["add"]).get_params()
    assert clone(PhysDiffuserRegressor().set_params(**params)).get_params() == params


def test_not_fitted_is_said() -> None:
    model = PhysDiffuserRegressor()
    for use in (
        lambda: model.best_,
        lambda: model.equations_,
        model.latex,
        model.sympy,
        lambda: model.predict([[1]]),
    ):
        with pytest.raises(NotFittedError):
            use()
    assert not hasattr(model, "equations_")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": np.ones((80, 2, 2))}, "dim 3"),
        ({"y": ENERGY.where(ENERGY > 3)}, "NaN"),
        ({"sample_weight": -np.ones(80)}, "Negative values"),
        ({"sample_weight": np.zeros(80)}, "non-zero"),
        ({"sample_weight": np.eye(80)[0]}, "1 distinct sample"),
        ({"X": TABLE.assign(m="text")}, "could not convert"),
    ],
)
def test_what_cannot_be_fitted_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PhysDiffuserRegressor(time=5).fit(**({"X": TABLE, "y": ENERGY} | arguments))


WRONG: dict[str, list[Any]] = {
    "operators": [["frobnicate"]],
    "constants": [{"pi": 3.0}],
    "units": [{"q": "m"}],
    "loss": ["cubic", None],
    "time": [0, -1, float("nan"), float("inf"), "60", True],
    "steps": [0, 2.5, -3],
    "max_complexity": [0, 1.5, None],
    "noise": [-0.1, "much"],
    "generators": [["nothing"]],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in WRONG for value in WRONG[name]])
def test_bad_parameters_are_refused(name: str, value: Any) -> None:
    # A generator that no package provides is a PluginError; any other parameter is a ValueError too.
    with pytest.raises(PluginError if name == "generators" else UsageError):
        PhysDiffuserRegressor(**({"time": 5} | {name: value})).fit(TABLE, ENERGY)


def test_parameters_reach_the_search() -> None:
    model = PhysDiffuserRegressor(time=30, steps=30, operators=["add", "mul"], max_complexity=9).fit(
        TABLE, ENERGY
    )
    assert max(model.equations_["complexity"]) <= 9
    assert not any("/" in text.replace("/2", "") for text in model.equations_["expression"])
    balanced = PhysDiffuserRegressor(
        time=30, steps=30, units={"m": "kg", "v (m/s)": "m/s", "y": "J"}, constants={"c": None}
    ).fit(TABLE, ENERGY)
    assert balanced.best_.text == "m*v_m_s**2/2"


rows = st.lists(
    st.tuples(st.sampled_from([0.0, -0.0, 1.0, 2.0]), st.sampled_from([0.0, 1.0]), st.integers(0, 3)),
    min_size=4,
    max_size=20,
)


@settings(max_examples=100)
@given(rows, st.randoms(use_true_random=False))
def test_repeated_rows_weights_and_order_mean_the_same(
    table: list[tuple[float, float, int]], random: Any
) -> None:
    values = np.array(table)
    inputs, target, weights = values[:, :1], values[:, 1], values[:, 2]
    repeated = np.repeat(values, weights.astype(int), axis=0)
    order = list(range(len(values)))
    random.shuffle(order)
    try:
        expected = distinct_rows(inputs, target, weights)
    except ValueError:
        with pytest.raises(ValueError, match="distinct sample"):
            distinct_rows(repeated[:, :1], repeated[:, 1])
        return
    for row, number in enumerate(expected.first):
        assert np.array_equal(values[number, :2], [*expected.inputs[row], expected.target[row]])
    for other in (
        distinct_rows(repeated[:, :1], repeated[:, 1]),
        distinct_rows(inputs[order], target[order], weights[order]),
    ):
        for ours, theirs in zip(expected[:3], other[:3], strict=True):
            assert (ours is None) == (theirs is None)
            if ours is not None and theirs is not None:
                assert ours.tobytes() == theirs.tobytes()


def test_importing_the_package_is_cheap() -> None:
    program = (
        "import sys; before = set(sys.modules); import physdiffuser; "
        "heavy = {'numpy', 'torch', 'sklearn', 'pandas', 'sympy', 'scipy'} & set(sys.modules); "
        "assert not heavy, heavy; assert physdiffuser.__version__; "
        "assert 'solve' in dir(physdiffuser); from physdiffuser import solve; "
        "heavy = {'torch', 'sklearn', 'sympy', 'matplotlib'} & set(sys.modules); assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_unknown_names_are_attribute_errors() -> None:
    import physdiffuser

    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        physdiffuser.nothing  # noqa: B018


NOISY = np.sin(TABLE["m"]) * TABLE["v (m/s)"] + 0.2 * RNG.normal(size=80)


@pytest.fixture(scope="module")
def noisy() -> PhysDiffuserRegressor:
    return PhysDiffuserRegressor(steps=12).fit(TABLE, NOISY.rename("F"))


def test_equations_have_the_columns_that_pysr_has(noisy: PhysDiffuserRegressor) -> None:
    front = noisy.equations_
    assert list(front.columns[:6]) == [
        "complexity",
        "loss",
        "score",
        "equation",
        "sympy_format",
        "lambda_format",
    ]
    assert np.allclose(front["loss"], front["rmse"] ** 2)
    assert front["score"].iloc[0] == 0
    fall = -np.diff(np.log(front["loss"])) / np.maximum(np.diff(front["complexity"]), 1)
    assert np.allclose(front["score"].iloc[1:], fall)
    for row, function in front["lambda_format"].items():
        assert np.array_equal(function(TABLE), noisy.predict(TABLE, row=row))
    chosen = front["chosen"]
    assert front.loc[chosen, "equation"].tolist() == [str(noisy.best_)]
    assert front.loc[chosen, "sympy_format"].tolist() == [noisy.sympy()]


def test_another_row_can_be_selected(noisy: PhysDiffuserRegressor) -> None:
    first = noisy.solution_.best
    other = next(row for row, one in enumerate(noisy.solution_.pareto, start=1) if one != first)
    try:
        assert noisy.select(other) is noisy
        assert noisy.best_ == noisy.solution_.pareto[other - 1]
        assert np.array_equal(noisy.predict(TABLE), noisy.predict(TABLE, row=other))
        assert noisy.latex() == noisy.latex(other)
        assert noisy.equations_.index[noisy.equations_["chosen"]].tolist() == [other]
        with pytest.raises(UsageError, match="no row 99"):
            noisy.select(99)
    finally:
        noisy.select()
    assert noisy.best_ == first
    with pytest.raises(UsageError, match="no row 0"):
        noisy.predict(TABLE, row=0)


def test_a_fitted_estimator_shows_its_law(noisy: PhysDiffuserRegressor) -> None:
    assert str(noisy) == str(noisy.solution_)
    assert repr(noisy).startswith("PhysDiffuserRegressor(")
    bundle = noisy._repr_mimebundle_()
    assert 'class="physdiffuser"' in bundle["text/html"] and bundle["text/plain"] == repr(noisy)
    assert noisy._repr_latex_().startswith(r"$\displaystyle F = ")
    fresh = PhysDiffuserRegressor(steps=3)
    assert str(fresh) == "PhysDiffuserRegressor(steps=3)" and fresh._repr_latex_() is None
    assert 'class="physdiffuser"' not in fresh._repr_mimebundle_()["text/html"]


def test_report_and_plots(noisy: PhysDiffuserRegressor, tmp_path: Any) -> None:
    page = noisy.report(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == page
    assert page.startswith("<!doctype html>") and "<iframe" in page._repr_html_()
    assert noisy.plot("pareto").get_xlabel() == "complexity"
    with pytest.raises(UsageError, match="no plot 'pie': use one of fit, residuals, pareto, partial"):
        noisy.plot("pie")


def test_predictions_come_in_the_container_asked_for(law: PhysDiffuserRegressor) -> None:
    table = TABLE.set_axis(range(100, 180))
    values = law.predict(table)
    again = pickle.loads(pickle.dumps(law))  # noqa: S301  # our own bytes
    series = again.set_output(predict="pandas").predict(table)
    assert isinstance(series, pd.Series) and series.name == "E" and series.index[0] == 100
    assert np.array_equal(series, values)
    assert np.array_equal(clone(again).fit(TABLE, ENERGY).predict(table).index, table.index)
    with pytest.raises(UsageError, match="no output 'list': use one of default, pandas, polars"):
        again.set_output(predict="list")


def test_next_measurements_are_suggested() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(0.5, 2.0, (14, 1))
    y = 3 / (1 + x[:, 0]) + 0.05 * rng.normal(size=14)
    law = PhysDiffuserRegressor(steps=4, suggest_next=2, suggest_range={"x1": (0.1, 10.0)}).fit(x, y)
    found = law.solution_.next_measurements
    assert found is not None and found.ranges == ((0.1, 10.0),)
    assert len(found.points) == 2 and all(0.1 <= point.inputs[0] <= 10.0 for point in found.points)


def test_polars_goes_in_and_comes_out(law: PhysDiffuserRegressor) -> None:
    pl = pytest.importorskip("polars", reason="needs pip install polars")
    table = pl.DataFrame({name: TABLE[name].to_numpy() for name in TABLE})
    fitted = PhysDiffuserRegressor(time=30, steps=50).fit(table, pl.Series("E", ENERGY.to_numpy()))
    assert fitted.best_ == law.best_ and list(fitted.feature_names_in_) == list(TABLE)
    out = fitted.set_output(predict="polars").predict(table)
    assert isinstance(out, pl.Series) and out.name == "E"
    assert np.array_equal(out.to_numpy(), law.predict(TABLE))


@pytest.mark.parametrize("path", sorted(PICKLES.glob("*.pickle")), ids=lambda path: path.stem)
def test_pickles_of_earlier_versions_load(path: Any) -> None:
    """One for each version: `y = 2.5*x**2` with noise, on 24 rows, fitted in five steps."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InconsistentVersionWarning)
        old = pickle.loads(path.read_bytes())  # noqa: S301  # our own bytes
    points = old.solution_.fit_points
    assert points is None or points.test.shape == points.truth.shape, "a field that was renamed"
    table = pd.DataFrame({"x": [1.0, 2.0]})
    assert np.allclose(old.predict(table), [2.497, 9.99], rtol=1e-3)
    assert old.get_params().keys() == PhysDiffuserRegressor().get_params().keys() and repr(old)
    assert "2.497*x**2" in str(old) and old._repr_html_() and len(old.equations_) == len(old.solution_.pareto)


def test_a_warm_start_takes_the_formulas_of_each_target_and_of_groups() -> None:
    x = np.random.default_rng(1).uniform(0.5, 3, (48, 1))
    codes = np.repeat(["a", "b", "c"], 16)
    y = np.repeat([2.0, 3.0, 5.0], 16) * np.exp(-np.repeat([0.5, 0.8, 1.1], 16) * x[:, 0])
    model = PhysDiffuserRegressor(
        steps=1, warm_start=True, generators=["enumeration"], operators=["mul", "exp"]
    ).fit(x, y, groups=codes)
    resumed = earlier_formulas(model)
    dataset = merged_dataset(x, y, None, ["x1"], "y", codes)
    assert model.best_.text in resumed(dataset)
    assert model.fit(x, y, groups=codes).best_.text == "p1*exp(-p2*x1)"
    assert not resumed(merged_dataset(x, y, None, ["x1"], "y", None)), "its constants are those of groups"
    several = np.column_stack([3 * x[:, 0], x[:, 0] ** 2])
    both = PhysDiffuserRegressor(steps=2, warm_start=True, operators=["mul", "pow"]).fit(x, several)
    resumed = earlier_formulas(both)
    for name, target in zip(both.targets_, several.T, strict=True):
        given = resumed(merged_dataset(x, target, None, ["x1"], name, None))
        assert both.targets_[name].best_.text in given
    assert set(both.fit(x, several).targets_) == set(both.targets_)


def test_a_warm_start_goes_on_from_the_formulas_of_the_fit_before() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 3, (60, 2))
    y = np.exp(-X[:, 0]) * np.sqrt(X[:, 1]) + 0.3 * X[:, 1]
    law = PhysDiffuserRegressor(steps=6, warm_start=True, operators=["add", "mul", "sqrt", "exp"]).fit(X, y)
    before = law.best_
    law.set_params(steps=1, generators=["sparse"]).fit(X, y)
    assert law.best_.rmse <= before.rmse * (1 + 1e-6)
    cold = PhysDiffuserRegressor(steps=1, generators=["sparse"]).fit(X, y)
    assert law.best_.rmse < cold.best_.rmse
    # Other columns, other formulas: nothing is taken over.
    other = law.fit(X[:, :1], y)
    assert other.best_.text.find("x2") < 0
