"""Tables of trajectories: what is refused, with the place and the way to fix it."""

from __future__ import annotations

import numpy as np
import pytest

from physdiffuser.dynamics.trajectories.reading import TrajectoryRequest, read_trajectories
from physdiffuser.errors import DataError, UsageError

TIMES = np.linspace(0.0, 1.0, 12)


def table(**columns: object) -> dict[str, object]:
    return {"t": TIMES, "x": np.exp(-TIMES), "y": np.sin(TIMES), **columns}


def test_first_column_is_the_time_and_all_others_are_states() -> None:
    found = read_trajectories(table(), TrajectoryRequest())
    assert found.time.name == "t"
    assert [column.name for column in found.states] == ["x", "y"]
    assert found.runs[0].points == 12


def test_runs_are_told_apart_by_a_column() -> None:
    both = {
        "run": [1] * 12 + [2] * 12,
        "t": np.tile(TIMES, 2),
        "x": np.concatenate([np.exp(-TIMES), 2 * np.exp(-TIMES)]),
    }
    found = read_trajectories(both, TrajectoryRequest(runs="run"))
    assert [run.label for run in found.runs] == ["1", "2"]
    assert [column.name for column in found.states] == ["x"]


def test_a_column_that_is_constant_within_each_run_is_an_input() -> None:
    both = {
        "t": np.tile(TIMES, 2),
        "x": np.concatenate([np.exp(-TIMES), np.exp(-2 * TIMES)]),
        "k": [1.0] * 12 + [2.0] * 12,
        "run": [1] * 12 + [2] * 12,
    }
    found = read_trajectories(both, TrajectoryRequest(runs="run"))
    assert [column.name for column in found.inputs] == ["k"]
    assert any("'k'" in text and "input" in text for text in found.warnings)


@pytest.mark.parametrize(
    ("columns", "request_", "words"),
    [
        ({"t": np.r_[TIMES[:6], TIMES[:6]]}, TrajectoryRequest(), ["goes back", "data row 7", "--runs"]),
        ({"t": np.r_[0.0, TIMES[:-1]]}, TrajectoryRequest(), ["same time", "rows 1 and 2"]),
        ({"t": np.r_[np.nan, TIMES[1:]]}, TrajectoryRequest(), ["time 't' is missing", "data row 1"]),
        ({"x": np.ones(12), "y": np.ones(12)}, TrajectoryRequest(), ["constant"]),
        ({"run": np.arange(12)}, TrajectoryRequest(runs="run"), ["no run has 5 points"]),
    ],
)
def test_bad_tables_are_refused(
    columns: dict[str, object], request_: TrajectoryRequest, words: list[str]
) -> None:
    with pytest.raises(DataError) as caught:
        read_trajectories(table(**columns), request_)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (TrajectoryRequest(time="T"), ["--time-column", "Did you mean"]),
        (TrajectoryRequest(states=("x", "x")), ["twice in --states"]),
        (TrajectoryRequest(states=("x", "t")), ["--time-column and in --states"]),
    ],
)
def test_bad_requests_are_refused(request_: TrajectoryRequest, words: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        read_trajectories(table(), request_)
    for word in words:
        assert word in str(caught.value)


def test_missing_values_of_a_state_are_kept_as_gaps() -> None:
    values = np.exp(-TIMES)
    values[3] = np.nan
    found = read_trajectories(table(x=values), TrajectoryRequest())
    assert np.isnan(found.runs[0].states[3, 0])
    assert np.isfinite(found.runs[0].states[3, 1])
    assert any("missing" in text for text in found.warnings)
