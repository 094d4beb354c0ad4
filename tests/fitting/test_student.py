"""Student's t: its parameters, its likelihood, and intervals after a robust fit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from physdiffuser.expressions import Parameter, Variable
from physdiffuser.expressions.tree import add, mul
from physdiffuser.fitting import fit_constants
from physdiffuser.fitting.student import FREEDOMS, student_fit, student_weights
from physdiffuser.fitting.uncertainty import uncertainty


@pytest.mark.parametrize("freedom", [2, 3, 5])
def test_the_likelihood_is_that_of_scipy(freedom: int) -> None:
    residual = 0.7 * np.random.default_rng(freedom).standard_t(freedom, 400)
    fit = student_fit(residual)
    ours = fit.nats + stats.norm.entropy()
    assert ours == pytest.approx(-stats.t.logpdf(residual, fit.freedom, scale=fit.scale).mean(), rel=1e-9)
    best = min(
        -stats.t.logpdf(residual, nu, loc, scale).mean()
        for nu, loc, scale in (stats.t.fit(residual, f0=nu, floc=0.0) for nu in FREEDOMS)
    )
    assert ours == pytest.approx(best, abs=1e-3)


def test_of_normal_errors_the_loss_is_the_variance() -> None:
    residual = 3.0 * np.random.default_rng(0).standard_normal(5_000)
    assert float(student_fit(residual).variance) == pytest.approx(9.0, rel=0.05)


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_weights_do_not_depend_on_the_unit(scale: float) -> None:
    residual = np.random.default_rng(1).standard_t(2, 100)
    np.testing.assert_allclose(student_weights(scale * residual), student_weights(residual), rtol=1e-9)


@pytest.mark.parametrize("rows", [20, pytest.param(100, marks=pytest.mark.slow)])
def test_intervals_hold_the_constants_of_a_line(rows: int) -> None:
    rng = np.random.default_rng(rows)
    skeleton = add(mul(Parameter(0), Variable(0)), Parameter(1))
    inside = []
    for _ in range(400):
        x = rng.uniform(0, 5, (rows, 1))
        y = 1.3 * x[:, 0] + 0.4 + 0.2 * rng.standard_t(3, rows)
        fit = fit_constants(skeleton, x, y, loss="robust")
        known = uncertainty(fit.skeleton, fit.parameters, x, y, loss="robust")
        low, high = known.intervals().T
        inside.append((low <= [1.3, 0.4]) & (np.array([1.3, 0.4]) <= high))
    assert 0.92 < np.mean(inside) < 0.975


def test_a_robust_fit_of_heavy_tailed_errors_is_more_accurate() -> None:
    rng = np.random.default_rng(5)
    skeleton = add(mul(Parameter(0), Variable(0)), Parameter(1))
    off = {"squared": 0.0, "robust": 0.0}
    for _ in range(100):
        x = rng.uniform(0, 5, (100, 1))
        y = 1.3 * x[:, 0] + 0.4 + 0.2 * rng.standard_t(2, 100)
        for loss in off:
            off[loss] += float(np.square(fit_constants(skeleton, x, y, loss=loss).parameters[0] - 1.3))  # type: ignore[arg-type]
    assert off["robust"] < 0.5 * off["squared"]
