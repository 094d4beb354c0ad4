"""Equations of second order, and right-hand sides that depend on the time or on an input."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import sympy
from click.testing import CliRunner
from scipy.integrate import solve_ivp

from physdiffuser.cli.app import cli
from physdiffuser.dynamics.report.document import dynamics_document, solution_from_dynamics
from physdiffuser.dynamics.solve import solve_dynamics
from physdiffuser.dynamics.trajectories.reading import TrajectoryRequest, read_trajectories
from physdiffuser.errors import UsageError

FloatArray = npt.NDArray[np.float64]


def path(
    rates: Callable[[float, FloatArray], list[float]], initial: list[float], end: float, points: int = 150
) -> tuple[FloatArray, FloatArray]:
    times = np.linspace(0.0, end, points)
    found = solve_ivp(rates, (0.0, end), initial, t_eval=times, rtol=1e-11, atol=1e-12, method="DOP853")
    return times, found.y.T


def pendulum(noise: float = 0.0) -> dict[str, FloatArray]:
    times, states = path(lambda t, z: [z[1], -3.1 * np.sin(z[0]) - 0.25 * z[1]], [2.0, 0.0], 10.0)
    return {"t": times, "a": states[:, 0] + noise * np.random.default_rng(1).standard_normal(times.size)}


def test_positions_alone_give_an_equation_of_second_order() -> None:
    found = solve_dynamics(pendulum(), steps=4)
    assert found.order == 2
    assert [column.name for column in found.phase] == ["a", "a_dot"]
    [equation] = found.equations
    assert equation.target == "d2a/dt2"
    assert equation.best is not None and equation.best.text in (
        "-0.25*a_dot - 3.1*sin(a)",
        "-3.1*sin(a) - 0.25*a_dot",
        "-a_dot/4 - 3.1*sin(a)",
        "-a_dot/4 - 31*sin(a)/10",
    )
    assert found.is_verified
    t, a = sympy.Symbol("t", real=True), sympy.Function("a")
    truth = sympy.Derivative(a(t), (t, 2)) + 3.1 * sympy.sin(a(t)) + 0.25 * sympy.Derivative(a(t), t)
    [stated] = found.to_sympy()
    assert sympy.simplify(sympy.nsimplify(stated.lhs - stated.rhs - truth)) == 0
    assert r"\frac{d^2 a}{d t^2}" in found.latex()


def test_simulations_of_second_order_start_from_position_and_velocity() -> None:
    table = pendulum()
    found = solve_dynamics(table, steps=4, order=2)
    simulated = found.simulate({"a": 2.0, "a_dot": 0.0}, table["t"])
    assert simulated.shape == (150, 2)
    assert np.abs(simulated[:, 0] - table["a"]).max() < 1e-5
    with pytest.raises(UsageError, match="a_dot"):
        found.simulate({"a": 2.0}, table["t"])
    again = solution_from_dynamics(dynamics_document(found))
    assert np.allclose(again.simulate([2.0, 0.0], table["t"]), simulated)


def test_a_noisy_position_gives_the_constants_within_their_errors() -> None:
    found = solve_dynamics(pendulum(0.01), steps=2, order=2)
    best = found.equations[0].best
    assert best is not None
    from physdiffuser.expressions import evaluate

    nodes = np.column_stack([np.linspace(-1.5, 1.5, 9), np.linspace(1.0, -1.0, 9), np.zeros(9)])
    truth = -3.1 * np.sin(nodes[:, 0]) - 0.25 * nodes[:, 1]
    assert np.abs(evaluate(best.expression, nodes) - truth).max() < 0.1


def test_the_time_may_stand_in_an_equation() -> None:
    times, states = path(lambda t, z: [1.5 * np.sin(2 * t) - 0.7 * z[0]], [1.0], 12.0)
    found = solve_dynamics({"t": times, "x": states[:, 0]}, steps=3, order=1)
    best = found.equations[0].best
    assert best is not None and best.text in ("1.5*sin(2*t) - 0.7*x", "3*sin(2*t)/2 - 0.7*x")
    assert np.abs(found.simulate([1.0], times)[:, 0] - states[:, 0]).max() < 1e-5


def test_an_input_drives_an_equation() -> None:
    times, states = path(
        lambda t, z: [2.0 * np.interp(t, times_of_input, steps) - 0.5 * z[0]], [0.3], 10.0, 201
    )
    table = {"t": times, "x": states[:, 0], "u": np.interp(times, times_of_input, steps)}
    found = solve_dynamics(table, steps=3, inputs=["u"])
    assert found.order == 1
    nodes = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    from physdiffuser.expressions import evaluate

    best = found.equations[0].best
    assert best is not None
    assert np.allclose(evaluate(best.expression, nodes), [-0.5, 2.0], atol=1e-3)
    simulated = found.simulate([0.3], times, {"u": table["u"]})[:, 0]
    assert np.abs(simulated - states[:, 0]).max() < 1e-2


times_of_input = np.linspace(0.0, 10.0, 21)
steps = np.random.default_rng(4).uniform(0.0, 1.0, 21)


def test_the_derivative_gets_a_name_that_is_free() -> None:
    times = np.linspace(0.0, 1.0, 12)
    table = read_trajectories(
        {"t": times, "x": times**2, "x_dot": np.exp(times)}, TrajectoryRequest()
    ).second_order()
    assert len({column.name for column in table.states}) == 4
    assert table.measured == 2 and table.order == 2
    assert np.isnan(table.runs[0].states[:, 2:]).all()


def test_predict_takes_the_derivative_as_part_of_the_state(tmp_path: Path) -> None:
    columns = pendulum()
    table = tmp_path / "table.csv"
    rows = np.column_stack(list(columns.values()))
    np.savetxt(table, rows, delimiter=",", header="t,a", comments="", fmt="%.17g")
    out = str(tmp_path / "run")
    arguments = ["dynamics", str(table), "--steps", "4", "--order", "2", "--out", out]
    assert CliRunner().invoke(cli, arguments).exit_code == 0
    run = CliRunner().invoke(
        cli, ["predict", out, "--initial", "a=2,a_dot=0", "--until", "10", "--points", "150"]
    )
    assert run.exit_code == 0, run.output
    assert run.stdout.startswith("t,a,a_dot\n")
    values = np.loadtxt(run.stdout.splitlines(), delimiter=",", skiprows=1)
    assert np.abs(values[:, 1] - columns["a"]).max() < 1e-5


def test_an_order_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UsageError, match="order=3"):
        solve_dynamics(pendulum(), order=3)
