"""Intervals hold what they promise."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest
from nist import NistProblem, nist_problems
from scipy.special import stdtrit
from skeletons import skeleton_of

from physdiffuser.expressions import evaluate, parse
from physdiffuser.fitting import fit_constants, prediction_interval, uncertainty
from physdiffuser.fitting.uncertainty import _expanded, student_quantile

# The standard errors of Lanczos1 are those of rounding, to one digit.
WITH_ERRORS = [problem for problem in nist_problems() if problem.name != "Lanczos1"]


@pytest.mark.parametrize("problem", WITH_ERRORS, ids=[problem.name for problem in WITH_ERRORS])
def test_certified_standard_errors(problem: NistProblem) -> None:
    skeleton, inputs, target = problem.skeleton, problem.inputs, problem.target
    fit = fit_constants(skeleton, inputs, target, initial=problem.certified, starts=1)
    known = uncertainty(skeleton, fit.parameters, inputs, target, covariance="classical")
    np.testing.assert_allclose(known.standard_errors, problem.standard_errors, rtol=1e-5)


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
        assert student_quantile(level, freedom) == pytest.approx(reference, rel=1e-10)


@pytest.mark.parametrize("normal", [0.5, 1.96, 3.3])
def test_the_expansion_for_many_degrees_of_freedom_is_of_third_order(normal: float) -> None:
    """Its error falls as the fourth power of their number."""
    probability = NormalDist().cdf(normal)
    errors = [abs(_expanded(normal, freedom) / stdtrit(freedom, probability) - 1) for freedom in (30, 60)]
    assert errors[1] < errors[0] / 13 and errors[1] < 1e-7 * max(1.0, normal**6)


def test_student_quantile() -> None:
    assert student_quantile(0.95, 10) == pytest.approx(2.228139, rel=1e-6)
    assert student_quantile(0.95, 10**6) == pytest.approx(1.959966, rel=1e-5)
    assert student_quantile(0.95, 0) == float("inf")
    with pytest.raises(ValueError, match=r"0\.95 is usual"):
        student_quantile(95, 10)


def noisy_table(rows: int = 40, seed: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs, the target of `c1*exp(-c2*x) + c3` with noise, and row weights."""
    rng = np.random.default_rng(seed)
    inputs = rng.uniform(0.5, 3.0, (rows, 2))
    target = 2.3 * np.exp(-0.7 * inputs[:, 0]) + 1.1 + 0.05 * rng.normal(size=rows)
    return inputs, target, rng.uniform(0.2, 5.0, rows)


