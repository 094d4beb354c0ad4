"""What forms of right-hand sides cost, and what that changes."""

from __future__ import annotations

import numpy as np
import pytest

from physdiffuser.dynamics.search.form_code import form_nats, system_nats
from physdiffuser.dynamics.solve import solve_dynamics
from physdiffuser.expressions import Expression, Number, evaluate, parse
from physdiffuser.expressions.tree import substitute


@pytest.mark.parametrize(
    ("usual", "rare"),
    [
        ("1.1*x - 0.8*x**3", "0.2*y**x"),
        ("2.2*x - x**2 - 1.3*x*y", "1.5 - 1.3*x*y - 0.35/x"),
        ("1.8*y - 0.6*x*y", "0.14/(1.4*y + 0.3 - x)"),
        ("0.5*x/(0.7 + x)", "0.5*y**0.25*x"),
        ("-3.1*sin(x)", "-3.1*sin(0.8*x)"),
        ("-3.1*sin(x)", "-3.1*sin(sin(x))"),
        ("9.8 - 0.1*x**2", "9.8*cos(0.1*x)"),
        ("1.1*x - 0.8*x**3", "1.1*x - 0.8*sin(x)"),
        ("1.1*(x - y)", "1.1*sin(x - y)"),
        ("0.4 - 0.5*sqrt(x)", "0.4 - 0.5*x**0.43"),
        ("x*exp(y)", "x*log(x + y)"),
        ("x/(x**2 + y**2)**(3/2)", "x/(x**2 + y)**(3/2)"),
    ],
)
def test_usual_rates_cost_less_than_rare_ones(usual: str, rare: str) -> None:
    assert _nats(usual) < _nats(rare)


def _nats(text: str) -> float:
    """Of a formula whose decimal numbers are fitted."""

    def fitted(node: Expression) -> Expression | None:
        return (
            Number(float(node.value)) if isinstance(node, Number) and node.value != int(node.value) else None
        )

    return form_nats(substitute(parse(text, ["x", "y"]), fitted), 2)


def test_constants_cost_nothing_here() -> None:
    assert _nats("3.7*x") == _nats("x")


def test_a_part_that_another_equation_holds_costs_less() -> None:
    shared, other, apart = (parse(text, ["x", "y"]) for text in ("y - x**2*y", "x - x**2*y", "x - x**3*y"))
    assert system_nats((shared, other), 2) < form_nats(shared, 2) + form_nats(other, 2)
    assert system_nats((shared, other), 2) < system_nats((shared, apart), 2)


def test_competing_species_with_noise_are_products_of_the_states() -> None:
    """Quotients and powers follow short trajectories as well, but are no usual rates."""
    from scipy.integrate import solve_ivp

    times, rng, parts = np.linspace(0.0, 8.0, 100), np.random.default_rng(7), []
    for number, start in enumerate(([0.4, 0.3], [2.2, 2.0])):
        path = solve_ivp(
            lambda t, z: [z[0] * (2.2 - z[0] - 1.3 * z[1]), z[1] * (1.8 - 0.6 * z[0] - z[1])],
            (0.0, 8.0),
            start,
            t_eval=times,
            rtol=1e-9,
        ).y
        noisy = path * (1.0 + 0.01 * rng.standard_normal(path.shape))
        parts.append(np.column_stack([np.full(times.size, float(number)), times, *noisy]))
    table = dict(zip(("run", "t", "x", "y"), np.concatenate(parts).T, strict=True))
    found = solve_dynamics(table, time_column="t", runs="run", steps=2, order=1)
    x, y = wide = np.random.default_rng(0).uniform(0.3, 2.0, (2, 50))
    nodes = np.column_stack([*wide, np.zeros(50)])
    truth = x * (2.2 - x - 1.3 * y), y * (1.8 - 0.6 * x - y)
    for expression, rate in zip(found.expressions, truth, strict=True):
        assert np.abs(evaluate(expression, nodes) - rate).max() < 0.2
