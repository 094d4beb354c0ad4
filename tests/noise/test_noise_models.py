"""Noise models: their likelihoods tell them apart, and their weights are those of their errors."""

from __future__ import annotations

import numpy as np
import pytest

from physdiffuser.noise.models import KINDS, NoiseKind, fit_noise_model


def errors(kind: NoiseKind, size: np.ndarray) -> np.ndarray:
    return {
        "constant": np.full(len(size), 0.3),
        "relative": 0.1 * size,
        "poisson": 0.3 * np.sqrt(size),
        "mixed": np.sqrt(0.3**2 + (0.1 * size) ** 2),
        "robust": np.full(len(size), 0.3),
    }[kind]


def table(kind: NoiseKind, rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    prediction = np.exp(rng.uniform(0, 3, rows))
    unit = rng.standard_t(3, rows) if kind == "robust" else rng.standard_normal(rows)
    return prediction + errors(kind, prediction) * unit, prediction


@pytest.mark.parametrize("kind", KINDS)
def test_the_true_model_has_the_largest_likelihood(kind: NoiseKind) -> None:
    right = 0
    for seed in range(40):
        target, prediction = table(kind, 300, seed)
        models = [fit_noise_model(one, target, prediction, 1) for one in KINDS]
        right += min(models, key=lambda model: model.nats).kind == kind
    assert right >= 34


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_inverse_variances(kind: NoiseKind) -> None:
    target, prediction = table(kind, 20_000, 1)
    weights = fit_noise_model(kind, target, prediction, 0).weights(prediction)
    expected = errors(kind, prediction) ** -2.0
    assert weights.mean() == pytest.approx(1.0)
    np.testing.assert_allclose(weights, expected / expected.mean(), rtol=0.6 if kind == "mixed" else 1e-9)


def test_the_likelihood_is_that_of_normal_errors() -> None:
    target, prediction = table("relative", 50, 2)
    residual = target - prediction
    found = (
        fit_noise_model("relative", target, prediction, 0).nats
        - fit_noise_model("constant", target, prediction, 0).nats
    )

    def log_likelihood(sigma: np.ndarray) -> float:
        return float(-np.log(sigma).sum() - 0.5 * np.square(residual / sigma).sum())

    relative = np.sqrt(np.mean(np.square(residual / prediction))) * prediction
    constant = np.full(50, np.sqrt(np.mean(np.square(residual))))
    assert found == pytest.approx(log_likelihood(constant) - log_likelihood(relative), rel=1e-9)


@pytest.mark.parametrize("unit", [1e-200, 1e-30, 1e30, 1e200])
@pytest.mark.parametrize("kind", KINDS)
def test_the_unit_of_the_target_changes_no_comparison(kind: NoiseKind, unit: float) -> None:
    target, prediction = table("mixed", 100, 3)

    def advantage(scale: float) -> float:
        args = scale * target, scale * prediction, 1
        return fit_noise_model(kind, *args).nats - fit_noise_model("constant", *args).nats

    assert advantage(unit) == pytest.approx(advantage(1.0), abs=1e-6)
    weights = fit_noise_model(kind, unit * target, unit * prediction, 1).weights(unit * prediction)
    assert np.isfinite(weights).all()
    assert (weights > 0).all()


def test_a_prediction_of_zero_has_a_finite_weight() -> None:
    prediction = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    for kind in KINDS:
        model = fit_noise_model(kind, prediction + 0.1, prediction, 0)
        assert np.isfinite(model.weights(prediction)).all()
