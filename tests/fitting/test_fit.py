"""Fitting from nothing: magnitudes, frequencies, outliers, weights, determinism, what fails and how."""

from __future__ import annotations

import numpy as np
import pytest
from skeletons import as_fitted, skeleton_of

from physdiffuser.core.archive import relative_loss as archive_loss
from physdiffuser.core.problem import Problem
from physdiffuser.expressions import Number, evaluate, parse
from physdiffuser.expressions.tree import free_constants
from physdiffuser.fitting import Outcome, fit_constants, refit, relative_loss
from physdiffuser.fitting.starts.periodogram import periodogram_peaks
from physdiffuser.fitting.starts.starts import draw_starts
from physdiffuser.fitting.student import student_fit
from physdiffuser.fitting.varpro import linear_parameters

LAWS = [
    ("c1*exp(-c2*x) + c3", [2.3, 0.7, 1.1]),
    ("c1*sin(c2*x + c3)", [2.3, 7.7, 0.4]),
    ("c1*exp(-c2*x)*sin(c3*x + c4)", [2.3, 0.9, 17.7, 0.4]),
    ("c1*sin(c2*x) + c3*cos(c4*y)", [2.3, 37.7, 0.4, 11.9]),
    ("c1*sin(c2*x)**2 + c3", [2.3, 24.1, 1.7]),
    ("c1*x**c2*y**c3", [2.3, 0.67, -1.3]),
    ("c1*x/(c2 + x) + c3*y", [2.3, 0.67, -1.3]),
    ("c1/(1 + exp(-c2*(x - c3)))", [2.3, 3.67, 1.3]),
    ("c1*exp(-(x - c2)**2/(2*c3**2))", [2.3, 1.5, 0.3]),
    ("c1/((x - c2)**2 + c3**2)", [2.3, 1.1, 0.1]),
    ("c1*log(1 + c2*x) + c3", [2.3, 150.0, 0.3]),
    ("c1*tanh(c2*x*y) + c3", [2.3, 0.15, 0.3]),
    ("c1*x**c2/(c3**c2 + x**c2)", [2.3, 4.1, 1.7]),
    ("c1*sqrt(1 - x**2/c2**2)", [2.3, 5.31]),
    ("c1*exp(c2*x) + c3*exp(c4*x)", [5.3, -2.3, 3.0, -0.3]),
    ("c1/(exp(c2*x/y) - 1)", [2.3, 0.31]),
]
IDS = [text for text, _ in LAWS]


def _table(text: str, truth: list[float], rows: int = 120) -> tuple[np.ndarray, np.ndarray]:
    inputs = np.random.default_rng(3).uniform(0.5, 3.0, (rows, 2))
    return inputs, evaluate(skeleton_of(text), inputs, np.array(truth))


@pytest.mark.parametrize(("x_size", "y_size"), [(1.0, 1.0), (1e-10, 1e20), (1e8, 1e-34), (1e-30, 1e30)])
@pytest.mark.parametrize(("text", "truth"), LAWS, ids=IDS)
def test_free_constants_without_a_start_at_any_magnitude(
    text: str, truth: list[float], x_size: float, y_size: float
) -> None:
    inputs, target = _table(text, truth)
    fit = fit_constants(skeleton_of(text), inputs * x_size, target * y_size, rng=np.random.default_rng(1))
    assert fit.loss < 1e-24, fit.outcome.advice
    if x_size == y_size == 1.0:
        # Up to the symmetries of the formula; each of these has at most a sign or a period to choose.
        assert fit.loss < 1e-26
        same = sorted(np.abs(fit.parameters))
        if "sin" not in text and "cos" not in text:
            np.testing.assert_allclose(same, sorted(np.abs(truth)), rtol=1e-9)


@pytest.mark.parametrize("rows", [20, 50])
@pytest.mark.parametrize(("text", "truth"), LAWS[:2] + LAWS[5:10], ids=IDS[:2] + IDS[5:10])
def test_few_rows(text: str, truth: list[float], rows: int) -> None:
    inputs, target = _table(text, truth, rows)
    assert fit_constants(skeleton_of(text), inputs, target).loss < 1e-24


