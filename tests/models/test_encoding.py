"""Scaling by powers of two is undone exactly, and half precision holds what it should."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from physdiffuser.expressions import evaluate, parse
from physdiffuser.models.encoder import to_bits
from physdiffuser.models.features.encoding import HIGHEST, LOWEST, choose_scaling, to_half

FloatArray = npt.NDArray[np.float64]
NAMES = ("a", "b", "c")


def table(exponents: list[int], seed: int = 0, rows: int = 20) -> FloatArray:
    rng = np.random.default_rng(seed)
    return rng.uniform(1.0, 2.0, (rows, len(exponents))) * np.ldexp(1.0, np.array(exponents))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(-200, 200), min_size=3, max_size=3), st.integers(-200, 200))
def test_undone_exactly(exponents: list[int], target_exponent: int) -> None:
    inputs = table(exponents)
    target = table([target_exponent], seed=1)[:, 0]
    scaling = choose_scaling(inputs, target)
    scaled_inputs, scaled_target = scaling.apply(inputs, target)
    np.testing.assert_array_equal(np.ldexp(scaled_inputs, np.array(scaling.inputs)), inputs)
    np.testing.assert_array_equal(np.ldexp(scaled_target, scaling.target), target)
    # A product is computed from the same digits either way, so it is equal to the last bit.
    expression = parse("a*b/c", NAMES)
    expected = np.ldexp(evaluate(expression, scaled_inputs), scaling.target)
    np.testing.assert_array_equal(evaluate(scaling.undo(expression), inputs), expected)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(-300, 300), min_size=1, max_size=9))
def test_scaled_columns_fit_half_precision(exponents: list[int]) -> None:
    inputs = table(exponents)
    scaled, target = choose_scaling(inputs, inputs[:, 0]).apply(inputs, inputs[:, 0])
    assert np.abs(scaled).max() < 65_504 and np.abs(target).max() < 65_504
    assert np.abs(scaled).max(axis=0).min() > 2.0**-14  # no column becomes zero or subnormal


def test_usual_numbers_are_left_alone() -> None:
    inputs = np.array([[1.0, 0.3, -250.0], [4.0, 0.1, 12.0]])
    assert choose_scaling(inputs, inputs[:, 0]).inputs == (0, 0, 0)
    assert choose_scaling(inputs, inputs[:, 0]).target == 0


def test_columns_of_similar_size_share_a_shift() -> None:
    # A difference of two large lengths must stay a difference.
    scaling = choose_scaling(table([40, 43, -60]), table([0])[:, 0])
    assert scaling.inputs[0] == scaling.inputs[1] != 0
    assert scaling.inputs[2] < 0


def test_zero_and_constant_columns() -> None:
    inputs = np.zeros((5, 2))
    inputs[:, 1] = 3.0
    assert choose_scaling(inputs, inputs[:, 0]) == choose_scaling(inputs, inputs[:, 0])
    assert LOWEST <= 0 <= HIGHEST
    assert choose_scaling(inputs, inputs[:, 0]).inputs == (0, 0)


def test_bits_are_those_of_half_precision() -> None:
    slots = np.array([2, 0])
    half = to_half(np.array([[1.5, -0.25]]), np.array([3.0]), slots.astype(np.intp))
    assert half[0, 2] == 1.5 and half[0, 0] == -0.25 and half[0, 9] == 3.0
    bits = to_bits(torch.from_numpy(half)[None])[0, 0].reshape(10, 16)
    weights = 2 ** torch.arange(16)
    numbers = (bits.long() * weights).sum(1).numpy().astype(np.uint16).view(np.float16)
    np.testing.assert_array_equal(numbers, half[0])
    assert set(bits.unique().tolist()) == {0, 1}


@pytest.mark.parametrize("value", [1e9, -1e9])
def test_far_outliers_are_clipped_not_infinite(value: float) -> None:
    half = to_half(np.array([[value]]), np.array([value]), np.array([0], dtype=np.intp))
    assert np.isfinite(half).all()
