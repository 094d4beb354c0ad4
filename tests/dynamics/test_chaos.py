"""The Lyapunov exponent, and how far a chaotic system is predicted."""

from __future__ import annotations

import numpy as np

from physdiffuser.dynamics.integration.flow import System, simulate
from physdiffuser.dynamics.trajectories.reading import TrajectoryRequest, read_trajectories
from physdiffuser.dynamics.verification.chaos import horizon, lyapunov_exponent
from physdiffuser.expressions import parse

STATES = ["x", "y", "z"]


def system(*equations: str) -> System:
    return System(tuple(parse(text, [*STATES[: len(equations)], "t"]) for text in equations))


LORENZ = system("10*(y - x)", "x*(28 - z) - y", "x*y - 8/3*z")


def test_the_exponent_of_lorenz_is_the_published_one() -> None:
    times = np.linspace(0.0, 60.0, 3001)
    path = simulate(LORENZ, np.array([1.0, 2.0, 20.0]), times)
    assert abs(lyapunov_exponent(LORENZ, path, times, path.std(axis=0)) - 0.906) < 0.1


def test_a_spiral_contracts_by_its_friction() -> None:
    spiral = system("y", "-x - 0.2*y")
    times = np.linspace(0.0, 20.0, 401)
    path = simulate(spiral, np.array([1.0, 0.0]), times)
    assert abs(lyapunov_exponent(spiral, path, times, np.ones(2)) + 0.1) < 0.02


def test_a_wrong_first_point_is_lost_after_some_lyapunov_times() -> None:
    times = np.linspace(0.0, 15.0, 751)
    truth, path = (simulate(LORENZ, np.array([1.0, 2.0, start]), times) for start in (20.0, 20.001))
    table = read_trajectories({"t": times, **dict(zip(STATES, truth.T, strict=True))}, TrajectoryRequest())
    found = horizon(LORENZ, table, [path])
    assert found is not None
    assert 3.0 < found.lyapunov_times < 12.0
    exact = horizon(LORENZ, table, [truth])
    assert exact is not None and exact.lyapunov_times > found.lyapunov_times


def test_regular_motion_and_growth_have_no_horizon() -> None:
    for equations, start in (
        (("y", "-x"), [1.0, 0.0]),
        (("0.5*x", "0.4*y", "0.6*z"), [1.0, 1.0, 1.0]),
        (("y*z", "-1.2*x*z", "0.3*x*y"), [1.0, 0.4, 0.7]),
    ):
        own = system(*equations)
        times = np.linspace(0.0, 12.0, 241)
        path = simulate(own, np.array(start), times)
        names = STATES[: len(equations)]
        table = read_trajectories({"t": times, **dict(zip(names, path.T, strict=True))}, TrajectoryRequest())
        assert horizon(own, table, [path]) is None
