"""One set of defaults: `solve`, the estimator and the command line search in the same way."""

from __future__ import annotations

import dataclasses
import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from physdiffuser import PhysDiffuserRegressor, solve
from physdiffuser.cli.app import cli
from physdiffuser.cli.solve import solve as solve_command
from physdiffuser.errors import UsageError
from physdiffuser.options import DEFAULT_SECONDS, DEFAULTS, SolveOptions
from physdiffuser.pipeline import solve_dataset

FIELDS = {field.name: getattr(DEFAULTS, field.name) for field in dataclasses.fields(SolveOptions)}
# Options that make no sense for a fitted object, or that another parameter covers.
NOT_OF_THE_ESTIMATOR = {"units_row", "plugins", "proposed", "resumed", "scheduler"}
NOT_OF_THE_COMMAND = {"proposed", "resumed"}


def errors_in_proportion() -> pd.DataFrame:
    """A sorted table whose errors grow with the value."""
    x = np.geomspace(0.02, 20, 60)
    y = 240 * x**-0.75 * (1 + 0.04 * np.random.default_rng(0).normal(size=60))
    return pd.DataFrame({"x": x, "y": y})


def one_outlier() -> pd.DataFrame:
    table = pd.DataFrame({"x": np.linspace(1, 12, 24)})
    table["y"] = 3 + 0.5 * table["x"] + 0.01 * np.random.default_rng(3).normal(size=24)
    table.loc[17, "y"] += 5
    return table


def test_the_estimator_has_the_defaults_of_the_record() -> None:
    parameters = inspect.signature(PhysDiffuserRegressor).parameters
    defaults = {name: parameter.default for name, parameter in parameters.items()}
    defaults["seed"] = defaults.pop("random_state")
    defaults["jobs"] = defaults.pop("n_jobs")
    assert defaults.pop("warm_start") is False
    assert defaults == {name: FIELDS[name] for name in FIELDS.keys() - NOT_OF_THE_ESTIMATOR}


def test_the_command_has_the_defaults_of_the_record() -> None:
    defaults = solve_command.make_context("solve", ["table.csv"]).params
    defaults["time"] = defaults.pop("seconds")
    defaults["plugins"] = not defaults.pop("no_plugins")
    wanted = {name: FIELDS[name] for name in FIELDS.keys() - NOT_OF_THE_COMMAND}
    assert {name: defaults[name] for name in wanted} == wanted


def test_solve_adds_no_default_of_its_own() -> None:
    for function in (solve, solve_dataset):
        assert not inspect.signature(function).parameters.keys() & FIELDS.keys()


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        ({}, DEFAULT_SECONDS),
        ({"steps": 5}, None),
        ({"time": 3.0}, 3.0),
        ({"time": 3.0, "steps": 5}, 3.0),
    ],
)
def test_steps_alone_have_no_time_limit(options: dict[str, Any], limit: float | None) -> None:
    assert SolveOptions(**options).time_limit == limit


def test_the_command_and_python_pass_equal_options(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What reaches the search without any option, and with steps alone."""
    seen: list[SolveOptions] = []

    class StoppedError(Exception):
        pass

    def record(options: SolveOptions) -> None:
        seen.append(options)
        raise StoppedError

    monkeypatch.setattr("physdiffuser.pipeline.check_options", record)
    path = tmp_path / "table.csv"
    table = errors_in_proportion()
    table.to_csv(path, index=False)
    for given in ({}, {"steps": 4}):
        seen.clear()
        words = [word for name, value in given.items() for word in (f"--{name}", str(value))]
        for run in (
            lambda given=given: solve(path, **given),
            lambda given=given: solve(table[["x"]], table["y"], **given),
            lambda given=given: PhysDiffuserRegressor(**given).fit(table[["x"]], table["y"]),
            lambda words=words: CliRunner().invoke(
                cli, ["solve", str(path), "--json", *words], catch_exceptions=False, standalone_mode=False
            ),
        ):
            with pytest.raises(StoppedError):
                run()
        limits = {options.time_limit for options in seen}
        assert len(seen) == 4 and limits == {None if given else DEFAULT_SECONDS}
        # The command writes its resolved time limit into the record; nothing else differs.
        assert len({repr(dataclasses.replace(options, time=None, resumed=())) for options in seen}) == 1


@pytest.mark.parametrize(
    "table",
    [
        pytest.param(errors_in_proportion(), id="scatter"),
        pytest.param(one_outlier(), id="loss", marks=pytest.mark.slow),
    ],
)
def test_the_same_table_has_one_answer(table: pd.DataFrame, tmp_path: Path) -> None:
    steps = 1
    path = tmp_path / "table.csv"
    table.to_csv(path, index=False, float_format="%.17g")
    fitted = PhysDiffuserRegressor(steps=steps).fit(table[["x"]], table["y"]).solution_
    words = ["solve", str(path), "--steps", str(steps), "--json", "--quiet"]
    printed = json.loads(CliRunner().invoke(cli, words).stdout)
    for other in (
        solve(path, steps=steps),
        solve(table, steps=steps),
        solve(table[["x"]], table["y"], steps=steps),
        solve(table[["x"]].to_numpy(), table["y"].to_numpy(), names=["x"], target="y", steps=steps),
    ):
        assert other.pareto == fitted.pareto
        assert other.best == fitted.best
        assert other.warnings == fitted.warnings
    assert [row["expression"] for row in printed["pareto"]] == [row.text for row in fitted.pareto]
    assert printed["warnings"] == list(fitted.warnings)
    # The noise of both tables was noticed: with other defaults the estimator would have answered otherwise.
    assert any("lies far from" in text or "proportional to its value" in text for text in fitted.warnings)


def test_warnings_name_the_rows_that_the_user_has() -> None:
    """Also where `fit` sorts rows, and where rows with gaps were left out."""
    table = one_outlier()
    shuffled = table.sample(frac=1, random_state=1)
    number = list(shuffled.index).index(17) + 1
    quick: Any = {"steps": 2, "generators": ["sparse"], "operators": ["add", "mul"]}
    fitted = PhysDiffuserRegressor(**quick).fit(shuffled[["x"]], shuffled["y"])
    assert any(f"data row {number} lies" in text for text in fitted.solution_.warnings)
    table.loc[[2, 5], "y"] = np.nan
    assert any("data row 18 lies" in text for text in solve(table, **quick).warnings)


def test_an_unknown_option_is_named_with_a_suggestion() -> None:
    with pytest.raises(UsageError, match="no option 'opertors': did you mean 'operators'"):
        solve(one_outlier(), opertors=["add"])
    with pytest.raises(UsageError, match="no option 'qqq': the options are time, steps"):
        DEFAULTS.changed(qqq=1)
