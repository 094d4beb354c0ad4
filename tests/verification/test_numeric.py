"""Values to many digits, and exact forms of constants."""

from __future__ import annotations

import random
import time
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from physdiffuser.expressions import OPERATORS, Apply, Expression, Number, Variable, evaluate, parse, to_text
from physdiffuser.expressions.operators import BUILT_IN_NAMES
from physdiffuser.expressions.tree import free_constants
from physdiffuser.verification.constants import polish, recognise
from physdiffuser.verification.numeric import (
    TooLarge,
    Undefined,
    agree,
    random_point,
    sample_outcomes,
    value_at,
)

PLACES = {"asin": (-0.9, 0.9), "acos": (-0.9, 0.9)}


@pytest.mark.parametrize("name", sorted(BUILT_IN_NAMES))
def test_values_agree_with_doubles(name: str) -> None:
    arity = OPERATORS[name].arity
    low, high = PLACES.get(name, (0.2, 2.0))
    tree = Apply(name, tuple(Variable(index) for index in range(arity)))
    for row in np.random.default_rng(0).uniform(low, high, (10, arity)):
        exact, largest = value_at(tree, [mpmath.mpf(value) for value in row])
        assert float(exact) == pytest.approx(evaluate(tree, row[None])[0], rel=1e-14)
        assert largest >= abs(exact)


@pytest.mark.parametrize(
    "text",
    [
        "1/(a-a)",
        "log(-a)",
        "log(a-a)",
        "sqrt(-a)",
        "asin(a+1)",
        "acos(-a-1)",
        "(-a)**0.5",
        "(-a)**a",
        "(a-a)**-1",
    ],
)
def test_what_is_undefined_says_so(text: str) -> None:
    with pytest.raises(Undefined):
        value_at(parse(text, ["a"]), [mpmath.mpf("1.25")])


@pytest.mark.parametrize(
    "text",
    [
        "9**9**9**9",
        "exp(exp(exp(a*9)))",
        "sin(10**30*a)",
        "cosh(10**12*a)",
        "a**(10**29)",
        "(10**29)**(10**29)",
    ],
)
def test_what_would_take_forever_says_so_at_once(text: str) -> None:
    started = time.perf_counter()
    with pytest.raises(TooLarge), mpmath.workdps(60):
        value_at(parse(text, ["a"]), [mpmath.mpf("1.25")])
    assert time.perf_counter() - started < 0.5


def test_cancellation_is_seen_through() -> None:
    names = ["a"]
    with mpmath.workdps(60):
        point = [mpmath.mpf("1.25")]
        assert agree(parse("(a + 1e15) - 1e15", names), parse("a", names), point) is True
        assert agree(parse("sin(a)**2 + cos(a)**2 - 1", names), parse("a - a", names), point) is True
        assert (
            agree(parse("sin(a)**2 + cos(a)**2 - 1", names), parse("(a - a) + 10**-20", names), point)
            is False
        )


def test_points_lie_in_the_ranges() -> None:
    rng = random.Random(0)
    ranges = [(1.0, 2.0), (-3.0, -1.0), (0.0, 0.0), (-1.0, 1.0)]
    for _ in range(100):
        inside = random_point(ranges, rng)
        assert all(low <= value <= high for value, (low, high) in zip(inside, ranges, strict=True))


def test_sampling_stops_at_the_first_difference() -> None:
    names = ["a"]
    assert sample_outcomes(parse("a", names), parse("a", names), [(1.0, 2.0)], wanted=5) == (5, 0)
    assert sample_outcomes(parse("a", names), parse("2*a", names), [(1.0, 2.0)], wanted=5) == (0, 1)
    assert sample_outcomes(parse("a", names), parse("log(-a)", names), [(1.0, 2.0)], wanted=5) == (0, 0)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("2", "2"),
        ("-3/7", "-3/7"),
        ("1/(4*pi)", "0.25*pi**-1"),
        ("2*pi", "2*pi**1"),
        ("sqrt(2)", "2**0.5"),
        ("1/sqrt(2*pi)", "(0.5*pi**-1)**0.5"),
        ("pi**2/6", "1/6*pi**2"),
        ("2**(1/3)", "2**(1/3)"),
        ("exp(1)", "exp(1)"),
        ("-exp(2/3)", "-exp(2/3)"),
        ("log(10)", "log(10)"),
        ("8*pi/3", "8/3*pi**1"),
        ("-32/5", "-6.4"),
    ],
)
def test_exact_forms_are_recognised(value: str, text: str) -> None:
    with mpmath.workdps(60):
        number = value_at(parse(value, []), [])[0]
        found = recognise(number)
        assert found is not None
        assert to_text(found) == text
        assert abs(value_at(found, [])[0] - number) < mpmath.mpf(10) ** -50


def test_doubles_are_recognised_as_themselves_and_other_numbers_not_at_all() -> None:
    with mpmath.workdps(60):
        found = recognise(mpmath.mpf(0.7311234567))
        assert found == Number(Fraction(0.7311234567))
        assert recognise(mpmath.zeta(3)) is None
        assert recognise(mpmath.mpf("0.159154943091895")) != recognise(1 / (2 * mpmath.pi))


@pytest.mark.parametrize(
    ("fitted", "truth"),
    [
        ("0.159*x*y**2.003", "x*y**2/(2*pi)"),
        ("1.02345*exp(-0.48765*x)", "exp(-x/2)"),
        ("0.98765*sin(3.14321*x + 0.00123)", "sin(pi*x)"),
        ("1.40012*x + 0.99123*y + 0.00123", "sqrt(2)*x + y"),
    ],
)
def test_constants_are_moved_to_where_the_formulas_meet(fitted: str, truth: str) -> None:
    names = ["x", "y"]
    released = parse(fitted, names)

    def release(tree: Expression) -> Expression:
        if isinstance(tree, Apply):
            return Apply(tree.operator, tuple(release(part) for part in tree.arguments))
        return Number(float(tree.value)) if isinstance(tree, Number) else tree

    skeleton, start = free_constants(release(released))
    found = polish(skeleton, start, parse(truth, names), [(1.0, 2.0)] * 2)
    assert found is not None and found.met
    assert all(recognise(value) is not None for value in found.constants)


def test_formulas_that_cannot_meet_do_not() -> None:
    names = ["x"]
    skeleton, start = free_constants(Apply("mul", (Number(1.5), Variable(0))))
    found = polish(skeleton, start, parse("x**2", names), [(1.0, 2.0)])
    assert found is not None and not found.met and found.residual > 1e-3
    assert polish(skeleton, start, parse("log(-x)", names), [(1.0, 2.0)]) is None