@pytest.mark.parametrize(("text", "truth"), LAWS, ids=IDS)
def test_outliers_do_not_move_a_robust_fit(text: str, truth: list[float]) -> None:
    inputs, target = _table(text, truth, 200)
    spoiled = target.copy()
    spoiled[::50] += 10.0 * target.std()
    fit = fit_constants(skeleton_of(text), inputs, spoiled, loss="robust", iterations=100)
    prediction = evaluate(skeleton_of(text), inputs, fit.parameters)
    assert np.abs(prediction - target).max() < 1e-6 * np.abs(target).max()


def test_weights_mean_repeated_rows() -> None:
    rng = np.random.default_rng(0)
    inputs, target = _table(*LAWS[0])
    target = target + 0.05 * rng.normal(size=target.size)
    times = rng.integers(1, 4, target.size)
    start = as_fitted("2.0*exp(-0.5*x) + 1.0")
    weighted = refit(start, inputs, target, weights=times.astype(float))
    repeated = refit(start, np.repeat(inputs, times, axis=0), np.repeat(target, times))
    np.testing.assert_allclose(weighted.parameters, repeated.parameters, rtol=1e-7)
    assert weighted.loss == pytest.approx(repeated.loss, rel=1e-9)


def test_equal_generators_give_equal_fits() -> None:
    inputs, target = _table(*LAWS[2])
    fits = [
        fit_constants(skeleton_of(LAWS[2][0]), inputs, target, rng=np.random.default_rng(9)) for _ in range(2)
    ]
    assert (fits[0].parameters == fits[1].parameters).all()


def test_many_rows_are_fitted_on_all_of_them() -> None:
    text, truth = LAWS[1]
    inputs, target = _table(text, truth, 20_000)
    target = target + 0.1 * np.random.default_rng(0).normal(size=target.size)
    fit = fit_constants(skeleton_of(text), inputs, target)
    best = refit(as_fitted("2.3*sin(7.7*x + 0.4)"), inputs, target)
    assert fit.loss == pytest.approx(best.loss, rel=1e-9)


def test_refit_keeps_exact_numbers_and_names() -> None:
    inputs, target = _table("3*x**2 + c1*pi*y", [1.7])
    fit = refit(parse("3*x**2 + 1.6e0*pi*y", ["x", "y"]), inputs, target)
    assert fit.skeleton == skeleton_of("3*x**2 + c1*pi*y")
    np.testing.assert_allclose(fit.parameters, [1.7], rtol=1e-14)
    assert free_constants(fit.expression)[1] == tuple(fit.parameters)


def test_outcomes_are_values_with_advice() -> None:
    inputs, target = _table(*LAWS[0])
    outside = fit_constants(skeleton_of("log(0 - x**2 - c1**2)"), inputs, target)
    assert outside.outcome is Outcome.NOT_FINITE
    assert not outside.outcome.usable
    assert outside.loss == float("inf")
    nothing = fit_constants(parse("x*y", ["x", "y"]), inputs, target)
    assert nothing.outcome is Outcome.NO_PARAMETERS
    short = refit(as_fitted("1.0*exp(-3.0*x) + 0.1"), inputs, target, iterations=1)
    assert short.outcome is Outcome.ITERATION_LIMIT
    assert all(outcome.advice for outcome in Outcome)


def test_more_constants_than_rows_is_no_error() -> None:
    inputs, target = _table(*LAWS[0], rows=3)
    fit = fit_constants(skeleton_of("c1*exp(c2*x) + c3*sin(c4*x + c5)"), inputs, target)
    assert np.isfinite(fit.loss)


def test_constant_target_and_zero_target() -> None:
    inputs, _ = _table(*LAWS[0])
    for target in (np.zeros(120), np.full(120, 3.5)):
        fit = fit_constants(skeleton_of("c1*x + c2"), inputs, target)
        prediction = evaluate(skeleton_of("c1*x + c2"), inputs, fit.parameters)
        np.testing.assert_allclose(prediction, target, atol=1e-13)


