"""Conserved quantities of known equations, and of equations that were found."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from physdiffuser.dynamics.conservation.derivatives import differentiate
from physdiffuser.dynamics.conservation.observed import observed_quantities
from physdiffuser.dynamics.conservation.search import conserved_quantities, drift
from physdiffuser.dynamics.report.document import dynamics_document
from physdiffuser.dynamics.report.terminal import render_dynamics
from physdiffuser.dynamics.solve import solve_dynamics
from physdiffuser.expressions import evaluate, parse


@pytest.mark.parametrize(
    ("names", "equations", "quantities"),
    [
        ("x v", ["v", "-3*sin(x)"], ["v**2/2 - 3*cos(x)"]),
        ("x v", ["v", "-6/5*x - x**3/2"], ["v**2/2 + 3/5*x**2 + x**4/8"]),
        ("x v", ["v", "-3*sin(x) - v/5"], []),
        ("a b", ["a - 2/5*a*b", "3/10*a*b - b"], ["a + 4/3*b - 10/3*log(a) - 10/3*log(b)"]),
        ("s i r", ["-s*i", "s*i - i/2", "i/2"], ["s + i + r", "s + i - 1/2*log(s)"]),
        (
            "x y u v",
            ["u", "v", "-x/(x**2 + y**2)**1.5", "-y/(x**2 + y**2)**1.5"],
            ["x*v - y*u", "u**2/2 + v**2/2 - 1/sqrt(x**2 + y**2)"],
        ),
        ("x", ["-x"], []),
        ("x", ["-x + t"], []),
    ],
)
def test_conserved_quantities_of_known_systems(
    names: str, equations: list[str], quantities: list[str]
) -> None:
    order = [*names.split(), "t"]
    rng = np.random.default_rng(0)
    states = rng.uniform(0.2, 2.0, (200, len(order) - 1))
    found = conserved_quantities([parse(equation, order) for equation in equations], states)
    assert len(found) == len(quantities)
    assert all(one.proven for one in found)
    values = [evaluate(one.expression, states) for one in found]
    for text in quantities:
        # The same up to a factor and an offset.
        truth = evaluate(parse(text, order), states)
        assert any(abs(np.corrcoef(truth, value)[0, 1]) > 1 - 1e-12 for value in values), text


def test_derivatives_agree_with_differences() -> None:
    names = ["x", "y"]
    rng = np.random.default_rng(1)
    nodes = rng.uniform(0.3, 1.5, (50, 2))
    for text in ("x**3*sin(2*x*y)/y", "exp(-x)*log(y) + sqrt(x)", "tanh(x) - cosh(y*x)", "abs(x - 2)*x**1.5"):
        expression = parse(text, names)
        for index in range(2):
            slope = differentiate(expression, index)
            assert slope is not None
            step = 1e-6 * np.eye(2)[index]
            numeric = (evaluate(expression, nodes + step) - evaluate(expression, nodes - step)) / 2e-6
            assert np.allclose(evaluate(slope, nodes), numeric, rtol=1e-6, atol=1e-7)


def test_the_answer_states_what_is_conserved() -> None:
    times = np.linspace(0.0, 12.0, 150)
    path = solve_ivp(
        lambda t, z: [z[1], -1.2 * z[0] - 0.5 * z[0] ** 3],
        (0, 12),
        [1.4, 0.2],
        t_eval=times,
        rtol=1e-11,
        atol=1e-12,
    ).y
    found = solve_dynamics({"t": times, "x": path[0], "v": path[1]}, steps=3)
    [one] = found.conserved
    assert one.proven and one.source == "equations" and one.drift < 1e-6
    [row] = dynamics_document(found)["conserved"]
    assert row["expression"] == one.text and row["proven"] is True
    assert "Conserved" in render_dynamics(found)


def test_trajectories_show_what_nearly_symmetric_equations_do_not() -> None:
    names = ["x", "y", "u", "v", "t"]
    flow = [parse(text, names) for text in ("u", "v", "-1.31*x", "-1.29*y")]
    times = np.linspace(0.0, 6.0, 80)
    runs = []
    for number in range(2):
        start = np.array([[1.0, 0.2, 0.1, 0.8], [0.4, -0.9, 1.1, 0.3]])[number]
        rotation = np.sqrt(1.3) * times[:, None]
        position = start[:2] * np.cos(rotation) + start[2:] / np.sqrt(1.3) * np.sin(rotation)
        velocity = start[2:] * np.cos(rotation) - start[:2] * np.sqrt(1.3) * np.sin(rotation)
        runs.append(np.concatenate([position, velocity], axis=1))
    noise = np.random.default_rng(2).standard_normal((2, 80, 4)) * 1e-3
    noisy = [run + own for run, own in zip(runs, noise, strict=True)]
    errors = [np.full_like(run, 1e-3) for run in runs]
    found = observed_quantities(flow, noisy, errors, 3)
    assert found and not any(one.proven for one in found)
    assert all(drift(one.expression, runs) < 0.02 for one in found)
    assert observed_quantities(flow, noisy[:1], errors[:1], 3) == []
