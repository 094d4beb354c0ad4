"""numpy's functions on arrays of another device, against numpy."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from physdiffuser.device import HOST, Device, open_device
from physdiffuser.errors import UsageError
from physdiffuser.expressions import OPERATORS

GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
DEVICES = ["cpu-torch", pytest.param("cuda", marks=GPU)]


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> Device:
    return open_device(request.param)


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def test_numpy_keeps_its_arrays() -> None:
    array = numbers(3)
    for name in ("auto", "cpu"):
        assert open_device(name) is HOST
    assert HOST.put(array) is array and HOST.held(HOST, array) is array
    HOST.synchronise()


def test_torch_is_imported_only_when_asked_for() -> None:
    code = (
        "import sys, physdiffuser.pipeline, physdiffuser.generation.enumeration as one\n"
        "import physdiffuser.generation.neighbours as other\n"
        "one.build(), other.build()\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("name", ["gpu", "tpu", "", None])
def test_an_unknown_device_is_named(name: Any) -> None:
    with pytest.raises(UsageError, match="must be one of 'auto', 'cpu', 'cuda', 'cpu-torch'"):
        open_device(name)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there() -> None:
    with pytest.raises(UsageError, match="torch sees no GPU; use 'cpu' or 'auto'"):
        open_device("cuda")


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_operators_and_their_derivatives(device: Device, name: str) -> None:
    spec = OPERATORS[name]
    arguments = [np.abs(numbers(4, 50, seed=seed)) % 0.9 + 0.05 for seed in range(spec.arity)]
    there = [device.put(argument) for argument in arguments]
    value = spec.evaluate(*arguments)
    np.testing.assert_allclose(np.asarray(spec.evaluate(*there)), value, rtol=1e-14)
    for derivative in spec.derivatives:
        expected = np.broadcast_to(derivative(*arguments, value), value.shape)
        found = np.asarray(derivative(*there, device.put(value)))
        np.testing.assert_allclose(np.broadcast_to(found, value.shape), expected, rtol=1e-14)


SQUARE, OTHER = numbers(4, 6), numbers(4, 6, seed=1)
MASK = SQUARE > 0.0


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: x @ y.T,
        lambda x, y: np.matmul(x, y.transpose(1, 0)),
        lambda x, y: np.einsum("ab,ab->a", x, y),
        lambda x, y: np.where(x > y, x, 0.0),
        lambda x, y: np.where(MASK, x, y),
        lambda x, y: np.where(x == x, x, y),
        lambda x, y: np.median(x, axis=-1) + np.median(y[:, :5], axis=-1),
        lambda x, y: np.ptp(x, axis=1) + np.ptp(y),
        lambda x, y: np.linalg.norm(x, axis=1, keepdims=True) - y,
        lambda x, y: np.concatenate([x, y]).mean(axis=0) + np.stack([x, y]).std(),
        lambda x, y: np.broadcast_to(x[0], (4, 6)).copy() + y.sum(axis=1, keepdims=True),
        lambda x, y: np.maximum(x, 0.5) - np.minimum(y, numbers(6)),
        lambda x, y: 1.0 / x - 2.0 * y**2 + numbers(4, 1) * x,
        lambda x, y: np.float64(2.0) * x - np.float32(0.5) * y,
        lambda x, y: x[MASK] * 2.0,
        lambda x, y: x[np.array([2, 0])][:, None, 1:4] - y[np.array([True, False, True, False]), None, :3],
        lambda x, y: x.min(axis=0) + y.max(axis=0, initial=0.3) + x.max(),
        lambda x, y: y[:, :0].max(axis=1, initial=7.0),
        lambda x, y: np.abs(x).argmin(axis=1),
        lambda x, y: (~(x > 0.0) & np.isfinite(y)).all(axis=0) | (x > 2.0).any(),
        lambda x, y: np.hypot(x, y),
        lambda x, y: np.ldexp(x, np.frexp(y)[1]),
        lambda x, y: np.cumsum(x, axis=1) + np.clip(y, -0.5, 0.5),
        lambda x, y: np.add.reduce(x, axis=1),
        lambda x, y: np.zeros((2, 3), like=x) + np.asarray(np.ones(3), like=y) + np.ones_like(x[:2, :3]),
    ],
)
def test_functions(device: Device, function: Callable[..., Any]) -> None:
    expected = function(SQUARE, OTHER)
    found = function(device.put(SQUARE), device.put(OTHER))
    assert not isinstance(found, np.ndarray)
    assert (found.shape, found.ndim, found.size) == (expected.shape, expected.ndim, expected.size)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-13, atol=1e-13)


def test_changes_in_place_reach_what_a_view_is_of(device: Device) -> None:
    def change(array: np.ndarray, mask: np.ndarray) -> np.ndarray:
        part = array[:, 2:]
        part *= 2.0
        part -= array[:, :1]
        np.multiply(part, part, out=part)
        np.maximum(part, 0.25, out=part)
        np.hypot(part, 1.0, out=part)
        array[mask] = 0.0
        array[mask[:, 0]] = np.arange(6.0)
        array[0, 1] = np.float64(5.0)
        return array

    expected = change(SQUARE.copy(), MASK)
    found = change(device.put(SQUARE.copy()), device.put(MASK))
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-14)


def test_what_is_not_a_number_goes_through_as_in_numpy(device: Device) -> None:
    array = SQUARE.copy()
    array[1, 3] = np.nan
    there = device.put(array)
    for function in (
        lambda x: x.min(axis=1),
        lambda x: x.max(axis=1, initial=0.0),
        lambda x: np.median(x, axis=1),
        lambda x: x.argmin(axis=1),
        lambda x: np.maximum(x, 0.0),
        lambda x: x > 0.0,
        lambda x: np.log(x),
    ):
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(np.asarray(function(there)), function(array), rtol=1e-14)


def test_a_scalar_leaves_single_precision_as_it_is(device: Device) -> None:
    array = device.put(SQUARE.astype(np.float32))
    for found in (array * 2.0, np.float32(2.0) * array, np.subtract(1.0, array), np.where(MASK, array, 0.0)):
        assert found.dtype == np.float32
    assert device.put(SQUARE).astype(np.float32).dtype == np.float32


def test_the_least_of_each_row_come_in_order(device: Device) -> None:
    array = np.array([[3.0, 1.0, 2.0, 1.0], [0.0, np.inf, 0.0, 0.0], [1.0, np.nan, 0.5, 2.0]])
    values, places = device.put(array).lowest(3)  # type: ignore[attr-defined]  # a DeviceArray
    np.testing.assert_array_equal(np.asarray(values), [[1.0, 1.0, 2.0], [0.0, 0.0, 0.0], [np.nan, 0.5, 1.0]])
    np.testing.assert_array_equal(np.asarray(places), [[1, 3, 2], [0, 2, 3], [1, 2, 0]])
    values, _ = device.put(array[:, :2]).lowest(3)  # type: ignore[attr-defined]
    assert values.shape == (3, 2)


def test_an_array_is_held_as_long_as_its_owner_has_it(device: Device) -> None:
    class Owner:
        pass

    owner = Owner()
    first = device.held(owner, SQUARE)
    assert device.held(owner, SQUARE) is first
    longer = device.held(owner, np.concatenate([SQUARE, OTHER]))
    assert longer.shape == (8, 6) and device.put(longer) is longer
    device.synchronise()


def test_matrix_products_are_of_full_precision(device: Device) -> None:
    left, right = (numbers(64, 256, seed=seed).astype(np.float32) for seed in (3, 4))
    found = np.asarray(device.put(left) @ device.put(right).T)
    exact = left.astype(np.float64) @ right.astype(np.float64).T
    # Ten bits instead of 24 would leave errors of 1e-2.
    assert np.abs(found - exact).max() < 1e-4
