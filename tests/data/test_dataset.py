"""Choosing columns and rows, warnings, arrays, and inputs for predictions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from physdiffuser.data import dataset_from_arrays, load_dataset
from physdiffuser.errors import DataError, UsageError

TEXT = "planet,a (AU),w,T\nVenus,0.7,1,0.6\nEarth,1,2,1\nMars,1.5,0,1.9\nJupiter,5.2,1,11.9\n"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "planets.csv"
    path.write_text(TEXT)
    return path


def test_defaults(table: Path) -> None:
    data = load_dataset(table)
    assert data.names == ("a_AU", "w")
    assert data.aliases == {"a_AU": "a (AU)"}
    assert data.target_column.name == "T"
    assert data.notes["target"] == "T (last column)"
    assert data.warnings == ("left out because they hold text: 'planet'",)
    assert data.source == str(table)


def test_target_when_the_last_column_is_text(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,T,planet\n1,2,x\n2,3,y\n3,5,z\n")
    data = load_dataset(path)
    assert data.notes["target"] == "T (last usable column)"
    with pytest.raises(DataError, match="'planet' was asked for but holds text"):
        load_dataset(path, target="planet")
    with pytest.raises(DataError, match="'planet' was asked for but holds text"):
        load_dataset(path, inputs=["a", "planet"])


def test_chosen_columns(table: Path) -> None:
    data = load_dataset(table, target="a_AU", inputs=[" T "], weights="w")
    assert data.names == ("T",)
    np.testing.assert_array_equal(data.target, [0.7, 1, 5.2])
    np.testing.assert_array_equal(data.weights, [1, 2, 1])
    assert data.warnings == ("1 row left out because the weight is zero",)


def test_columns_that_are_not_asked_for_may_hold_anything(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("day,a,note,y\n2024-01-01,1,0x10,2\n2024-01-02,2,5%,3\n2024-01-03,3,,5\n")
    with pytest.raises(DataError, match="date"):
        load_dataset(path)
    data = load_dataset(path, inputs=["a"])
    assert data.warnings == ()
    np.testing.assert_array_equal(data.target, [2, 3, 5])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"target": "t"}, "Did you mean 'T'"),
        ({"target": "zzz"}, "The columns are 'planet', 'a \\(AU\\)'"),
        ({"inputs": ["T", "a (AU)"], "target": "T"}, "is the target"),
        ({"inputs": ["w"], "weights": "w"}, "holds the weights"),
        ({"target": "T", "weights": "T"}, "is the target"),
        ({"inputs": ["w"], "errors": "w"}, "holds the errors"),
        ({"target": "T", "errors": "T"}, "--errors: 'T' is the target"),
        ({"weights": "w", "errors": "w"}, "give one of them"),
        ({"inputs": ["w", "w"]}, "twice"),
        ({"inputs": []}, "no column"),
        ({"inputs": "T"}, "must be a list of names"),
        ({"delimiter": "ab"}, "--delimiter"),
        ({"delimiter": "1"}, "--delimiter"),
        ({"thousands": "12"}, "--thousands"),
        ({"target": "\x1b[31m"}, r"\\x1b"),
    ],
)
def test_usage(table: Path, options: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        load_dataset(table, **options)


def test_weights(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    for cells, says in (("-1", "zero or positive"), ("0", "zero")):
        path.write_text("a,y,w\n1,2,0\n2,3,0\n3,5," + cells + "\n")
        with pytest.raises(DataError, match=says):
            load_dataset(path, weights="w", target="y")


def test_gaps_in_a_constant_column_cost_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,g,y\n1,9.81,2\n2,,3\n3,9.81,5\n4,,6\n5,,7\n")
    data = load_dataset(path)
    assert data.rows == 5
    assert len(data.warnings) == 1


def test_empty_named_column(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,comment,y\n1,,2\n2,,3\n3,,5\n")
    data = load_dataset(path)
    assert data.names == ("a",)
    assert data.warnings == ("left out because they are empty: 'comment'",)


def test_no_false_alarms(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    path = tmp_path / "t.csv"
    x = rng.integers(-1000, 1001, 20_000)
    temperature = 1e6 + rng.normal(size=x.size) * 1e-3
    np.savetxt(path, np.column_stack([x, temperature, x * 2.0]), "%.17g", ",", header="x,t,y", comments="")
    data = load_dataset(path)
    assert data.warnings == ()


def test_arrays() -> None:
    x = np.array([[1.0, 5], [2, 5], [3, 5]])
    y = np.array([1, 2, 3])
    data = dataset_from_arrays(x, y, names=["lambda", "g"], weights=[1, 0, 2])
    assert data.names == ("lambda_", "g")  # constant columns stay
    np.testing.assert_array_equal(data.inputs, x[[0, 2]])
    np.testing.assert_array_equal(data.weights, [1, 2])
    assert dataset_from_arrays(x, y).names == ("x1", "x2")
    for bad in (
        {"inputs": x[:2]},
        {"inputs": x[:, 0]},
        {"inputs": np.empty((3, 0))},
        {"target": [1, np.nan, 2]},
        {"inputs": [[1, np.inf]] * 3},
        {"names": ["a"]},
        {"names": ["a", "a"]},
        {"weights": [1, -1, 1]},
        {"weights": [0, 0, 0]},
        {"weights": [1, 1]},
    ):
        with pytest.raises(DataError):
            dataset_from_arrays(**{"inputs": x, "target": y, **bad})


def test_nothing_heavy_is_imported(table: Path) -> None:
    code = (
        "import sys; from physdiffuser.data import load_dataset; load_dataset(sys.argv[1]);"
        "print([name for name in ('pandas', 'pyarrow', 'scipy', 'sympy', 'torch') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(table)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("rows", [400_000])
def test_memory_of_a_large_table(tmp_path: Path, rows: int) -> None:
    """80 MB of text: the numbers take 34 MB, and the process stays far below the file's size."""
    path = tmp_path / "large.csv"
    block = "".join(
        ",".join(map(repr, row)) + "\n" for row in np.random.default_rng(2).normal(size=(20_000, 10)).tolist()
    )
    with path.open("w") as file:
        file.write(",".join(f"c{i}" for i in range(10)) + "\n")
        for _ in range(rows // 20_000):
            file.write(block)
    if not Path("/proc/self/status").exists():
        pytest.skip("the peak of a process alone is known on Linux only")
    # Not `ru_maxrss`: a child inherits the peak of the process that started it.
    code = (
        "import sys; from physdiffuser.data import load_dataset; data = load_dataset(sys.argv[1]);"
        "(peak,) = [line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')];"
        "print(data.rows, int(peak) // 1024)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    read, megabytes = map(int, done.stdout.split())
    path.unlink()
    assert read == rows
    assert megabytes < 350


def test_errors_are_weights_by_another_name(tmp_path: Path) -> None:
    path = tmp_path / "errors.csv"
    path.write_text("x,dy,y\n1,0.1,1\n2,0.2,2\n3,,3\n4,0.4,4\n5,0.4,5\n")
    data = load_dataset(path, errors="dy")
    assert data.weights is not None and [column.name for column in data.columns] == ["x"]
    np.testing.assert_allclose(data.weights / data.weights[0], [1, 1 / 4, 1 / 16, 1 / 16])
    assert data.weights.mean() == pytest.approx(1)
    assert any("1 row of 5 left out" in warning for warning in data.warnings)
    path.write_text("x,dy,y\n1,0.1,1\n2,0,2\n3,0.1,4\n")
    with pytest.raises(DataError, match="errors in 'dy' must be above zero, found 0"):
        load_dataset(path, errors="dy")
