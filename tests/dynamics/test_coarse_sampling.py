"""Exact trajectories with few points to a turn, whose interpolation errs as if they were noisy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from scipy.integrate import solve_ivp

from physdiffuser import solve_dynamics
from physdiffuser.dynamics.attempts import prepare
from physdiffuser.dynamics.options import DynamicsOptions
from physdiffuser.dynamics.search.coarse import has_exact_values, may_be_exact
from physdiffuser.dynamics.trajectories.reading import TrajectoryRequest, read_trajectories

Table = dict[str, npt.NDArray[np.float64]]


def _chen(noise: float = 0.0, duration: float = 4.0) -> Table:
    def rates(t: float, s: npt.NDArray[np.float64]) -> list[float]:
        x, y, z = s
        return [35 * (y - x), -7 * x - x * z + 28 * y, x * y - 3 * z]

    t = np.linspace(0.0, duration, 150)
    path = solve_ivp(
        rates, (0, duration), [-3.0, 2.0, 20.0], t_eval=t, rtol=1e-12, atol=1e-12, method="DOP853"
    ).y
    path *= 1.0 + noise * np.random.default_rng(0).standard_normal(path.shape)
    return {"t": t, "x": path[0], "y": path[1], "z": path[2]}


@pytest.fixture(scope="module")
def chen() -> Table:
    return _chen()


def test_the_equations_of_an_attractor_are_exact(chen: Table) -> None:
    found = solve_dynamics(chen, order=1, steps=4)
    texts = [one.best.text for one in found.equations if one.best is not None]
    assert texts == ["35*(y - x)", "28*y - x*(7 + z)", "x*y - 3*z"]
    assert found.is_verified


def test_only_tables_whose_points_lie_on_smooth_curves_are_tried(chen: Table) -> None:
    request = TrajectoryRequest(None, None, (), None)
    exact, noisy = (
        prepare(read_trajectories(table, request), DynamicsOptions()) for table in (chen, _chen(0.01))
    )
    assert may_be_exact(exact)
    assert not may_be_exact(noisy)


def test_terms_that_only_met_errors_of_integration_leave_again() -> None:
    def rates(t: float, s: npt.NDArray[np.float64]) -> list[float]:
        x, y, z = s
        return [9 * (y - x), x * (31 - z) - y, x * y - 2.4 * z]

    start = solve_ivp(rates, (0, 3), [4.0, -3.0, 22.0], rtol=1e-10, atol=1e-12).y[:, -1]
    t = np.linspace(0.0, 10.0, 150)
    path = solve_ivp(rates, (0, 10), start, t_eval=t, rtol=1e-12, atol=1e-12, method="DOP853").y
    found = solve_dynamics({"t": t, "x": path[0], "y": path[1], "z": path[2]}, order=1, steps=4)
    texts = [one.best.text for one in found.equations if one.best is not None]
    assert texts == ["9*(y - x)", "x*(31 - z) - y", "-2.4*z + x*y"]


def test_only_complete_tables_of_first_order_have_exact_values(chen: Table) -> None:
    fine = {name: values[:60] for name, values in _chen(duration=1.0).items()}
    holed = {**fine, "x": fine["x"].copy()}
    holed["x"][7] = np.nan
    request = TrajectoryRequest(None, None, (), None)
    tables = [read_trajectories(table, request) for table in (fine, holed, chen)]
    assert [has_exact_values(prepare(table, DynamicsOptions())) for table in tables] == [True, False, False]
