"""The estimator: what scikit-learn asks of one, and what users of tables of measurements need."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError, SkipTestWarning
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

from physdiffuser import PhysDiffuserRegressor
from physdiffuser.errors import PluginError, UsageError
from physdiffuser.estimator import distinct_rows

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
        results = check_estimator(PhysDiffuserRegressor(time=30, steps=1), on_fail=None)
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
    for row, text in enumerate(law.equations_["latex"]):
        assert law.latex(row) == text
    with pytest.raises(UsageError, match="which has rows 0 to"):
        law.latex(len(law.equations_))


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
        ({"y": np.ones((80, 2))}, "should be a 1d array"),
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
    "loss": ["absolute", None],
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
    for other in (
        distinct_rows(repeated[:, :1], repeated[:, 1]),
        distinct_rows(inputs[order], target[order], weights[order]),
    ):
        for ours, theirs in zip(expected, other, strict=True):
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