@pytest.mark.parametrize("loss", ["squared", "robust"])
@pytest.mark.parametrize("weighted", [False, True])
def test_loss_is_that_of_the_archive(loss: str, weighted: bool) -> None:
    rng = np.random.default_rng(0)
    inputs, target = _table(*LAWS[0])
    weights = rng.uniform(0.5, 2, target.size) if weighted else None
    prediction = target + 0.1 * rng.standard_t(2, target.size)
    problem = Problem(inputs, target, ("x", "y"), weights=weights, loss=loss)  # type: ignore[arg-type]
    ours = relative_loss(prediction, target, weights, loss)  # type: ignore[arg-type]
    assert ours == pytest.approx(archive_loss(problem, prediction), rel=1e-12)


def test_no_misprint_is_worth_a_peak_through_it() -> None:
    rng = np.random.default_rng(3)
    target = rng.uniform(1.0, 50.0, 300)
    residual = rng.normal(0.0, 0.01 * np.sqrt(np.mean(target**2)), 300)
    residual[::50] += 4.0 * target[::50]
    for misprint in range(0, 300, 50):
        through = residual.copy()
        through[misprint] = 0.0
        gain = 150.0 * np.log(float(student_fit(residual).variance) / float(student_fit(through).variance))
        # Three constants and the peak itself cost thirty nats and more.
        assert 0.0 < gain < 20.0


@pytest.mark.parametrize(
    ("text", "linear"),
    [
        ("c1*x + c2*y + c3", (0, 1, 2)),
        ("c1*exp(c2*x) + c3", (0, 2)),
        ("(c1 + c2*x)*(c3 + y)", (0, 1)),
        ("c1*(x + c2*y + c3)", (1, 2)),
        ("x/(c1 + y)", ()),
        ("(c1*x - c2)/(1 + c3*y)", (0, 1)),
        ("c1*x*c1", ()),
        ("sin(c1*x) + c2", (1,)),
        ("-(c1 - c2*x)/y", (0, 1)),
        ("c1*x + exp(c1*y)", ()),
        ("c1*x + c1*y", (0,)),
    ],
)
def test_linear_parameters(text: str, linear: tuple[int, ...]) -> None:
    assert linear_parameters(skeleton_of(text)) == linear
    # Linear means: second differences along those parameters vanish.
    rng = np.random.default_rng(0)
    inputs = rng.uniform(0.5, 2, (5, 2))
    base = rng.uniform(0.5, 2, 3)
    step = np.zeros(3)
    step[list(linear)] = rng.uniform(0.5, 1, len(linear))
    values = [evaluate(skeleton_of(text), inputs, base + k * step) for k in range(3)]
    np.testing.assert_allclose(values[0] - 2 * values[1] + values[2], 0.0, atol=1e-12)


def test_periodogram_finds_frequencies_on_uneven_rows() -> None:
    rng = np.random.default_rng(0)
    position = np.sort(rng.uniform(0, 4, 150))
    signal = 2 * np.sin(9.3 * position + 0.3) + np.sin(21.0 * position)
    peaks = periodogram_peaks(position, signal + 5.0, np.ones(150), 2)
    np.testing.assert_allclose(sorted(peak.frequency for peak in peaks), [9.3, 21.0], atol=0.1)
    assert peaks[0].power > peaks[1].power


def test_starts_are_finite_and_as_many_as_asked() -> None:
    inputs, target = _table(*LAWS[4])
    skeleton = skeleton_of("c1*sin(c2*x)**2 + x**c3/(c4 + log(c5*y))")
    starts = draw_starts(skeleton, inputs, target, (1, 2, 3, 4), 40, np.random.default_rng(0))
    assert starts.shape == (5, 40)
    assert np.isfinite(starts).all()


def test_constant_expression_is_fitted() -> None:
    inputs, target = _table(*LAWS[0])
    fit = refit(Number(1.0), inputs, target)
    np.testing.assert_allclose(fit.parameters, [target.mean()], rtol=1e-13)
    assert fit.loss == pytest.approx(1.0)


def test_an_exponent_that_cannot_move_does_not_hold_up_the_others() -> None:
    # Below the centre the base is negative: the derivative by the exponent does not exist there.
    inputs, target = _table("c1*exp(-c2*(x - c3)**2)", [1.3, 4.9, 1.42])
    fit = refit(as_fitted("1.2*exp(-5.0*(x - 1.4)**2.0)"), inputs, target)
    assert fit.loss < 1e-24
