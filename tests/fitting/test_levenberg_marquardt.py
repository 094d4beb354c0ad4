"""Levenberg-Marquardt against certified values and against scipy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import least_squares
from skeletons import skeleton_of

from physdiffuser.expressions import Expression, evaluate, value_and_jacobian
from physdiffuser.fitting import Outcome, fit_constants
from physdiffuser.fitting.levenberg_marquardt import levenberg_marquardt
from physdiffuser.fitting.varpro import SeparableModel

# Certified values of the NIST Statistical Reference Datasets for nonlinear regression
# (https://www.itl.nist.gov/div898/strd/nls/nls_main.shtml).
NIST: list[dict[str, Any]] = json.loads((Path(__file__).parent / "nist_strd.json").read_text())


def nist_problem(entry: dict[str, Any]) -> tuple[Expression, np.ndarray, np.ndarray]:
    names = [f"b{i + 1}" for i in range(len(entry["certified"]))]
    return skeleton_of(entry["model"], ["x"], names), np.array(entry["x"])[:, None], np.array(entry["y"])


# From its far start, MGH09 with b1 solved for runs to the local minimum at infinity that NIST's page warns of
# (b1 -> 0, b1*b2 fixed); `fit_constants` finds the certified one without a start, see below.
NIST_STARTS = [
    (entry, start)
    for entry in NIST
    for start in entry["starts"]
    if (entry["name"], start[0]) != ("MGH09", 25)
]


@pytest.mark.parametrize(
    ("entry", "start"), NIST_STARTS, ids=[f"{entry['name']}-{start[0]}" for entry, start in NIST_STARTS]
)
def test_certified_values_from_the_certified_starts(entry: dict[str, Any], start: list[float]) -> None:
    skeleton, inputs, target = nist_problem(entry)
    model = SeparableModel(skeleton, inputs, target)
    found = levenberg_marquardt(model, np.array(start)[:, None], iterations=200)
    # Eckerle4 does not change when b1 and b2 change sign.
    np.testing.assert_allclose(np.abs(found.parameters[:, 0]), np.abs(entry["certified"]), rtol=1e-6)
    assert found.outcomes[0] is Outcome.CONVERGED
    if entry["residual_sum_of_squares"] is not None:
        residual = target - evaluate(skeleton, inputs, found.parameters[:, 0])
        assert residual @ residual == pytest.approx(entry["residual_sum_of_squares"], rel=1e-9)


@pytest.mark.parametrize("entry", NIST, ids=[entry["name"] for entry in NIST])
def test_certified_values_without_a_start(entry: dict[str, Any]) -> None:
    skeleton, inputs, target = nist_problem(entry)
    fit = fit_constants(skeleton, inputs, target, rng=np.random.default_rng(0), iterations=200)
    np.testing.assert_allclose(
        evaluate(skeleton, inputs, fit.parameters),
        evaluate(skeleton, inputs, np.array(entry["certified"])),
        rtol=1e-5,
        atol=1e-7 * np.abs(target).max(),
    )


# Formula, constants of the truth, a start. Two columns, uniform in [0.5, 3].
STANDARD = [
    ("c1*exp(-c2*x) + c3", [2.3, 0.7, 1.1], [1, 1, 0]),
    ("c1*exp(c2*x) + c3*exp(c4*x)", [2.3, 0.7, 1.1, -0.8], [1, 1, 1, -1]),
    ("c1*sin(c2*x + c3)", [2.3, 1.7, 0.4], [1, 1.5, 0]),
    ("c1*exp(-c2*x)*cos(c3*x)", [2.3, 0.3, 5.4], [1, 0.5, 5.2]),
    ("c1*x**c2*y**c3", [2.3, 0.67, -1.3], [1, 1, 1]),
    ("c1*x/(c2 + x)", [2.3, 0.67], [1, 1]),
    ("c1*x/(c2 + x) + c3*y", [2.3, 0.67, -1.2], [1, 1, 1]),
    ("c1*x**c2/(c3**c2 + x**c2)", [2.3, 3.5, 1.2], [1, 2, 1]),
    ("c1/(1 + exp(-c2*(x - c3)))", [2.3, 3.7, 1.3], [1, 1, 1]),
    ("c1*exp(-(x - c2)**2/(2*c3**2))", [2.3, 1.4, 0.5], [1, 1, 1]),
    ("c1/((x - c2)**2 + c3**2)", [2.3, 1.4, 0.5], [1, 1, 1]),
    ("sqrt(c1*x + c2*y**2)", [2.3, 3.7], [1, 1]),
    ("log(c1 + c2*x*y)", [2.3, 3.7], [1, 1]),
    ("c1*log(x + c2) + c3", [2.3, 3.7, -1.5], [1, 1, 1]),
    ("c1*tanh(c2*x + c3*y)", [2.3, 0.7, -0.5], [1, 1, 0]),
    ("c1*x + c2*y + c3*x*y + c4", [2.3, 0.7, -0.5, 1.5], [0, 0, 0, 0]),
    ("(c1 + c2*x)/(1 + c3*x + c4*x**2)", [2.3, 0.7, 0.5, 1.5], [1, 1, 1, 1]),
    ("c1*(1 - exp(-c2*x*y))", [2.3, 0.7], [1, 1]),
    ("c1*exp(c2/(x + c3))", [2.3, 0.7, 0.4], [1, 1, 1]),
    ("c1*x*exp(-c2*y) + c3", [2.3, 0.7, 0.4], [1, 1, 1]),
    ("c1*sqrt(1 - x**2/c2**2)", [2.3, 3.7], [1, 4]),
    ("c1*cos(c2*x) + c3*sin(c2*x)", [2.3, 1.7, 0.4], [1, 1.5, 1]),
    ("c1/(exp(c2*x/y) - 1)", [2.3, 0.31], [1, 1]),
    ("c1*atan(c2*x) + c3*y", [2.3, 0.9, 0.31], [1, 1, 1]),
    ("(c1*x + c2)**c3", [2.3, 0.9, 1.31], [1, 1, 1]),
    ("c1*abs(x - c2) + c3", [2.3, 1.7, 0.5], [1, 1.4, 0]),
    ("exp(c1 + c2*x + c3*y)", [0.3, 0.9, -1.31], [0, 0, 0]),
    ("c1*x**2 + c2*exp(-c3*x*y)", [0.3, 0.9, 1.31], [1, 1, 1]),
    ("x/(c1 + c2*x + c3*y)", [0.3, 0.9, 1.31], [1, 1, 1]),
    ("c1*sinh(c2*x)/cosh(c3*y)", [0.3, 0.9, 1.31], [1, 1, 1]),
]


@pytest.mark.parametrize("noise", [0.0, 0.02])
@pytest.mark.parametrize(("text", "truth", "start"), STANDARD, ids=[text for text, _, _ in STANDARD])
def test_never_worse_than_scipy_from_the_same_start(
    text: str, truth: list[float], start: list[float], noise: float
) -> None:
    rng = np.random.default_rng(5)
    inputs = rng.uniform(0.5, 3.0, (80, 2))
    skeleton = skeleton_of(text, ["x", "y"], ["c1", "c2", "c3", "c4"])
    clean = evaluate(skeleton, inputs, np.array(truth))
    target = clean + noise * clean.std() * rng.normal(size=80)
    first = np.array(start, dtype=float)

    def residual(values: np.ndarray) -> np.ndarray:
        value = evaluate(skeleton, inputs, values) - target
        return np.where(np.isfinite(value), value, 1e6)

    def jacobian(values: np.ndarray) -> np.ndarray:
        return np.nan_to_num(value_and_jacobian(skeleton, inputs, values)[1].T, posinf=1e6, neginf=-1e6)

    reference = least_squares(
        residual, first, jac=jacobian, x_scale="jac", xtol=1e-15, ftol=1e-15, gtol=1e-15
    )
    found = levenberg_marquardt(SeparableModel(skeleton, inputs, target), first[:, None], iterations=200)
    ours = residual(found.parameters[:, 0])
    size = float(target @ target)
    assert ours @ ours <= 2 * reference.cost * (1 + 1e-6) + 1e-26 * size
    if noise == 0.0 and 2 * reference.cost < 1e-20 * size:
        close = np.abs(found.parameters[:, 0]) - np.abs(truth)
        assert np.abs(close).max() <= 1e-10 * np.abs(truth).max()
