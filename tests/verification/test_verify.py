"""What is said of a formula after a fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from physdiffuser.expressions import OPERATORS, Expression, Number, Variable, evaluate, parse
from physdiffuser.expressions.operators import OperatorSpec
from physdiffuser.expressions.tree import add, call, div, mul, substitute
from physdiffuser.verification import Verification, verify
from physdiffuser.verification.checks import comparison_check, pole_check, residual_check

NAMES = ["x", "y"]
ROWS = 1000
TRAIN = np.arange(750)
TEST = np.arange(750, ROWS)
INPUTS = np.random.default_rng(0).uniform(1.0, 5.0, (ROWS, 2))


def fitted_form(text: str) -> Expression:
    def replace(node: Expression) -> Expression | None:
        if isinstance(node, Number) and not isinstance(node.value, int):
            return Number(float(node.value))
        return None

    return substitute(parse(text, NAMES), replace)


def check(fitted: str, final: str, truth: str, noise: float = 0.0, **options: object) -> Verification:
    target = evaluate(parse(truth, NAMES), INPUTS)
    target = target + noise * target.std() * np.random.default_rng(1).normal(size=ROWS)
    return verify(
        fitted_form(fitted),
        fitted_form(final),
        INPUTS,
        target,
        TRAIN,
        TEST,
        names=NAMES,
        **options,  # type: ignore[arg-type]
    )


def test_an_exact_law_is_verified_with_its_three_checks() -> None:
    found = check("0.15915494309189535*x*y**2", "x*y**2/(2*pi)", "x*y**2/(2*pi)")
    assert found.verdict == "verified"
    symbolic, numeric, boundary = found.sentences
    assert symbolic.startswith(
        "algebra: the law equals the fitted formula with its constant set to what is shown, none moved by"
    )
    assert numeric.startswith("test set: largest relative error")
    assert numeric.endswith("on 250 test rows")
    assert boundary.startswith("boundary check: largest relative error")


def test_a_noisy_law_is_verified_when_the_snapped_form_is_the_fitted_one() -> None:
    found = check("0.15925*x*y**2.0003", "x*y**2/(2*pi)", "x*y**2/(2*pi)", noise=0.01)
    assert found.verdict == "verified"
    assert "its 2 constants set to what is shown, none moved by more than 0.06 %" in found.sentences[0]
    assert "test/training ratio" in found.sentences[1]


def test_a_rearranged_formula_is_the_same_one() -> None:
    found = check("2.0*x*sin(y)*cos(y)", "x*sin(2*y)", "x*sin(2*y)")
    assert found.verdict == "verified"
    found = check("x*y + x*x", "x*(x + y)", "x*(x + y)")
    assert found.verdict == "verified"


def test_another_formula_is_different_however_well_it_fits() -> None:
    found = check("1.00012*x*y", "x*y + 0.00001*y**3", "x*y", noise=0.05)
    assert found.verdict == "different"
    assert "differs" in found.sentences[0]


def test_a_formula_that_fails_on_unseen_rows_is_not_verified() -> None:
    # The law changes where the test rows are.
    target = evaluate(parse("x*y", NAMES), INPUTS)
    target[TEST] *= 1.3
    found = verify(parse("x*y", NAMES), parse("x*y", NAMES), INPUTS, target, TRAIN, TEST)
    assert found.verdict == "unknown"


def test_a_formula_that_fails_at_the_boundary_is_not_verified() -> None:
    # A parabola through a cosine: good in the middle, off at both ends.
    inputs = np.linspace(-1.0, 1.0, 400)[:, None]
    target = np.cos(1.5 * inputs[:, 0])
    rows = np.random.default_rng(0).permutation(400)
    formula = parse("1 - 1.0*x**2", ["x"])
    found = verify(formula, formula, inputs, target, rows[:300], rows[300:], names=["x"])
    assert found.verdict == "unknown"
    assert found.sentences[2].startswith("boundary check: the error in the outermost tenth of x is")
    assert found.sentences[2].endswith("more than chance explains")


def test_a_logarithm_of_pi_is_recognised() -> None:
    x = np.linspace(-3, 3, 100)
    fitted = parse("exp(-0.91893853320467274 - 0.5*x**2)", ["x"])
    final = parse("exp(-x**2/2)/sqrt(2*pi)", ["x"])
    rows = np.arange(100)
    target = np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
    found = verify(fitted, final, x[:, None], target, rows[:80], rows[80:])
    assert found.verdict == "verified"


def test_a_formula_without_columns_has_no_boundary() -> None:
    inputs = np.linspace(1, 2, 40)[:, None]
    rows = np.arange(40)
    found = verify(Number(3), Number(3), inputs, np.full(40, 3.0), rows[:30], rows[30:])
    assert found.sentences[2] == "boundary check: not checked, no column occurs in the formula"


def test_errors_that_grow_with_the_target_are_no_failure_at_the_boundary() -> None:
    target = evaluate(parse("exp(x)*y", NAMES), INPUTS)
    target = target * (1.0 + 0.02 * np.random.default_rng(2).normal(size=ROWS))
    tree = parse("exp(x)*y", NAMES)
    assert verify(tree, tree, INPUTS, target, TRAIN, TEST, names=NAMES).verdict == "verified"


def test_no_value_on_a_row_is_said() -> None:
    inputs = INPUTS.copy()
    inputs[800, 0] = -1.0
    target = np.abs(evaluate(parse("sqrt(abs(x))*y", NAMES), inputs))
    found = verify(parse("sqrt(x)*y", NAMES), parse("sqrt(x)*y", NAMES), inputs, target, TRAIN, TEST)
    assert found.verdict == "unknown"
    assert "no value on 1 of 250" in found.sentences[1]


def test_small_tables_are_not_verified_but_say_why() -> None:
    inputs = np.array([[1.0], [2.0], [3.0]])
    tree = parse("x", ["x"])
    found = verify(tree, tree, inputs, inputs[:, 0], np.arange(3), np.arange(0))
    assert found.verdict == "unknown"
    assert "too few rows" in found.sentences[1]
    assert "too few rows" in found.sentences[2]


def test_constants_that_stay_fitted_are_verified_as_such() -> None:
    found = check("0.731123456*x*y", "0.731123456*x*y", "0.731123456*x*y", noise=0.01)
    assert found.verdict == "verified"
    found = check("0.731123456*x*y + 0.0", "0.7311*x*y", "0.731123456*x*y", noise=0.01)
    assert found.verdict == "verified"


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_targets_of_any_size(scale: float) -> None:
    target = scale * evaluate(parse("x*y", NAMES), INPUTS)
    tree = Number(scale)
    from physdiffuser.expressions import Apply

    law = Apply("mul", (tree, parse("x*y", NAMES)))
    assert verify(law, law, INPUTS, target, TRAIN, TEST).verdict == "verified"


def test_the_symbolic_part_keeps_its_limit() -> None:
    import time

    tower = "x*y + 9**9**9**9 - 9**9**9**9"
    started = time.monotonic()
    found = check(tower, "x*y", "x*y", seconds=1.0)
    assert time.monotonic() - started < 3.0
    assert found.verdict == "unknown"


def test_a_pattern_in_the_residuals_forbids_verified() -> None:
    good = check("2.5*x", "2.5*x", "2.5*x", noise=0.01, further=[residual_check(False)])
    assert good.verdict == "verified" and good.reason == ""
    assert good.sentences[-1].startswith("residuals: no")
    found = check("2.5*x", "2.5*x", "2.5*x", noise=0.01, further=[residual_check(True)])
    assert found.verdict == "unknown"
    assert "the law is not complete" in found.sentences[-1]
    assert found.reason == "the residuals still depend on the inputs"


def test_what_speaks_against_a_law_is_the_reason_before_what_could_not_be_checked() -> None:
    law = parse("x*y", NAMES)
    few, none = np.arange(20), np.array([], dtype=np.intp)
    target = evaluate(law, INPUTS[:20])
    found = verify(law, law, INPUTS[:20], target, few, none, further=[pole_check(True)])
    assert found.verdict == "unknown"
    assert found.reason == "the formula has a pole inside the ranges of the inputs"
    assert "test set" in verify(law, law, INPUTS[:20], target, few, none, further=[pole_check(False)]).reason


def test_a_simpler_formula_that_predicts_the_test_rows_better_forbids_verified() -> None:
    rng = np.random.default_rng(4)
    noise = rng.standard_normal(60)
    worse = noise + 0.8 * rng.standard_normal(60)
    failed = comparison_check(worse, [noise + 5.0, noise])
    assert failed is not None and failed.state == "failed"
    for simpler in (worse, noise + 1e-3 * rng.standard_normal(60)):
        passed = comparison_check(noise, [simpler])
        assert passed is not None and passed.state == "passed"
    assert comparison_check(noise, []) is None
    assert comparison_check(worse[:5], [noise[:5]]) is None
    # Squares of errors near the limits of doubles are compared as well.
    huge = comparison_check(1e200 * worse, [1e200 * noise])
    assert huge is not None and huge.state == "failed"


def test_weights_count_as_they_did_in_the_fit() -> None:
    sigma = np.where(np.arange(ROWS) % 2, 0.01, 10.0)
    target = evaluate(parse("x*y", NAMES), INPUTS) + sigma * np.random.default_rng(3).normal(size=ROWS)
    tree = parse("x*y", NAMES)
    found = verify(tree, tree, INPUTS, target, TRAIN, TEST, names=NAMES, weights=sigma**-2)
    assert found.verdict == "verified"
    assert "rms error 0.01" in found.sentences[1]


def test_a_constant_that_ended_far_from_zero_is_found_again() -> None:
    # Where the data hardly tell x**4 from (x + a)**b the fit ends anywhere along that valley.
    found = check("1.571e-08*(y*(x + 138.5)**4.137)", "5.6745e-08*x**4*y", "5.6745e-08*x**4*y", noise=0.01)
    assert found.verdict == "verified"


def test_a_constant_of_1e_67_is_not_taken_for_zero() -> None:
    # A term that the rows cannot tell from 0 was dropped; the number that is left is tiny.
    found = check(
        "(1.986388e-72*y + 3.535319e-67)/(x*y)**(3/2)", "3.576159e-67/(x*y)**(3/2)", "3.576e-67/(x*y)**(3/2)"
    )
    assert "equals the fitted formula" in found.sentences[0]


def test_products_of_fitted_constants_are_multiplied_out() -> None:
    found = check(
        "-0.0086169*(-127.66 + x*y)", "1.1 - 0.0086170123456789*x*y", "1.1 - 0.008617*x*y", noise=0.01
    )
    assert found.verdict == "verified"


def _langevin(form: str) -> OperatorSpec:
    def to_sympy(argument: Any) -> Any:
        import sympy

        return (
            sympy.coth(argument) - 1 / argument if form == "right" else sympy.Function("langevin")(argument)
        )

    return OperatorSpec(
        "langevin",
        1,
        2,
        lambda x: 1.0 / np.tanh(x) - 1.0 / x,
        (lambda x, value: 1.0 / x**2 - 1.0 / np.sinh(x) ** 2,),
        to_sympy,
        domain="not 0",
    )


@pytest.mark.parametrize(("form", "verdict"), [("right", "verified"), ("none", "unknown")])
def test_a_law_with_an_operator_of_a_plugin(monkeypatch: pytest.MonkeyPatch, form: str, verdict: str) -> None:
    monkeypatch.setitem(OPERATORS, "langevin", _langevin(form))
    rng = np.random.default_rng(0)
    inputs = rng.uniform(0.5, 4.0, (100, 2))
    x, y = Variable(0), Variable(1)
    fitted = mul(Number(2.0000001), call("langevin", mul(Number(1.4999999), div(x, y))))
    final = mul(Number(2), call("langevin", div(mul(Number(3), x), mul(Number(2), y))))
    target = evaluate(final, inputs)
    found = verify(fitted, final, inputs, target, np.arange(80), np.arange(80, 100))
    assert found.verdict == verdict


def test_a_small_table_says_how_well_each_row_is_predicted_by_the_others() -> None:
    rng = np.random.default_rng(0)
    x = np.linspace(1.0, 3.0, 9)[:, None]
    target = 1.7 * x[:, 0] + 0.4 + 0.01 * rng.normal(size=9)
    design = np.column_stack([x[:, 0], np.ones(9)])
    (slope, offset), *_ = np.linalg.lstsq(design, target, rcond=None)
    final = add(mul(Number(float(slope)), Variable(0)), Number(float(offset)))
    rows = np.arange(9)
    left_out = []
    for row in rows:
        others = rows != row
        fit = np.linalg.lstsq(design[others], target[others], rcond=None)[0]
        left_out.append(target[row] - design[row] @ fit)
    residual = target - design @ [slope, offset]
    ratio = np.sqrt(np.mean(np.square(left_out)) / np.mean(np.square(residual)))
    found = verify(final, final, x, target, rows, np.array([], dtype=np.intp))
    assert found.verdict == "unknown"
    assert f"the others predict it with {ratio:.2g} times the rms error of the fit" in found.sentences[1]


def test_numbers_decide_where_there_is_no_time_for_algebra() -> None:
    found = check("2.0003*sin(x)*cos(x)*y", "y*sin(2*x)", "y*sin(2*x)", seconds=0.0)
    assert found.verdict == "verified"
    said = "algebra: with its constant set, law and fitted formula agree to 40 digits at random points"
    assert found.sentences[0] == said
    other = check("2.0003*sin(x)*cos(x)*y", "y*sin(2*x)**2", "y*sin(2*x)", seconds=0.0)
    assert other.verdict != "verified" and other.states[0] != "passed"
