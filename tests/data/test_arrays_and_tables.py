"""`solve(X, y)`: arrays, sequences and tables of other libraries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from physdiffuser import solve
from physdiffuser.data.arrays import ColumnRequest, load_dataset_from
from physdiffuser.data.dataset import Dataset
from physdiffuser.errors import DataError, PhysdiffuserError, UsageError

RNG = np.random.default_rng(0)
X = RNG.uniform(1, 5, (40, 2))
Y = X[:, 0] * X[:, 1] ** 2 / 2
FRAME = pd.DataFrame(X, columns=["m", "v"], index=range(100, 140))
STRUCTURED = np.array(
    [(m, v, e) for (m, v), e in zip(X, Y, strict=True)], dtype=[("m", float), ("v", float), ("E", float)]
)


class OtherTable:
    """What polars has: a table that can be made a pandas DataFrame."""

    def to_pandas(self) -> pd.DataFrame:
        return FRAME.assign(E=Y)


class Broken:
    def to_pandas(self) -> pd.DataFrame:
        raise ModuleNotFoundError("pyarrow is required")


def load(source: Any, y: Any = None, **columns: Any) -> Dataset:
    return load_dataset_from(source, y, ColumnRequest(**columns))


@pytest.mark.parametrize("convert", [np.asarray, np.ndarray.tolist, lambda array: tuple(map(tuple, array))])
def test_arrays_and_sequences_are_solved(convert: Callable[[Any], Any]) -> None:
    solution = solve(convert(X), Y.tolist(), names=["m", "v"], target="E", steps=3)
    assert solution.best is not None and solution.best.text == "m*v**2/2"
    assert solution.target == "E"


@pytest.mark.parametrize(
    ("source", "y", "columns", "names", "target"),
    [
        (X, Y, {}, ["x1", "x2"], "y"),
        (X, Y, {"names": ("m", "v")}, ["m", "v"], "y"),
        (X, Y, {"names": ["m", "v"], "inputs": ["v"], "target": "E"}, ["v"], "E"),
        (X, Y[:, None], {}, ["x1", "x2"], "y"),
        (X, Y, {"names": ["y", "target"]}, ["y", "target"], "target2"),
        (X[:, 0], Y, {}, ["x1"], "y"),
        (FRAME, pd.Series(Y, name="E"), {}, ["m", "v"], "E"),
        (FRAME, pd.Series(Y, name="m"), {}, ["m", "v"], "y"),
        (FRAME, pd.DataFrame({"E": Y}), {}, ["m", "v"], "y"),
        (FRAME, Y, {"names": ["a", "b"]}, ["a", "b"], "y"),
        (FRAME["m"], Y, {}, ["m"], "y"),
        (pd.DataFrame(X), Y, {}, ["x1", "x2"], "y"),
        ({"m": X[:, 0], "v": list(X[:, 1])}, Y, {}, ["m", "v"], "y"),
    ],
)
def test_names_come_from_the_caller_or_the_table(
    source: Any, y: Any, columns: dict[str, Any], names: list[str], target: str
) -> None:
    dataset = load(source, y, **columns)
    assert [column.name for column in dataset.columns] == names
    assert dataset.target_column.name == target
    every = {"m": 0, "v": 1, "x1": 0, "x2": 1, "a": 0, "b": 1, "y": 0, "target": 1}
    assert np.array_equal(dataset.inputs, X[:, [every[name] for name in names]])
    assert np.array_equal(dataset.target, Y)


@pytest.mark.parametrize(
    "source",
    [
        FRAME.assign(E=Y),
        {"m": X[:, 0], "v": X[:, 1], "E": Y},
        STRUCTURED,
        OtherTable(),
        pa.table(FRAME.assign(E=Y)),
    ],
    ids=["pandas", "mapping", "structured", "to_pandas", "pyarrow"],
)
def test_tables_of_other_libraries_are_read(source: Any) -> None:
    dataset = load(source)
    assert [column.name for column in dataset.columns] == ["m", "v"]
    assert dataset.target_column.name == "E"
    assert np.array_equal(dataset.inputs, X) and np.array_equal(dataset.target, Y)


def test_the_tables_of_the_caller_stay_as_they_are() -> None:
    frame, y = FRAME.copy(), pd.Series(Y, name="E")
    load(frame, y, weights=np.ones(40))
    assert (
        frame.equals(FRAME) and list(frame.columns) == ["m", "v"] and list(frame.index) == list(FRAME.index)
    )


def test_weights_and_errors_are_columns_or_values() -> None:
    sigma = RNG.uniform(0.1, 1, 40)
    by_value = load(X, Y, errors=sigma)
    by_name = load(FRAME.assign(dE=sigma), Y, errors="dE")
    given = load(X, Y, weights=1 / sigma**2)
    assert by_value.weights is not None and by_name.weights is not None and given.weights is not None
    assert np.array_equal(by_value.weights, by_name.weights)
    assert np.allclose(by_value.weights / by_value.weights.mean(), given.weights / given.weights.mean())
    assert len(by_value.columns) == 2


def test_arrays_follow_the_rules_of_files() -> None:
    gaps = np.ma.masked_array(X, mask=np.arange(80).reshape(40, 2) == 6)
    assert load(gaps, Y).rows == 39
    assert load(X.tolist(), [None, *Y[1:]]).rows == 39
    assert [column.name for column in load(np.c_[X, np.ones(40)], Y).columns] == ["x1", "x2"]


WRONG: list[tuple[Any, Any, dict[str, Any], type[PhysdiffuserError], str]] = [
    (X, None, {}, UsageError, r"solve\(X, y\)"),
    (X.tolist(), None, {}, UsageError, r"not list.*solve\(X, y\)"),
    (None, None, {}, UsageError, "not NoneType"),
    (X, Y[:10], {}, DataError, r"y has the shape \(10,\); expected \(40,\)"),
    (X, X, {}, DataError, r"y has the shape \(40, 2\)"),
    (X, 3.0, {}, DataError, r"y has the shape \(\)"),
    (X[:, :, None], Y, {}, DataError, r"X has the shape \(40, 2, 1\)"),
    (3.0, Y, {}, DataError, r"X has the shape \(\)"),
    (np.empty((0, 2)), [], {}, DataError, r"X has the shape \(0, 2\)"),
    ([[1, 2], [3]], [1, 2], {}, DataError, "X is no array"),
    (X, ["a"] * 40, {}, DataError, "'y'.*holds text"),
    (X, Y, {"names": ["m"]}, UsageError, "1 names for 2 columns"),
    (X, Y, {"names": "mv"}, UsageError, "must be a list of names"),
    (X, Y, {"names": ["m", 2]}, UsageError, "must be a list of names"),
    (X, Y, {"names": ["m", "m"]}, DataError, "names must differ"),
    (X, Y, {"names": ["m", "v"], "target": "m"}, UsageError, "also the name of an input"),
    (X, Y, {"inputs": ["q"]}, UsageError, "'q'"),
    (X, Y, {"errors": np.ones(3)}, DataError, r"errors has the shape \(3,\)"),
    (FRAME, None, {"weights": Y}, UsageError, "weights= must be the name of a column"),
    (FRAME, None, {"names": ["a", "b"]}, UsageError, r"names= is for solve\(X, y\)"),
    ("table.csv", Y, {}, UsageError, "target="),
    ({"m": X[:, 0], "E": Y[:3]}, None, {}, DataError, r"same length; their shapes are m \(40,\), E \(3,\)"),
    (pd.concat({"a": FRAME}, axis=1), Y, {}, DataError, "2 levels"),
    (Broken(), None, {}, UsageError, "cannot be converted to a DataFrame: pyarrow is required"),
]


@pytest.mark.parametrize(("source", "y", "columns", "kind", "message"), WRONG)
def test_what_does_not_fit_is_one_clear_error(
    source: Any, y: Any, columns: dict[str, Any], kind: type[PhysdiffuserError], message: str
) -> None:
    with pytest.raises(kind, match=message):
        solve(source, y, steps=1, **columns)
