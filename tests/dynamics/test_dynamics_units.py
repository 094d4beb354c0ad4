"""States and times in SI units, very small or very large; constants with few digits; needless terms."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from scipy.integrate import solve_ivp

from physdiffuser import solve_dynamics
from physdiffuser.dynamics.search.terms import shorter_sums
from physdiffuser.dynamics.trajectories.reading import TrajectoryRequest, read_trajectories
from physdiffuser.dynamics.trajectories.units import RateUnits, with_units
from physdiffuser.errors import UsageError
from physdiffuser.expressions import evaluate, parse, to_text
from physdiffuser.expressions.tree import bind, free_constants


@pytest.mark.parametrize(("state", "time"), [(1e-9, 1e-12), (1e12, 1e12)])
def test_units_do_not_change_the_verdict(state: float, time: float) -> None:
    def rates(t: float, s: npt.NDArray[np.float64]) -> list[float]:
        return [-0.9 * s[0] * s[1], 0.9 * s[0] * s[1] - 0.5 * s[1]]

    t = np.linspace(0.0, 5.0, 120)
    a, b = solve_ivp(rates, (0, 5), [3.0, 0.1], t_eval=t, rtol=1e-11, atol=1e-13, method="DOP853").y
    found = solve_dynamics({"t": t * time, "a": a * state, "b": b * state}, steps=4)
    assert found.is_verified
    factor = list(free_constants(found.expressions[0])[1]) or [0.9 / (state * time)]
    assert abs(factor[0]) == pytest.approx(0.9 / (state * time), rel=1e-9)
    assert not any("sin" in one.text for one in found.conserved)


def test_decimals_of_exact_trajectories_are_exact() -> None:
    def rates(t: float, s: npt.NDArray[np.float64]) -> list[float]:
        return [s[1], -0.8 * s[0] - 0.15 * s[0] ** 3 - 0.12 * s[1]]

    t = np.linspace(0.0, 20.0, 200)
    x = solve_ivp(rates, (0, 20), [2.0, 0.0], t_eval=t, rtol=1e-11, atol=1e-13, method="DOP853").y[0]
    found = solve_dynamics({"t": t, "x": x}, order=2, steps=2)
    best = found.equations[0].best
    assert best is not None
    assert best.text == "-0.8*x - 0.12*x_dot - 0.15*x**3"
    assert found.is_verified


def test_sums_lose_one_term_at_a_time() -> None:
    skeleton, values = free_constants(parse("1.5*x - 2.5*x**2 + 3.5*y", ["x", "y"]))
    shorter = [bind(form, list(part)) for form, part in shorter_sums(skeleton, np.array(values))]
    texts = {to_text(one, ["x", "y"]).replace(" ", "") for one in shorter}
    assert len(texts) == 3
    assert "1.5*x+3.5*y" in texts


def test_sums_inside_products_lose_terms_as_well() -> None:
    skeleton, values = free_constants(parse("x*(1.5*y - 2.5) - 3.5*y", ["x", "y"]))
    shorter = [bind(form, list(part)) for form, part in shorter_sums(skeleton, np.array(values))]
    point = np.array([[2.0, 3.0]])
    assert sorted(float(evaluate(one, point)[0]) for one in shorter) == [-15.5, -10.5, -1.5, 4.0]


def test_equations_balance_in_the_units_of_the_table() -> None:
    t = np.linspace(0.0, 3.0, 40)
    request = TrajectoryRequest(None, None, (), None)
    table = read_trajectories({"t": t, "height": 4.9 * t**2}, request)
    units = RateUnits(with_units(table, {"t": "s", "height": "m"}).second_order())
    names = ["height", "height_dot", "t"]
    falling, wrong = (
        free_constants(parse(text, names))[0]
        for text in ("9.81234 - 0.31234*height_dot**2", "9.81234*cos(height)")
    )
    assert units.balances(falling, 1)
    assert not units.balances(wrong, 1)
    assert RateUnits(table).balances(wrong, 0)
    assert "units are ignored" in with_units(table, {"t": "s"}).warnings[0]
    with pytest.raises(UsageError, match="no column 'hight'"):
        with_units(table, {"t": "s", "hight": "m"})


def test_a_table_without_dynamics_says_so() -> None:
    rng = np.random.default_rng(0)
    found = solve_dynamics({"t": np.arange(60.0), "x": rng.standard_normal(60)}, order=1, steps=1)
    assert any("shows no dynamics" in text for text in found.warnings)
    assert not found.is_verified
