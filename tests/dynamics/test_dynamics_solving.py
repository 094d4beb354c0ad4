"""Systems found from their trajectories, through the function and the command."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from click.testing import CliRunner
from scipy.integrate import solve_ivp

from physdiffuser.cli.app import cli
from physdiffuser.dynamics.solve import solve_dynamics
from physdiffuser.errors import UsageError

FloatArray = npt.NDArray[np.float64]


def trajectory(
    rates: Callable[[float, FloatArray], list[float]], initial: list[float], end: float, points: int = 150
) -> tuple[FloatArray, FloatArray]:
    times = np.linspace(0.0, end, points)
    found = solve_ivp(rates, (0.0, end), initial, t_eval=times, rtol=1e-11, atol=1e-12, method="DOP853")
    return times, found.y.T


def predator_and_prey() -> dict[str, FloatArray]:
    times, states = trajectory(
        lambda t, z: [z[0] * (1.1 - 0.4 * z[1]), z[1] * (0.3 * z[0] - 0.9)], [2.0, 1.0], 12.0
    )
    return {"t": times, "prey": states[:, 0], "predators": states[:, 1]}


def test_predator_and_prey_without_noise_are_exact_and_verified() -> None:
    found = solve_dynamics(predator_and_prey(), steps=4)
    prey, predators = (equation.best for equation in found.equations)
    assert prey is not None and predators is not None
    nodes = np.array([[1.7, 0.6, 0.0], [3.1, 2.2, 0.0]])
    from physdiffuser.expressions import evaluate

    assert np.allclose(evaluate(prey.expression, nodes), nodes[:, 0] * (1.1 - 0.4 * nodes[:, 1]), rtol=1e-12)
    assert all(constant.exact for constant in (*prey.constants, *predators.constants))
    assert found.is_verified
    assert found.simulation.held_out == "the last fifth"
    held_out = found.simulation.r2_held_out["prey"]
    assert held_out is not None and held_out > 0.999999


def test_constants_of_a_noisy_pendulum_lie_within_their_intervals() -> None:
    rng = np.random.default_rng(3)
    times, states = trajectory(lambda t, z: [z[1], -1.7 * np.sin(z[0]) - 0.2 * z[1]], [1.5, 0.0], 12.0)
    states = states + 0.01 * rng.standard_normal(states.shape)
    found = solve_dynamics({"t": times, "a": states[:, 0], "w": states[:, 1]}, steps=4)
    second = found.equations[1].best
    assert second is not None
    from physdiffuser.expressions import evaluate

    nodes = np.column_stack([np.linspace(-1.2, 1.2, 9), np.linspace(1.0, -1.0, 9), np.zeros(9)])
    truth = -1.7 * np.sin(nodes[:, 0]) - 0.2 * nodes[:, 1]
    assert np.abs(evaluate(second.expression, nodes) - truth).max() < 0.03


def test_the_solution_simulates_and_converts() -> None:
    found = solve_dynamics(predator_and_prey(), steps=4)
    times = np.linspace(0.0, 3.0, 7)
    by_name = found.simulate({"prey": 2.0, "predators": 1.0}, times)
    assert np.allclose(by_name, found.simulate([2.0, 1.0], times))
    expected = trajectory(
        lambda t, z: [z[0] * (1.1 - 0.4 * z[1]), z[1] * (0.3 * z[0] - 0.9)], [2.0, 1.0], 3.0, 7
    )[1]
    assert np.abs(by_name - expected).max() < 1e-6
    with pytest.raises(UsageError, match="predators"):
        found.simulate({"prey": 2.0}, times)
    import sympy

    equation = found.to_sympy()[0]
    assert isinstance(equation.lhs, sympy.Derivative)
    assert r"\frac{d prey}" in found.latex().replace(r"\mathrm{prey}", "prey").replace(r"\text{prey}", "prey")


def test_the_command_prints_one_document(tmp_path: Path) -> None:
    columns = predator_and_prey()
    path = tmp_path / "table.csv"
    rows = np.column_stack(list(columns.values()))
    np.savetxt(path, rows, delimiter=",", header=",".join(columns), comments="", fmt="%.17g")
    run = CliRunner().invoke(cli, ["dynamics", str(path), "--steps", "4", "--json"])
    assert run.exit_code == 0, run.output
    content = json.loads(run.stdout)
    assert content["kind"] == "dynamics" and content["schema"] == 2
    assert content["states"] == ["prey", "predators"]
    first = content["equations"][0]
    assert first["state"] == "prey" and first["order"] == 1 and first["verdict"] == "verified"
    assert first["pareto"] and content["simulation"]["diverged"] is False


def test_predict_simulates_a_stored_run(tmp_path: Path) -> None:
    columns = predator_and_prey()
    path = tmp_path / "table.csv"
    rows = np.column_stack(list(columns.values()))
    np.savetxt(path, rows, delimiter=",", header=",".join(columns), comments="", fmt="%.17g")
    out = str(tmp_path / "run")
    assert CliRunner().invoke(cli, ["dynamics", str(path), "--steps", "4", "--out", out]).exit_code == 0
    arguments = ["predict", out, "--initial", "prey=2,predators=1", "--until", "12", "--points", "150"]
    run = CliRunner().invoke(cli, arguments)
    assert run.exit_code == 0, run.output
    assert run.stdout.startswith("t,prey,predators\n")
    values = np.loadtxt(run.stdout.splitlines(), delimiter=",", skiprows=1)
    assert np.abs(values - rows).max() < 1e-5
    starts = tmp_path / "starts.csv"
    starts.write_text("note,predators,prey\na,1,2\nb,2,3\n")
    run = CliRunner().invoke(cli, ["predict", out, str(starts), "--until", "12", "--points", "150"])
    assert run.exit_code == 0, run.output
    assert run.stdout.startswith("run,t,prey,predators\n")
    both = np.loadtxt(run.stdout.splitlines(), delimiter=",", skiprows=1)
    np.testing.assert_array_equal(both[:150, 1:], values)
    np.testing.assert_array_equal(both[150], [2.0, 0.0, 3.0, 2.0])
    for wrong, words in (
        (["--initial", "wolf=2", "--until", "3"], "wolf"),
        (["--initial", "prey=2", "--until", "3"], "predators"),
        (["--until", "3"], "--initial"),
        ([str(path), "--initial", "prey=2,predators=1", "--until", "3"], "TABLE"),
        ([], "TABLE"),
    ):
        refused = CliRunner().invoke(cli, ["predict", out, *wrong], standalone_mode=False)
        assert isinstance(refused.exception, UsageError)
        assert words in str(refused.exception)


@pytest.mark.slow
def test_equal_steps_and_seed_give_equal_answers() -> None:
    rng = np.random.default_rng(5)
    times, states = trajectory(lambda t, z: [0.8 * z[0] * (1 - z[0] / 5)], [0.3], 10.0, 60)
    table = {"t": times, "x": states[:, 0] * (1 + 0.01 * rng.standard_normal(60))}
    first, second = (solve_dynamics(table, steps=3) for _ in range(2))
    assert first.equations[0].best is not None and second.equations[0].best is not None
    assert first.equations[0].best.text == second.equations[0].best.text
    assert first.simulation == second.simulation
