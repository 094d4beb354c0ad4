"""Exact trajectories with few points to a turn, whose interpolation errs as if they were noisy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from scipy.integrate import solve_ivp

from physdiffuser import solve_dynamics
from physdiffuser.dynamics.attempts import prepare
from physdiffuser.dynamics.options import DynamicsOptions
from physdiffuser.dynamics.search.coarse import may_be_exact
from physdiffuser.dynamics.trajectories.reading import TrajectoryRequest, read_trajectories

Table = dict[str, npt.NDArray[np.float64]]


def _chen(noise: float = 0.0) -> Table:
    def rates(t: float, s: npt.NDArray[np.float64]) -> list[float]:
        x, y, z = s
        return [35 * (y - x), -7 * x - x * z + 28 * y, x * y - 3 * z]

    t = np.linspace(0.0, 4.0, 150)
    path = solve_ivp(rates, (0, 4), [-3.0, 2.0, 20.0], t_eval=t, rtol=1e-12, atol=1e-12, method="DOP853").y
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
