"""Errors of the inputs: how they are stated, and what they change."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from physdiffuser import PhysDiffuserRegressor
from physdiffuser.cli.app import cli
from physdiffuser.data import load_dataset
from physdiffuser.errors import UsageError
from physdiffuser.pipeline import solve

NOISE, ERROR = 0.1, 0.08


def rows(count: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.5, 3, count)
    y = 2.37 * x**2 + NOISE * rng.standard_normal(count)
    return x + ERROR * rng.standard_normal(count), y


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.csv"
    lines = [f"{a},{0.1 + 0.001 * n},{a / 2},{b}" for n, (a, b) in enumerate(zip(*rows(60), strict=True))]
    path.write_text("\n".join(["x,dx,z,y", *lines]) + "\n")
    return path


def test_numbers_percentages_and_columns(table: Path) -> None:
    data = load_dataset(str(table), input_errors="x=dx,z=2%")
    assert data.names == ("x", "z")
    assert data.input_errors is not None
    np.testing.assert_allclose(
        data.input_errors, np.column_stack([0.1 + 0.001 * np.arange(60), 0.02 * abs(data.inputs[:, 1])])
    )
    assert data.take(np.array([3, 5])).input_errors is not None
    same = load_dataset(str(table), input_errors={"x": 0.2, "z": "2%"})
    assert same.names == ("x", "dx", "z")


def test_a_column_of_errors_is_no_target(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("x,y,dx\n" + "\n".join(f"{n},{2 * n},{0.1}" for n in range(1, 9)) + "\n")
    data = load_dataset(str(path), input_errors="x=dx")
    assert data.target_column.name == "y"
    assert data.names == ("x",)


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ("q=0.1", "has no column 'q'"),
        ("x=-0.1", "must be 0 or more"),
        ("x=nan", "must be 0 or more"),
        ("x=much", "neither a number"),
        ("x", "is not NAME=ERROR"),
        ("x=0.1,x=0.2", "named twice"),
        ("y=0.1", "is the target"),
        ("x=y", "which is the target"),
        ("x=z,z=0.1", "which is an input"),
    ],
)
def test_what_cannot_be_used_is_refused(table: Path, stated: str, said: str) -> None:
    done = CliRunner().invoke(cli, ["solve", str(table), "--target", "y", "--input-errors", stated, "--json"])
    assert isinstance(done.exception, UsageError)
    assert done.exception.exit_code == 2
    assert said in str(done.exception)
    assert not done.stdout


def test_a_chosen_input_holds_no_errors(table: Path) -> None:
    with pytest.raises(UsageError, match="which is an input"):
        load_dataset(str(table), inputs=["x", "dx"], input_errors="x=dx")


def test_constants_are_not_biased() -> None:
    x, y = rows()
    options = {"names": ["x"], "target": "y", "steps": 3, "plugins": False, "initial": ["2.1*x**2"]}
    errors = np.full(len(x), NOISE)
    aware = solve(x, y, errors=errors, input_errors={"x": ERROR}, **options)  # type: ignore[arg-type]
    best = aware.best
    assert best is not None and best.text.endswith("*x**2")
    (constant,) = [one for one in best.constants if not one.is_set]
    assert constant.low is not None and constant.high is not None
    assert constant.low <= 2.37 <= constant.high
    assert best.reduced_chi_square == pytest.approx(1.0, abs=0.3)
    assert not any("chi-square" in text for text in aware.warnings)


def test_the_estimator_takes_them() -> None:
    x, y = rows(100)
    law = PhysDiffuserRegressor(steps=2, initial=["2.1*x1**2"], input_errors={"x1": ERROR}).fit(x[:, None], y)
    assert law.best_.text.endswith("*x1**2")
    with pytest.raises(UsageError, match="no column 'q'"):
        PhysDiffuserRegressor(steps=2, input_errors={"q": 0.1}).fit(x[:, None], y)
