"""The fit of one skeleton to all groups: against scipy, for every division of the constants."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.optimize import least_squares

from physdiffuser.expressions import evaluate
from physdiffuser.expressions.tree import bind
from physdiffuser.groups.joint_fit import FloatArray, GroupedRows, JointModel
from physdiffuser.groups.sharing import GroupDescriptionLength, best_sharing, separate_fits
from physdiffuser.search.refinement.guesses import read_guess

RNG = np.random.default_rng(4)
COUNTS = (9, 14, 6)
CODES = np.repeat(np.arange(3), COUNTS)
X = RNG.uniform(0.5, 4.0, (CODES.size, 1))
WEIGHTS = RNG.uniform(0.5, 2.0, CODES.size)
SKELETON = read_guess("a*exp(-b*x) + c", ["x"], {}).skeleton
TRUE = np.array([[3.0, 2.0, 4.0], [0.8, 0.8, 0.8], [0.5, -0.3, 0.1]])
Y = np.array([evaluate(bind(SKELETON, list(TRUE[:, g])), X[[i]])[0] for i, g in enumerate(CODES)])
NOISY = Y + 0.05 * RNG.normal(size=Y.size)
ROWS = GroupedRows.of(X, NOISY, WEIGHTS, CODES)


def residuals(parameters: FloatArray) -> FloatArray:
    values = np.empty(Y.size)
    for group in range(3):
        here = group == CODES
        values[here] = evaluate(bind(SKELETON, list(parameters[:, group])), X[here])
    return np.sqrt(WEIGHTS / WEIGHTS.mean()) * (values - NOISY)


def unpacked(vector: FloatArray, shared: np.ndarray) -> FloatArray:
    parameters, at = np.empty((3, 3)), 0
    for index in range(3):
        size = 1 if shared[index] else 3
        parameters[index] = vector[at : at + size]
        at += size
    return parameters


@pytest.mark.parametrize("choice", list(product([False, True], repeat=3)))
def test_every_division_reaches_the_minimum_that_scipy_finds(choice: tuple[bool, ...]) -> None:
    shared = np.array(choice)
    fit = JointModel(SKELETON, ROWS).fit(TRUE, shared)
    start = np.concatenate([TRUE[i].mean(keepdims=True) if shared[i] else TRUE[i] for i in range(3)])
    reference = least_squares(
        lambda vector: residuals(unpacked(vector, shared)), start, xtol=1e-14, ftol=1e-14
    )
    assert fit.loss * ROWS.spread == pytest.approx(2 * reference.cost, rel=1e-7)
    assert np.allclose(fit.parameters, unpacked(reference.x, shared), rtol=1e-3, atol=1e-4)
    assert fit.constants == start.size


@pytest.mark.parametrize("choice", [(False, True, False), (True, True, True), (False, False, False)])
def test_standard_errors_are_those_of_the_whole_jacobian(choice: tuple[bool, ...]) -> None:
    shared = np.array(choice)
    model = JointModel(SKELETON, ROWS)
    fit = model.fit(TRUE, shared)
    _, errors, variance = model.covariance(fit)
    packed = np.concatenate([fit.parameters[i, :1] if shared[i] else fit.parameters[i] for i in range(3)])
    jacobian = np.array(
        [
            (residuals(unpacked(packed + step, shared)) - residuals(unpacked(packed - step, shared))) / 2e-6
            for step in 1e-6 * np.eye(packed.size)
        ]
    )
    covariance = variance * np.linalg.inv(jacobian @ jacobian.T)
    assert np.allclose(errors, unpacked(np.sqrt(np.diag(covariance)), shared), rtol=1e-4)


def test_constants_that_are_held_stay() -> None:
    held = np.array([False, True, False])
    fit = JointModel(SKELETON, ROWS).fit(TRUE * 1.1, held, held=held)
    assert np.allclose(fit.parameters[1], 0.88) and not np.allclose(fit.parameters[0], TRUE[0] * 1.1)


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_the_division_is_found(noise: float) -> None:
    random = np.random.default_rng(8)
    codes = np.repeat(np.arange(6), 30)
    t = random.uniform(0, 9, (180, 1))
    rate, phase = random.uniform(0.2, 0.9, 6)[codes], random.uniform(-0.3, 0.3, 6)[codes]
    y = np.exp(-rate * t[:, 0]) * np.cos(1.389 * t[:, 0] + phase)
    rows = GroupedRows.of(t, y + noise * random.normal(size=180), None, codes)
    guess = read_guess("exp(-k*t)*cos(w*t + p)", ["t"], {})
    law = best_sharing(
        guess.skeleton, rows, GroupDescriptionLength(rows, 1e-22), separate_fits(guess.skeleton, rows, 0)
    )
    assert law is not None and dict(zip(guess.constants, law.fit.shared.tolist(), strict=True)) == {
        "k": False,
        "w": True,
        "p": False,
    }
    assert law.fit.parameters[1, 0] == pytest.approx(1.389, abs=0.02)
