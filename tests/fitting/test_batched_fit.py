"""Skeletons fitted together end where each ends when it is fitted alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from physdiffuser.device import HOST, Device, open_device
from physdiffuser.expressions import Parameter, parse
from physdiffuser.expressions.tree import Expression, Variable, add, call, div, mul, power
from physdiffuser.fitting import Fit, Outcome, fit_batched, fit_constants
from physdiffuser.fitting.losses import Loss

GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
NAMES = ("x", "t", "u")
# In front of and inside of what stands there: three shapes, several columns at each place.
FACTORS = [parse(text, NAMES) for text in ("x", "x**2/t", "x*u", "1/t")]
INSIDE = [parse(text, NAMES) for text in ("t", "u", "t*u")]


def decay(factor: Expression, u: Expression) -> Expression:
    return add(Parameter(0), mul(Parameter(1), mul(factor, call("exp", mul(Parameter(2), u)))))


def saturation(factor: Expression, u: Expression) -> Expression:
    return add(Parameter(0), mul(Parameter(1), div(factor, add(parse("1", NAMES), mul(Parameter(2), u)))))


def exponent(factor: Expression, u: Expression) -> Expression:
    return mul(Parameter(0), mul(factor, power(u, Parameter(1))))


def reciprocal(factor: Expression, u: Expression) -> Expression:
    return div(parse("1", NAMES), add(Parameter(0), mul(Parameter(1), mul(factor, u))))


def table(rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    inputs = rng.uniform(0.5, 3.0, (rows, 3))
    x, t, u = inputs.T
    target = (1.5 + 2.0 * x * np.exp(-0.8 * t) + 0.1 * u) * (1 + 0.01 * rng.standard_normal(rows))
    return inputs, target, rng.uniform(0.5, 2.0, rows)


@pytest.mark.parametrize("loss", ["squared", "robust"])
@pytest.mark.parametrize("weighted", [False, True])
def test_together_as_alone(loss: Loss, weighted: bool) -> None:
    inputs, target, weights = table(60)
    given = weights if weighted else None
    skeletons, initial = [], []
    for form, start in (
        (decay, [1.0, 1.0, -0.5]),
        (exponent, [1.0, -0.5]),
        (saturation, [1.0, 1.0, 0.5]),
        (reciprocal, [0.3, 0.1]),
    ):
        for factor in FACTORS:
            for u in INSIDE:
                skeletons.append(form(factor, u))
                initial.append(start)
    found = fit_batched(skeletons, initial, inputs, target, weights=given, loss=loss)
    assert len(found) == len(skeletons)
    for skeleton, start, fit in zip(skeletons, initial, found, strict=True):
        alone = fit_constants(skeleton, inputs, target, weights=given, loss=loss, initial=start, starts=1)
        assert fit.skeleton == skeleton
        assert fit.outcome.usable
        # Rounds of reweighting go on for as long as any of them improves.
        assert fit.loss <= alone.loss * (1 + (1e-6 if loss == "squared" else 1e-3))
        if loss == "squared" and fit.outcome is alone.outcome is Outcome.CONVERGED:
            np.testing.assert_allclose(fit.parameters, alone.parameters, rtol=1e-3, atol=1e-6)
    assert min(fit.loss for fit in found) < 0.02


def test_one_that_is_never_finite_spoils_no_other() -> None:
    inputs, target, _ = table(40)
    good = mul(Parameter(0), call("exp", mul(Parameter(1), Variable(1))))
    bad = mul(Parameter(0), call("exp", mul(Parameter(1), call("log", parse("x - 10", NAMES)))))
    fits = fit_batched([bad, good, bad], [[1.0, -0.1]] * 3, inputs, target)
    assert [fit.outcome for fit in fits] == [Outcome.NOT_FINITE, Outcome.CONVERGED, Outcome.NOT_FINITE]
    assert fits[0].loss == np.inf
    alone = fit_constants(good, inputs, target, initial=[1.0, -0.1], starts=1)
    assert fits[1].loss == pytest.approx(alone.loss, rel=1e-9)


def test_a_start_needs_a_value_for_each_parameter() -> None:
    inputs, target, _ = table(20)
    with pytest.raises(ValueError, match="one value"):
        fit_batched([mul(Parameter(0), Variable(0))], [[1.0, 2.0]], inputs, target)


@pytest.mark.parametrize("name", ["cpu-torch", pytest.param("cuda", marks=GPU)])
@pytest.mark.parametrize("loss", ["squared", "robust"])
@pytest.mark.parametrize("weighted", [False, True])
def test_on_a_device_as_by_numpy(name: str, loss: Loss, weighted: bool) -> None:
    inputs, target, weights = table(80)
    inputs[:, 1] *= 1e-30
    bad = mul(Parameter(0), call("exp", mul(Parameter(1), call("log", parse("x - 10", NAMES)))))
    still = add(Parameter(0), call("tanh", mul(Parameter(1), mul(Variable(0), parse("1000", NAMES)))))
    skeletons, initial = [bad, still, add(Parameter(0), mul(Parameter(1), Variable(2)))], [[1.0, 1.0]] * 3
    for form, start in ((decay, [1.0, 1.0, -0.5e30]), (exponent, [1.0, -0.5]), (reciprocal, [0.3, 1e-30])):
        for factor in FACTORS:
            skeletons.append(form(factor, INSIDE[0]))
            initial.append(start)

    def fits(device: Device) -> list[Fit]:
        return fit_batched(
            skeletons,
            initial,
            inputs,
            target,
            weights=weights if weighted else None,
            loss=loss,
            iterations=30,
            tolerance=1e-10,
            device=device,
        )

    expected, found = fits(HOST), fits(open_device(name))
    assert [fit.skeleton for fit in found] == skeletons
    if loss == "squared":
        assert [fit.outcome for fit in found] == [fit.outcome for fit in expected]
    # The robust loss of the saturated form has many flat places: rounding decides where its fit ends.
    tolerance = 1e-6 if loss == "squared" else 1e-2
    np.testing.assert_allclose([fit.loss for fit in found], [fit.loss for fit in expected], rtol=tolerance)
    for one, other in zip(found[2:], expected[2:], strict=True):
        if other.outcome is Outcome.CONVERGED and loss == "squared":
            # As far as the rows fix them: to the root of what the loss is known to.
            np.testing.assert_allclose(one.parameters, other.parameters, rtol=1e-3)


def test_nothing_to_fit() -> None:
    inputs, target, _ = table(20)
    assert fit_batched([], [], inputs, target) == []
