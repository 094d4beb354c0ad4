"""Reductions read off slopes: exponents, few rows, and columns whose slopes are nearly nothing."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from physdiffuser.core.reduction import Reduction
from physdiffuser.expressions import Variable, evaluate, parse
from physdiffuser.expressions.tree import sub
from physdiffuser.reduction.factors import reductions
from physdiffuser.reduction.scale_symmetries import _simple
from physdiffuser.reduction.surrogate import careful_slopes


def table(law: str, ranges: dict[str, tuple[float, float]], rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows drawn from a law."""
    random = np.random.default_rng(2)
    inputs = np.stack([random.uniform(*limits, rows) for limits in ranges.values()], axis=1)
    return inputs, evaluate(parse(law, list(ranges)), inputs)


@pytest.mark.parametrize(
    "exponent", [Fraction(-2, 3), Fraction(1, 3), Fraction(3, 4), Fraction(4, 5), Fraction(3, 2)]
)
def test_exponents_in_small_parts_are_divided_out(exponent: Fraction) -> None:
    law = f"(a - b - 6)*V**({exponent})"
    inputs, target = table(law, {"a": (480, 650), "b": (280, 370), "V": (2e-5, 2e-4)}, 40)
    found = reductions(inputs, target)
    power = ((Variable(2), exponent),)
    assert Reduction.of(power, (Variable(0), Variable(1))) in found
    assert Reduction.of(power, (sub(Variable(0), Variable(1)),)) in found


def test_few_rows_without_noise_are_followed_by_a_curve_and_not_a_plane() -> None:
    inputs, target = table("a**2*exp(b/3)*c", dict.fromkeys("abc", (1.0, 4.0)), 30)
    fitted = careful_slopes(np.log(inputs), np.log(target))
    assert fitted is not None
    slopes, unseen = fitted
    np.testing.assert_allclose(
        slopes, np.stack([np.full(30, 2.0), inputs[:, 1] / 3, np.ones(30)], axis=1), atol=0.1
    )
    np.testing.assert_array_equal(unseen, 0.0)


def test_the_slopes_of_a_plane_are_doubted_by_what_it_leaves() -> None:
    random = np.random.default_rng(0)
    inputs = random.normal(size=(9, 4))
    line, bent = inputs @ [1.0, 2.0, 0.0, -1.0], inputs[:, 0] ** 3
    straight, crooked = careful_slopes(inputs, line), careful_slopes(inputs, bent)
    assert straight is not None
    assert crooked is not None
    assert straight[1].max() < 1e-6
    assert crooked[1].min() > 0.1


def test_a_column_that_hardly_matters_is_kept_in_one_frame() -> None:
    inputs, target = table("g**2*(343 + u)", {"g": (200.0, 900.0), "u": (2.0, 4.0)}, 200)
    found = reductions(inputs, target)
    assert Reduction.of(((Variable(0), Fraction(2)),), (Variable(1),)) in found


def test_scalings_count_in_halves_and_in_thirds_that_are_much_nearer() -> None:
    assert _simple(2.665) == Fraction(8, 3)
    assert _simple(-0.34) == Fraction(-1, 3)
    assert _simple(2.55) == Fraction(5, 2)
    assert _simple(0.42) == Fraction(1, 2)
