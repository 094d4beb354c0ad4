"""The largest relative error, and which errors are rounding."""

from __future__ import annotations

import numpy as np
import pytest

from physdiffuser.expressions import evaluate, parse
from physdiffuser.fitting.accuracy import agrees, max_relative_error, rounding_error, term_size

RNG = np.random.default_rng(0)


def test_the_largest_relative_error_is_a_share_of_the_value_however_small_that_is() -> None:
    target = np.array([1e-6, 1.0, 1e6])
    assert max_relative_error(target, target * (1 + np.array([0.796, 0.0, 1e-9]))) == pytest.approx(0.796)


def test_rows_whose_target_is_zero_have_no_relative_error() -> None:
    assert max_relative_error(np.array([0.0, 2.0]), np.array([0.1, 2.002])) == pytest.approx(1e-3)
    assert max_relative_error(np.array([0.0, 2.0]), np.array([np.nan, 2.0])) == np.inf
    assert max_relative_error(np.array([1e300, -1e-300]), np.array([1e300, -1.5e-300])) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("law", "low", "high"),
    [
        ("sin(x)", -1e4, 1e4),
        ("x - y", 1.0, 1.0001),
        ("1 - cos(x)", -3.0, 3.0),
        ("(x - y)**2", 1.0, 1.5),
        ("log(x)*y", 0.5, 2.0),
        ("tan(x)", 0.0, 3.0),
    ],
)
def test_a_law_computed_with_rounded_inputs_is_met_where_its_terms_cancel(
    law: str, low: float, high: float
) -> None:
    tree = parse(law, ("x", "y"))
    inputs = RNG.uniform(low, high, (3_000, 2))
    # Each input is off by up to one unit in the last place, as another order of evaluation makes it.
    target = evaluate(tree, inputs * (1 + RNG.integers(-1, 2, inputs.shape) * 2.0**-53))
    assert agrees(tree, inputs, target, evaluate(tree, inputs)).all()


@pytest.mark.parametrize("places", [10, 12])
def test_the_last_digits_that_were_written_are_rounding(places: int) -> None:
    x = RNG.uniform(0.5, 6.0, 20_000)
    target = np.array([float(f"{value:.{places}f}") for value in np.sin(x)])
    tree = parse("sin(x)", ("x",))
    assert max_relative_error(target, np.sin(x)) > 1e-9
    assert agrees(tree, x[:, None], target, np.sin(x)).all()
    written = np.array([float(f"{value:.{places}g}") for value in x])
    target = np.sin(x)
    assert agrees(tree, written[:, None], target, np.sin(written)).all()


def test_an_error_beyond_rounding_is_not_met() -> None:
    x = np.linspace(0.0, 60.0, 500)
    tree = parse("sin(x)", ("x",))
    target = np.sin(x)
    near_zero = int(np.argmin(np.where(target == 0, np.inf, np.abs(target))))
    for row in (0, near_zero):  # sin(0) is 0, where an error has no relative size
        moved = target.copy()
        moved[row] += 1e-11
        met = agrees(tree, x[:, None], moved, target)
        assert not met[row] and met.sum() == 499
    spread = 10.0 ** np.linspace(-12, 3, 400)
    line = parse("x", ("x",))
    assert not agrees(line, spread[:, None], spread + 1e-13, spread).all()


def test_terms_are_as_large_as_what_cancels() -> None:
    inputs = np.array([[3.0, 2.0], [1.0, 1.0]])
    np.testing.assert_allclose(term_size(parse("x**2 - 2*x*y + y**2", ("x", "y")), inputs), [25.0, 4.0])
    np.testing.assert_allclose(term_size(parse("(x - y)**2", ("x", "y")), inputs), [25.0, 4.0])
    assert np.isfinite(term_size(parse("x**2.5", ("x", "y")), np.zeros((1, 2)))).all()


def test_short_numbers_are_exact_inputs() -> None:
    x = np.arange(1, 200) / 10
    allowed = rounding_error(parse("x", ("x",)), x[:, None], x)
    assert (allowed < 1e-12).all()
