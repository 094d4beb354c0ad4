"""What is said of a law that should not be believed as it stands."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from physdiffuser.core.derivation import derivation, readable
from physdiffuser.core.problem import Problem
from physdiffuser.core.solution import ConstantEstimate, Equation
from physdiffuser.data import dataset_from_arrays
from physdiffuser.expressions import Expression, Number, complexity, evaluate, parse, to_text
from physdiffuser.finalize.evidence.diagnostics import diagnostics, shows_pattern
from physdiffuser.finalize.shown_rows import rows_to_show
from physdiffuser.pipeline import solve_dataset
from physdiffuser.search.refinement.rewriting import one_fraction, tame

RNG = np.random.default_rng(0)
INPUTS = RNG.uniform(1.0, 5.0, (200, 2))
NAMES = ("x", "y")


def table(formula: str, noise: float = 0.0, relative: float = 0.0):  # type: ignore[no-untyped-def]
    truth = evaluate(parse(formula, NAMES), INPUTS)
    rng = np.random.default_rng(1)
    target = truth * (1 + relative * rng.normal(size=200)) + noise * rng.normal(size=200)
    return dataset_from_arrays(INPUTS, target, names=NAMES, target_name="z")


def row(formula: str, **changes: object) -> Equation:
    tree = parse(formula, NAMES)
    made = Equation(tree, formula, "", complexity(tree), rmse=0.1, r2=0.9, max_relative_error=0.1)
    return replace(made, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("truth", "law", "pattern"),
    [
        ("x*y", "x*y", False),
        ("x*y + sin(2*x)", "x*y", True),
        ("x**4*y", "x**4*y", False),
        ("x**4*y", "x**3.9*y*1.1", True),
    ],
)
@pytest.mark.parametrize("noise", [{"noise": 0.02}, {"relative": 0.01}], ids=["absolute", "relative"])
def test_a_pattern_is_seen_where_one_is_left(
    truth: str, law: str, pattern: bool, noise: dict[str, float]
) -> None:
    dataset = table(truth, **noise)
    assert shows_pattern(dataset, evaluate(parse(law, NAMES), INPUTS)) is pattern


def test_noise_that_grows_with_the_target_is_no_pattern() -> None:
    truth = evaluate(parse("exp(2*x)*y", NAMES), INPUTS)
    alarms = 0
    for seed in range(60):
        target = truth * (1 + 0.05 * np.random.default_rng(seed).normal(size=200))
        alarms += shows_pattern(dataset_from_arrays(INPUTS, target, names=NAMES, target_name="z"), truth)
    assert alarms <= 1


def test_a_mean_is_no_law_and_is_called_so() -> None:
    dataset = table("0*x + 3", noise=1.0)
    (said,) = diagnostics(row("3"), dataset, exact=False, pattern=False)
    assert said == "no law was found: the columns predict z no better than chance"
    (said,) = diagnostics(row("3"), dataset, exact=False, pattern=True)
    assert "the columns do predict it" in said


def test_each_doubt_is_said_once() -> None:
    loose = ConstantEstimate("c1", 0.1, -0.1, 0.3, "0.1", False)
    said = diagnostics(
        row("x", constants=(loose,), test_rmse=1e3),
        table("x*y"),
        exact=False,
        pattern=True,
        test=np.arange(40),
        rivals=(2, 4),
    )
    assert [part in one for part, one in zip(("pattern", "mean", "y", "c1", "rows 2, 4"), said, strict=True)]
    assert len(set(said)) == 5
    assert diagnostics(row("x*y"), table("x*y"), exact=True, pattern=False, rivals=(1,)) == ()


def test_the_error_on_the_test_set_is_compared_with_the_mean_of_its_own_rows() -> None:
    dataset = table("x*y")
    decades = replace(dataset, weights=np.where(np.arange(dataset.rows) < 40, 1.0, 1e6))
    told = diagnostics(row("x*y", test_rmse=1e-3), decades, exact=False, pattern=False, test=np.arange(40))
    assert told == ()


def test_constants_without_an_interval_are_named() -> None:
    constants = tuple(ConstantEstimate(name, 3.5, None, None, "3.5", False) for name in ("c1", "c2"))
    steep = row("3.5*y + 3.5*x", constants=constants, degrees_of_freedom=198)
    (said,) = diagnostics(steep, table("x*y"), exact=False, pattern=False)
    assert said == "the data do not determine c1, c2: many values fit as well"


def test_rows_that_gain_nothing_are_not_shown() -> None:
    rows = [row("x", rmse=error) for error in (5.0, 6.0, 4.0, 3.999, 4.5, 2.0, 1e-17, 1e-18)]
    assert rows_to_show(rows, 0, rounding=1e-12) == [0, 2, 5, 6]
    # The simpler rows with a smaller error than the chosen one make way for it.
    assert rows_to_show(rows, 4, rounding=1e-12) == [0, 4, 5, 6]
    assert rows_to_show([], 0) == []
    # Both errors are printed as 0.123.
    assert rows_to_show([row("x", rmse=error) for error in (0.1234, 0.12268)], 0) == [0]


def test_pure_noise_gives_the_mean_and_says_that_there_is_no_law() -> None:
    rng = np.random.default_rng(3)
    dataset = dataset_from_arrays(
        rng.normal(size=(80, 2)), rng.normal(size=80) + 10, names=NAMES, target_name="z"
    )
    found = solve_dataset(dataset, time=None, steps=8, plugins=False)
    assert found.status == "approximate"
    assert found.best is not None and found.best.complexity == 1
    assert found.best.r2 > -0.1
    assert sum("no law was found" in warning for warning in found.warnings) == 1


def fitted_form(text: str) -> Expression:
    from physdiffuser.expressions.tree import substitute

    def rewrite(node: Expression) -> Expression | None:
        whole = not isinstance(node, Number) or isinstance(node.value, int)
        return None if whole else Number(float(node.value))  # type: ignore[union-attr]

    return substitute(parse(text, NAMES), rewrite)


PROBLEM = Problem(INPUTS, INPUTS[:, 0], NAMES, target_name="z")


def test_a_derivation_ends_with_the_law() -> None:
    steps = derivation(
        ("took the logarithm",),
        fitted_form("2.0003*x"),
        ("2.0003 agrees with 2", "1 agrees with 1", "0.1 is compatible with 0: its term is dropped"),
        parse("2*x", NAMES),
        PROBLEM,
    )
    assert steps == (
        "took the logarithm",
        "constants fitted to 200 rows: z = 2.0003*x",
        "2.0003 agrees with 2",
        "0.1 is compatible with 0: its term is dropped",
        "the law: z = 2*x",
    )
    # Nothing is said twice.
    assert derivation(("found: z = x",), parse("x", NAMES), (), parse("x", NAMES), PROBLEM) == (
        "found: z = x",
    )


@pytest.mark.parametrize(
    ("formula", "wanted"),
    [
        ("x + (-y)", "x - y"),
        ("x + (-2.5*y)", "x - 2.5*y"),
        ("x + (-2.5/y)", "x - 2.5/y"),
        ("sin(x + (-3.5))", "sin(x - 3.5)"),
        ("x + y", "x + y"),
        ("(-x) + y", "-x + y"),
    ],
)
def test_sums_are_read_with_their_signs(formula: str, wanted: str) -> None:
    assert to_text(readable(fitted_form(formula)), NAMES) == wanted


@pytest.mark.parametrize("formula", ["x + y/x", "x/y - 2", "x/y + y/x", "sin(1 + 1/x)", "x*y", "2 + x"])
def test_one_fraction_keeps_the_value(formula: str) -> None:
    tree = parse(formula, NAMES)
    np.testing.assert_allclose(evaluate(one_fraction(tree), INPUTS), evaluate(tree, INPUTS), rtol=1e-12)


def test_rewriting_does_not_make_constants_of_absurd_size() -> None:
    old = fitted_form("exp(-180.5*(x - 1.5))")
    assert not tame(fitted_form("3.7e117*exp(-180.5*x)"), old)
    assert tame(fitted_form("exp(270.75 - 180.5*x)"), old)
    assert tame(fitted_form("1.4e-34*x"), fitted_form("6.6e-34*x/5"))
