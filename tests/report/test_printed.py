"""With how many digits a formula is printed."""

from __future__ import annotations

import numpy as np
import pytest
from solutions import equation

from physdiffuser.core.solution import ConstantEstimate, Equation
from physdiffuser.expressions import Expression, Number, evaluate, parse, to_text
from physdiffuser.expressions.tree import Variable, add, call, mul, sub
from physdiffuser.report.text.digits import ALL_DIGITS, TABLE_DIGITS, shown_digits, table_digits
from physdiffuser.report.text.printed import _margin, read_back, same_error, with_printed_digits

NAMES = ("p", "q")


def cancelling() -> Expression:
    """`1.88e6*log(p + 35.46) - 1.88e6*log(p + 35.47)`."""
    terms = [
        mul(Number(1.88e6), call("log", add(Variable(0), Number(place)))) for place in (35.46, 35.471234)
    ]
    return sub(terms[0], terms[1])


def scored(tree: Expression, rows: int) -> tuple[Equation, np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    inputs = random.uniform(1.0, 100.0, (rows, 2))
    target = evaluate(tree, inputs) * (1 + 0.01 * random.normal(size=rows))
    error = float(np.sqrt(np.mean(np.square(evaluate(tree, inputs) - target))))
    constants = tuple(
        ConstantEstimate(f"c{place}", value, 0.5 * value, 1.5 * value, repr(value), False)
        for place, value in enumerate((1.88e6, 35.46, 35.471234), start=1)
    )
    return equation(tree, rmse=error, constants=constants), inputs, target


@pytest.mark.parametrize("rows", [200, 300_000])
def test_digits_are_raised_until_the_text_has_the_error(rows: int) -> None:
    made, inputs, target = scored(cancelling(), rows)

    def error_of(formula: Expression, step: int) -> float:
        some = evaluate(formula, inputs[::step]) - target[::step]
        return float(np.sqrt(np.mean(np.square(some))))

    printed = with_printed_digits(made, NAMES, error_of, rows)
    assert TABLE_DIGITS < printed.table_digits < ALL_DIGITS
    for digits in (table_digits(printed), shown_digits(printed)):
        text = to_text(printed.expression, NAMES, digits)
        assert same_error(error_of(parse(text, NAMES), 1), printed.rmse)
    assert not same_error(error_of(parse(to_text(made.expression, NAMES, 4), NAMES), 1), made.rmse)


def test_a_formula_without_fitted_constants_needs_no_digits() -> None:
    made = equation("2*a")
    assert with_printed_digits(made, ("a", "v_m_s"), lambda formula, step: 1 / 0, 10) is made


def test_a_text_that_cannot_be_read_holds_for_nothing() -> None:
    assert read_back(Variable(0), ("not a name",), None) is None


def test_damaged_digits_of_a_stored_run_print_all_the_same() -> None:
    for digits in (-5, 0, 10**9):
        made = equation(mul(Number(0.731041), Variable(0)), table_digits=digits, extra_digits=digits)
        assert 1 <= table_digits(made) <= ALL_DIGITS and 1 <= shown_digits(made)(0.731041) <= ALL_DIGITS


@pytest.mark.parametrize("error", [0.0, 5e-324, 1e-320, 3e-310, 2e-305])
def test_errors_near_the_smallest_double_have_no_margin(error: float) -> None:
    assert _margin(error) == 0.0
