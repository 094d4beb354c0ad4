"""Intervals hold what they promise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import stdtrit
from skeletons import skeleton_of

from physdiffuser.expressions import evaluate, parse
from physdiffuser.fitting import fit_constants, prediction_interval, uncertainty
from physdiffuser.fitting.uncertainty import student_quantile

NIST: list[dict[str, Any]] = json.loads((Path(__file__).parent / "nist_strd.json").read_text())
WITH_ERRORS = [entry for entry in NIST if entry["standard_errors"]]


@pytest.mark.parametrize("entry", WITH_ERRORS, ids=[entry["name"] for entry in WITH_ERRORS])
def test_certified_standard_errors(entry: dict[str, Any]) -> None:
    skeleton = skeleton_of(entry["model"], ["x"], [f"b{i + 1}" for i in range(len(entry["certified"]))])
    inputs, target = np.array(entry["x"])[:, None], np.array(entry["y"])
    fit = fit_constants(skeleton, inputs, target, initial=entry["certified"], starts=1)
    known = uncertainty(skeleton, fit.parameters, inputs, target, covariance="classical")
    np.testing.assert_allclose(known.standard_errors, entry["standard_errors"], rtol=1e-5)


LAWS = [
    ("c1*exp(-c2*x) + c3", "2.3*exp(-0.7*x) + 1.1", [2.3, 0.7, 1.1]),
    ("c1*x**c2*y**c3", "2.3*x**0.67*y**(-1.3e0)", [2.3, 0.67, -1.3]),
    ("c1*x + c2*y", "1.0e0*x + 2.0e0*y", [1.0, 2.0]),
]


@pytest.mark.parametrize("relative", [False, True], ids=["even noise", "relative noise"])
@pytest.mark.parametrize("rows", [15, 60])
def test_coverage_of_constants_and_predictions(rows: int, relative: bool) -> None:
    inside = total = predicted = predictions = 0
    for skeleton_text, law_text, truth in LAWS:
        skeleton, law, values = skeleton_of(skeleton_text), parse(law_text, ["x", "y"]), np.array(truth)
        for seed in range(150):
            rng = np.random.default_rng([seed, rows])
            inputs = rng.uniform(0.5, 3.0, (rows + 20, 2))
            clean = evaluate(law, inputs)
            sigma = 0.03 * (clean if relative else np.full(rows + 20, clean.std()))
            noisy = clean + sigma * rng.normal(size=rows + 20)
            fit = fit_constants(skeleton, inputs[:rows], noisy[:rows], initial=truth, starts=1, iterations=30)
            known = uncertainty(skeleton, fit.parameters, inputs[:rows], noisy[:rows])
            low, high = known.intervals().T
            inside += int(((low <= values) & (values <= high)).sum())
            total += len(truth)
            below, above = prediction_interval(known, inputs[rows:]).T
            predicted += int(((below <= noisy[rows:]) & (noisy[rows:] <= above)).sum())
            predictions += 20
    assert inside / total == pytest.approx(0.95, abs=0.025)
    assert predicted / predictions == pytest.approx(0.95, abs=0.025)


def test_known_errors_of_rows() -> None:
    rng = np.random.default_rng(0)
    inputs = rng.uniform(0.5, 3.0, (400, 2))
    sigma = rng.uniform(0.01, 0.5, 400)
    truth = np.array([2.3, 0.7, 1.1])
    skeleton = skeleton_of(LAWS[0][0])
    target = evaluate(skeleton, inputs, truth) + sigma * rng.normal(size=400)
    weights = 1 / sigma**2
    fit = fit_constants(skeleton, inputs, target, weights=weights)
    mean_sigma = float(1 / np.sqrt(weights.mean()))
    given = uncertainty(skeleton, fit.parameters, inputs, target, weights=weights, sigma=mean_sigma)
    found = uncertainty(skeleton, fit.parameters, inputs, target, weights=weights, covariance="classical")
    np.testing.assert_allclose(given.standard_errors, found.standard_errors, rtol=0.15)
    blind = fit_constants(skeleton, inputs, target)
    unweighted = uncertainty(skeleton, blind.parameters, inputs, target)
    assert (given.standard_errors < unweighted.standard_errors).all()


@pytest.mark.parametrize("size", [1e-34, 1.0, 1e30])
def test_errors_scale_with_magnitude(size: float) -> None:
    rng = np.random.default_rng(0)
    inputs = rng.uniform(1.0, 2.0, (50, 2))
    noise = rng.normal(size=50)
    skeleton = skeleton_of("c1*x + c2*y**2")
    values = np.array([2.0, 3.0])
    target = evaluate(skeleton, inputs, values) + 0.01 * noise
    plain = uncertainty(skeleton, values, inputs, target)
    scaled = uncertainty(skeleton, values * size, inputs, target * size)
    np.testing.assert_allclose(scaled.standard_errors, plain.standard_errors * size, rtol=1e-9)
    band = prediction_interval(scaled, inputs[:3])
    np.testing.assert_allclose(band, prediction_interval(plain, inputs[:3]) * size, rtol=1e-9)


def test_constants_that_the_rows_do_not_fix_have_infinite_intervals() -> None:
    inputs = np.random.default_rng(0).uniform(1, 2, (30, 2))
    skeleton = skeleton_of("c1*c2*x + c3*y")
    target = 6 * inputs[:, 0] + inputs[:, 1] + 0.01 * np.random.default_rng(1).normal(size=30)
    known = uncertainty(skeleton, np.array([2.0, 3.0, 1.0]), inputs, target)
    assert np.isinf(known.standard_errors[:2]).all()
    assert np.isfinite(known.standard_errors[2])
    few = uncertainty(skeleton, np.array([2.0, 3.0, 1.0]), inputs[:2], target[:2])
    assert np.isinf(few.standard_errors).all()


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 10, 31, 100, 999, 1000, 1001, 20_000, 10**6])
def test_student_quantile_agrees_with_scipy(freedom: int) -> None:
    for level in (0.5, 0.68, 0.95, 0.999):
        reference = stdtrit(freedom, 0.5 + level / 2)
        assert student_quantile(level, freedom) == pytest.approx(reference, rel=1e-11)


def test_student_quantile() -> None:
    assert student_quantile(0.95, 10) == pytest.approx(2.228139, rel=1e-6)
    assert student_quantile(0.95, 10**6) == pytest.approx(1.959966, rel=1e-5)
    assert student_quantile(0.95, 0) == float("inf")
    with pytest.raises(ValueError, match=r"0\.95 is usual"):
        student_quantile(95, 10)
