"""`PhysDiffuserDynamics`: arrays, frames and lists of runs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from physdiffuser import PhysDiffuserDynamics
from physdiffuser.errors import UsageError

TIMES = np.linspace(0.0, 8.0, 120)
CYCLE = np.column_stack([np.cos(1.5 * TIMES), -np.sin(1.5 * TIMES)])


def test_fit_predict_simulate_and_score() -> None:
    model = PhysDiffuserDynamics(steps=2).fit(pd.DataFrame(CYCLE, columns=["a", "b"]), TIMES)
    assert sorted(model.equations_) == ["da/dt = 1.5*b", "db/dt = -1.5*a"]
    assert list(model.feature_names_in_) == ["a", "b"] and model.n_features_in_ == 2
    assert np.allclose(model.predict([[1.0, 2.0]]), [[3.0, -1.5]])
    assert np.abs(model.simulate([1.0, 0.0], TIMES) - CYCLE).max() < 1e-5
    assert model.score(CYCLE, TIMES) > 0.999999
    with pytest.raises(UsageError, match="3 columns"):
        model.predict(np.ones((2, 3)))


def test_a_list_of_arrays_is_one_run_each() -> None:
    runs = [3.0 * np.exp(-0.5 * TIMES), 1.0 * np.exp(-0.5 * TIMES[:60])]
    model = PhysDiffuserDynamics(steps=2).fit([run[:, None] for run in runs], [TIMES, TIMES[:60]])
    assert model.equations_ == ["dx1/dt = -0.5*x1"]
    with pytest.raises(UsageError, match="same length"):
        PhysDiffuserDynamics().fit([run[:, None] for run in runs], [TIMES])


def test_parameters_are_those_of_an_estimator() -> None:
    model = PhysDiffuserDynamics(order=2, steps=3)
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(UsageError, match="points"):
        model.fit(CYCLE, TIMES[:5])
