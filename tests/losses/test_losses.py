"""Losses: their values and minima, laws chosen by them, errors of constants, and what is not printed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from physdiffuser import PhysDiffuserRegressor, solve
from physdiffuser.cli import main
from physdiffuser.errors import UsageError
from physdiffuser.expressions import evaluate, parse
from physdiffuser.expressions.tree import distinct_constants
from physdiffuser.losses import fits
from physdiffuser.losses.fits import bootstrap_errors, fit_loss
from physdiffuser.losses.likelihoods import Loss, loss_of

RNG = np.random.default_rng(3)
X = RNG.uniform(0.2, 4, 150)
NOISE = RNG.laplace(size=150)
DECAY = 2.5 * np.exp(-0.8 * X) + 0.05 * NOISE


class Laplace:
    """Laplace errors of unknown size, as a user would write them."""

    parameters: Mapping[str, float] = {"scale": 0.3}

    def nats(self, target: Any, prediction: Any, *, scale: float) -> Any:
        if scale <= 0:
            return np.full(target.shape, np.inf)
        return np.abs(target - prediction) / scale + np.log(2 * scale)


def absolute_power(target: Any, prediction: Any) -> Any:
    return np.abs(target - prediction) ** 1.5


def _loss(asked: Any) -> Loss:
    found = loss_of(asked)
    assert found is not None
    return found


@pytest.mark.parametrize("asked", ["absolute", "quantile=0.8", "huber", absolute_power, Laplace()])
def test_the_fit_is_a_minimum_of_the_loss(asked: Any) -> None:
    loss = _loss(asked)
    fit = fit_loss(parse("2.00001*exp(-1.00001*x)", ["x"]), X[:, None], DECAY, loss)
    skeleton, values = distinct_constants(fit.expression)
    for place in range(2):
        for step in (-0.02, 0.02):
            moved = np.array(values)
            moved[place] *= 1 + step
            assert loss.nats(DECAY, evaluate(skeleton, X[:, None], moved)) > fit.nats


@pytest.mark.parametrize("asked", ["absolute", "quantile=0.8", "huber", absolute_power, Laplace()])
def test_a_weight_counts_as_a_number_of_rows(asked: Any) -> None:
    loss, law = _loss(asked), parse("2.00001*exp(-1.00001*x)", ["x"])
    times = np.where(X > 1.5, 3, 1)
    weights = times / times.mean()
    fit = fit_loss(law, X[:, None], DECAY, loss, weights)
    same = fit_loss(law, np.repeat(X, times)[:, None], np.repeat(DECAY, times), loss)
    here, there = (evaluate(one.expression, X[:, None]) for one in (fit, same))
    assert here == pytest.approx(there, abs=2e-3)
    # The scale of Huber's loss is one of a grid around the median residual, which counts no weights.
    assert loss.mean(DECAY, here, weights) == pytest.approx(
        loss.mean(np.repeat(DECAY, times), np.repeat(here, times)), rel=0.01
    )


def test_rows_of_little_weight_do_not_move_a_probability() -> None:
    spoiled = X > 3
    y = np.where(spoiled, 0.0, (X + 0.3 * NOISE > 1.5).astype(float))
    solution = solve(
        {"x": X, "y": y, "w": np.where(spoiled, 1e-6, 1.0)}, weights="w", loss="logistic", steps=4
    )
    assert solution.best is not None and solution.names == ("x",)
    high = evaluate(solution.best.expression, np.array([[2.9]]))
    assert high[0] > 0.8


def test_a_constant_under_a_quantile_loss_is_the_quantile() -> None:
    fit = fit_loss(parse("1.00001", []), X[:, None], DECAY, _loss("quantile=0.9"))
    assert evaluate(fit.expression, X[:1, None])[0] == pytest.approx(np.quantile(DECAY, 0.9), abs=0.02)


def test_a_likelihood_with_a_parameter_agrees_with_the_loss_it_stands_for() -> None:
    prediction = 2.5 * np.exp(-0.8 * X)
    own, absolute = _loss(Laplace()), _loss("absolute")
    # The scale that fits best is the mean absolute error, so the nats differ by rows*(1 + log(2)).
    apart = own.nats(DECAY, prediction) - absolute.nats(DECAY, prediction)
    assert apart == pytest.approx(150 * (1 + np.log(2)), rel=1e-6)


def test_bootstrap_errors_are_those_of_many_tables() -> None:
    law, loss = parse("2.00001*x", ["x"]), _loss("absolute")
    rng = np.random.default_rng(0)
    slopes, sigmas = [], []
    for number in range(40):
        y = 2 * X + rng.laplace(size=X.size)
        fit = fit_loss(law, X[:, None], y, loss)
        slopes.append(distinct_constants(fit.expression)[1][0])
        if number < 3:
            errors = bootstrap_errors(fit.expression, X[:, None], y, loss, number, lambda: False)
            assert errors is not None
            sigmas.append(errors.sigma[0])
    assert np.mean(sigmas) == pytest.approx(np.std(slopes), rel=0.35)


@pytest.mark.parametrize("asked", ["absolute", "huber", absolute_power])
def test_the_law_is_found_and_claims_of_least_squares_are_not_made(asked: Any) -> None:
    solution = solve({"x": X, "y": DECAY}, loss=asked, steps=6, operators=["add", "mul", "exp"])
    best = solution.best
    assert best is not None and "*exp(-0." in best.text
    assert best.verdict == "unknown" and "for least squares" in best.verdict_reason
    assert best.probability is None and solution.none_of_these is None
    amplitude, rate = best.constants
    assert amplitude.sigma is not None and abs(amplitude.value - 2.5) < 3 * amplitude.sigma
    assert abs(rate.value) == pytest.approx(0.8, rel=0.05)
    assert best.mean_loss == pytest.approx(
        _loss(asked).mean(DECAY, evaluate(best.expression, X[:, None])), rel=1e-9
    )


def test_outliers_do_not_move_a_median_and_a_quantile_lies_above() -> None:
    wide = 3.0 + 2.0 * X + X * np.random.default_rng(1).exponential(size=150)
    few = {"steps": 2, "operators": ["add", "mul"]}
    laws = {level: solve({"x": X, "y": wide}, loss=f"quantile={level}", **few) for level in (0.5, 0.9)}
    for level, solution in laws.items():
        assert solution.best is not None
        below = np.mean(wide <= evaluate(solution.best.expression, X[:, None]))
        assert below == pytest.approx(level, abs=0.06)


def test_a_logistic_law_is_a_probability(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(4)
    chance = 1 / (1 + np.exp(5 - 3 * X))
    y = (rng.uniform(size=150) < chance).astype(float)
    np.savetxt(tmp_path / "t.csv", np.column_stack([X, y]), delimiter=",", header="x,y", comments="")
    table, out = str(tmp_path / "t.csv"), str(tmp_path / "run")
    assert main(["solve", table, "--loss", "logistic", "--steps", "4", "--out", out, "--json"]) == 0
    content = json.loads(capfd.readouterr().out)
    assert content["loss"] == "logistic"
    assert content["best"]["expression"].startswith("1/(1 + exp(")
    assert content["best"]["mean_loss"] < 0.5
    assert content["best"]["covariance"] is None
    assert main(["predict", out, table]) == 0
    values = np.array(capfd.readouterr().out.splitlines()[1:], float)
    assert ((values > 0) & (values < 1)).all()
    assert np.abs(values - chance).mean() < 0.1
    assert main(["predict", out, table, "--intervals"]) == 2
    assert main(["export", out]) == 0


FEW: dict[str, Any] = {"steps": 1, "operators": ["add", "mul", "exp"], "generators": ["enumeration"]}
SORTED = np.sort(X)[::3]


@pytest.fixture
def few_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fits, "SAMPLES", 5)


@pytest.mark.usefixtures("few_samples")
def test_a_template_is_solved_under_a_loss() -> None:
    y = 2.5 * np.exp(-0.8 * SORTED) + 0.3 * SORTED + 0.02 * NOISE[:50]
    y[10:40:6] += 8.0
    guesses = ["f = A*exp(-b*x)", "f = A*x**2"]
    solution = solve({"x": SORTED, "y": y}, loss="absolute", template="k*x + f(x)", initial=guesses, **FEW)
    assert solution.best is not None and solution.template is not None
    assert solution.template.constants["k"] == pytest.approx(0.3, abs=0.05)
    assert "*exp(-0." in solution.template.functions["f"]
    assert solution.best.mean_loss is not None and solution.loss == "absolute"
    assert [guess.state for guess in solution.guesses] == ["kept", "beaten"]


@pytest.mark.usefixtures("few_samples")
def test_a_law_of_least_loss_satisfies_constraints() -> None:
    rules = [{"limit": {"as": {"x": "inf"}, "is": 0}}, {"decreasing": "x", "region": {"x": [0, 20]}}]
    table = {"x": SORTED, "y": 2.5 * np.exp(-0.8 * SORTED) + 0.05 * NOISE[:50]}
    solution = solve(table, loss="huber", constraints=rules, initial=["a*x + b"], **FEW)
    assert [status.state for status in solution.constraints] == ["proved", "proved"]
    assert solution.guesses[0].state == "beaten"
    wrong = solve(table, loss="huber", constraints=[{"increasing": "x"}], **FEW)
    assert any("the table contradicts the constraints" in text for text in wrong.warnings)


def test_the_estimator_takes_a_function() -> None:
    law = PhysDiffuserRegressor(loss=absolute_power, steps=4).fit(X[:, None], DECAY)
    assert "exp" in law.best_.text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "cubic"}, "must be auto, squared, robust, huber"),
        ({"loss": "quantile=2"}, "a number between 0 and 1"),
        ({"loss": "quantile"}, "a number between 0 and 1"),
        ({"loss": 3}, "must be a name, a function"),
        ({"loss": "logistic"}, "the target must be 0 or 1"),
        ({"loss": lambda target, prediction: 1.0}, "the loss has shape ()"),
        ({"loss": lambda target, prediction: -np.ones(target.size)}, "must not be negative"),
        ({"loss": "huber", "suggest_next": 2}, "--suggest-next works with least squares only"),
        ({"loss": "huber", "errors": "x"}, "stated errors are for least squares"),
    ],
)
def test_what_cannot_be_used_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as error:
        solve({"x": X, "z": X**2, "y": DECAY}, steps=1, **options)
    assert message in str(error.value)
