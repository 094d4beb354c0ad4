"""Targets over many decades, of either sign or near zero: weights stay finite, and nothing fails."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from physdiffuser.data import dataset_from_arrays
from physdiffuser.fitting.losses import relative_loss
from physdiffuser.fitting.student import student_weights
from physdiffuser.noise.models import KINDS, fit_noise_model
from physdiffuser.noise.neighbour_report import judge_by_neighbours
from physdiffuser.pipeline import solve_dataset
from physdiffuser.search.noise_inference import is_wide, relative_weights

VALUES = st.one_of(
    st.floats(-1e100, 1e100),
    st.sampled_from([0.0, -0.0, 1e-300, -1e-300, 1e-30, 1e30, -1e30, 1.0, -1.0, 5e-324]),
)
TARGETS = arrays(np.float64, st.integers(8, 40), elements=VALUES)


@settings(deadline=None, max_examples=40)
@given(TARGETS)
def test_weights_are_finite_and_not_negative(target: np.ndarray) -> None:
    with np.errstate(all="ignore"):
        assert is_wide(target) in (True, False)
        weights = relative_weights(target)
    assert np.isfinite(weights).all() and (weights >= 0).all() and weights.max() > 0


@settings(deadline=None, max_examples=40)
@given(TARGETS)
def test_every_noise_model_can_be_fitted(target: np.ndarray) -> None:
    prediction = np.roll(target, 1)
    with np.errstate(all="ignore"):
        for kind in KINDS:
            model = fit_noise_model(kind, target, prediction, 1)
            assert not np.isnan(model.nats)
            weights = model.weights(prediction)
            assert np.isfinite(weights).all() and (weights >= 0).all()


@settings(deadline=None, max_examples=40)
@given(TARGETS)
def test_the_robust_loss_is_a_number(residual: np.ndarray) -> None:
    with np.errstate(all="ignore"):
        loss = relative_loss(np.zeros(residual.size), residual, loss="robust")
        weights = student_weights(residual)
    assert loss >= 0.0
    assert np.isfinite(weights).all() and (weights >= 0).all() and (weights <= 2.0).all()


@settings(deadline=None, max_examples=40)
@given(TARGETS)
def test_neighbouring_rows_can_be_compared(target: np.ndarray) -> None:
    inputs = np.linspace(1.0, 2.0, len(target))[:, None]
    with np.errstate(all="ignore"):
        found = judge_by_neighbours(inputs, target)
    assert found.weights is None or np.isfinite(found.weights).all()


X = np.linspace(0.5, 4.0, 40)
NASTY = {
    "thirty decades": 10.0 ** np.linspace(-15, 15, 40),
    "both signs": np.sinh(np.linspace(-20, 20, 40)),
    "zeros": np.where(X < 2, 0.0, (X - 2) ** 5),
    "near zero": 1e-200 * np.sin(3 * X),
}


@pytest.mark.parametrize("name", NASTY)
def test_nasty_tables_are_solved(name: str) -> None:
    target = NASTY[name] * (1 + 0.01 * np.random.default_rng(0).standard_normal(40))
    dataset = dataset_from_arrays(X[:, None], target, names=["x"])
    solution = solve_dataset(dataset, steps=1, plugins=False)
    assert solution.best is not None
    assert np.isfinite(solution.best.rmse)