def jacobian(inputs: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Of `c1*exp(-c2*x) + c3`, shape (rows, 3)."""
    wave = np.exp(-values[1] * inputs[:, 0])
    return np.stack([wave, -values[0] * inputs[:, 0] * wave, np.ones(len(inputs))], axis=1)


def reference_covariance(
    inputs: np.ndarray, target: np.ndarray, values: np.ndarray, weights: np.ndarray | None, how: str
) -> np.ndarray:
    """Textbook covariances, with the normal matrix inverted."""
    relative = np.ones(len(target)) if weights is None else weights / weights.mean()
    slopes = jacobian(inputs, values) * np.sqrt(relative)[:, None]
    residual = (target - values[0] * np.exp(-values[1] * inputs[:, 0]) - values[2]) * np.sqrt(relative)
    inverse = np.linalg.inv(slopes.T @ slopes)
    if how == "classical":
        return inverse * (residual @ residual) / (len(target) - 3)
    leverage = np.einsum("rp,pq,rq->r", slopes, inverse, slopes)
    meat = slopes.T * np.square(residual / (1 - leverage)) @ slopes
    return inverse @ meat @ inverse


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("how", ["classical", "sandwich"])
@pytest.mark.parametrize("rows", [5, 40])
def test_covariances_are_those_of_the_textbook(weighted: bool, how: str, rows: int) -> None:
    inputs, target, weights = noisy_table(rows)
    values = np.array([2.3, 0.7, 1.1])
    given = weights if weighted else None
    known = uncertainty(
        skeleton_of(LAWS[0][0]),
        values,
        inputs,
        target,
        weights=given,
        covariance=how,  # type: ignore[arg-type]
    )
    expected = reference_covariance(inputs, target, values, given, how)
    np.testing.assert_allclose(known.covariance, expected, rtol=1e-7)
    np.testing.assert_allclose(known.standard_errors, np.sqrt(np.diag(expected)), rtol=1e-7)
    np.testing.assert_allclose(np.diag(known.correlation), 1.0)
    assert known.degrees_of_freedom == rows - 3
    relative = np.ones(rows) if given is None else given / given.mean()
    residual = target - values[0] * np.exp(-values[1] * inputs[:, 0]) - values[2]
    assert known.sigma == pytest.approx(np.sqrt(relative @ residual**2 / (rows - 3)))


def test_a_known_sigma_takes_the_place_of_the_residuals() -> None:
    inputs, target, weights = noisy_table()
    values = np.array([2.3, 0.7, 1.1])
    skeleton = skeleton_of(LAWS[0][0])
    known = uncertainty(skeleton, values, inputs, target, weights=weights, sigma=0.7)
    slopes = jacobian(inputs, values) * np.sqrt(weights / weights.mean())[:, None]
    np.testing.assert_allclose(known.covariance, 0.49 * np.linalg.inv(slopes.T @ slopes), rtol=1e-7)
    assert known.sigma == pytest.approx(0.7)


@pytest.mark.parametrize(("rows", "how"), [(10, "classical"), (11, "sandwich")])
def test_the_sandwich_needs_rows(rows: int, how: str) -> None:
    inputs, target, _ = noisy_table(rows)
    values = np.array([2.3, 0.7, 1.1])
    known = uncertainty(skeleton_of(LAWS[0][0]), values, inputs, target)
    expected = reference_covariance(inputs, target, values, None, how)
    np.testing.assert_allclose(known.covariance, expected, rtol=1e-7)


def test_a_row_of_full_leverage_gives_finite_errors() -> None:
    """Only one row tells the constant of `y`; its residual is 0 and its leverage 1."""
    rng = np.random.default_rng(0)
    inputs = np.column_stack([rng.uniform(1, 2, 30), np.zeros(30)])
    inputs[0, 1] = 1.0
    target = 2 * inputs[:, 0] + 3 * inputs[:, 1] + 0.1 * rng.normal(size=30)
    known = uncertainty(skeleton_of("c1*x + c2*y"), np.array([2.0, 3.0]), inputs, target)
    assert np.isfinite(known.standard_errors).all()


def test_intervals_are_student_quantiles_of_the_errors() -> None:
    inputs, target, _ = noisy_table(12)
    values = np.array([2.3, 0.7, 1.1])
    known = uncertainty(skeleton_of(LAWS[0][0]), values, inputs, target)
    for level in (0.5, 0.95):
        half = stdtrit(9, 0.5 + level / 2) * known.standard_errors
        np.testing.assert_allclose(known.intervals(level), np.stack([values - half, values + half], axis=1))
    np.testing.assert_array_equal(known.intervals(), known.intervals(0.95))


def test_no_degrees_of_freedom_give_infinite_intervals() -> None:
    inputs, target, _ = noisy_table(3)
    known = uncertainty(skeleton_of(LAWS[0][0]), np.array([2.3, 0.7, 1.1]), inputs, target)
    assert known.degrees_of_freedom == 0 and known.sigma == float("inf")
    assert not np.isfinite(known.intervals()).any()


def test_a_fit_without_finite_slopes_says_nothing() -> None:
    inputs = np.array([[-1.0, 1.0], [2.0, 1.0], [3.0, 1.0], [4.0, 1.0], [5.0, 2.0]])
    known = uncertainty(skeleton_of("c1*log(x) + c2"), np.array([1.0, 2.0]), inputs, np.arange(5.0))
    assert np.isinf(known.standard_errors).all() and known.standard_errors.shape == (2,)
    np.testing.assert_array_equal(known.correlation, np.eye(2))
    assert known.degrees_of_freedom == 3


def test_a_constant_that_changes_nothing_is_not_determined() -> None:
    inputs, target, _ = noisy_table()
    inputs[:, 1] = 0.0
    known = uncertainty(skeleton_of("c1*x + c2*y"), np.array([1.0, 1.0]), inputs, target)
    assert np.isfinite(known.standard_errors[0]) and np.isinf(known.standard_errors[1])


def test_no_constant_is_known_better_than_its_last_bit() -> None:
    inputs = np.random.default_rng(0).uniform(1, 2, (30, 2))
    known = uncertainty(skeleton_of("c1*x"), np.array([2.5]), inputs, 2.5 * inputs[:, 0])
    assert known.standard_errors[0] == pytest.approx(2.5 * np.finfo(float).eps)


@pytest.mark.parametrize("of", ["observation", "mean"])
@pytest.mark.parametrize("weighted", [False, True])
def test_prediction_intervals_are_those_of_the_textbook(of: str, weighted: bool) -> None:
    inputs, target, _ = noisy_table()
    values = np.array([2.3, 0.7, 1.1])
    known = uncertainty(skeleton_of(LAWS[0][0]), values, inputs, target)
    new = np.random.default_rng(9).uniform(0.5, 3.0, (7, 2))
    weights = np.linspace(0.5, 4.0, 7) if weighted else None
    slopes = jacobian(new, values)
    variance = np.einsum("rp,pq,rq->r", slopes, known.covariance, slopes)
    if of == "observation":
        variance = variance + known.sigma**2 / (1.0 if weights is None else weights)
    value = values[0] * np.exp(-values[1] * new[:, 0]) + values[2]
    half = stdtrit(37, 0.95) * np.sqrt(variance)
    band = prediction_interval(known, new, 0.9, of=of, weights=weights)  # type: ignore[arg-type]
    np.testing.assert_allclose(band, np.stack([value - half, value + half], axis=1), rtol=1e-9)
    default = prediction_interval(known, new)
    np.testing.assert_array_equal(default, prediction_interval(known, new, 0.95, of="observation"))


def test_predictions_are_infinite_only_where_an_undetermined_constant_matters() -> None:
    inputs, target, _ = noisy_table()
    inputs[:, 1] = 0.0
    known = uncertainty(skeleton_of("c1*x + c2*y"), np.array([1.0, 1.0]), inputs, target)
    band = prediction_interval(known, np.array([[1.0, 0.0], [1.0, 2.0]]))
    assert np.isfinite(band[0]).all()
    np.testing.assert_array_equal(band[1], [-np.inf, np.inf])


@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, 1.5])
def test_a_level_lies_between_0_and_1(level: float) -> None:
    with pytest.raises(ValueError, match="must lie between 0 and 1"):
        student_quantile(level, 10)


def test_one_degree_of_freedom_is_enough_for_an_interval() -> None:
    assert student_quantile(0.5, 1) == pytest.approx(1.0)
    assert student_quantile(0.95, -1) == float("inf")
