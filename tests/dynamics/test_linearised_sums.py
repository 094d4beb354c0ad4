"""Sums of terms chosen by the trajectories around a system that is not the true one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.integrate import solve_ivp

from physdiffuser.dynamics.attempts import prepare
from physdiffuser.dynamics.options import DynamicsOptions
from physdiffuser.dynamics.search.linearised import linearised_sums
from physdiffuser.dynamics.search.selection import Selector
from physdiffuser.dynamics.search.terms import products, with_signed_squares
from physdiffuser.dynamics.trajectories.reading import TrajectoryRequest, read_trajectories
from physdiffuser.expressions import Parameter, Variable, parse, to_text
from physdiffuser.expressions.tree import mul


def test_a_cubic_spring_is_found_beside_a_linear_one() -> None:
    times = np.linspace(0.0, 15.0, 150)

    def rates(time: float, z: npt.NDArray[np.float64]) -> list[float]:
        return [z[1], -1.2 * z[0] - 0.5 * z[0] ** 3 - 0.2 * z[1]]

    path = solve_ivp(rates, (0, 15), [1.6, 0.0], t_eval=times, rtol=1e-9).y
    noisy = path + 0.03 * np.random.default_rng(2).standard_normal(path.shape)
    table = read_trajectories({"t": times, "x": noisy[0], "v": noisy[1]}, TrajectoryRequest())
    selector = Selector(prepare(table, DynamicsOptions()), lambda: False)
    linear = (Variable(1), mul(Parameter(0), Variable(0)))
    fitted = selector.fit(linear, [np.zeros(0), np.array([-2.0])], selector.first)
    terms = products(2, 3)
    segments = selector.segments(fitted.intervals)
    every, few = linearised_sums(
        fitted.skeletons, fitted.fit, segments, 1, terms, [range(len(terms)), range(3)]
    )
    pairs = [one for one in every if len(one[0]) == 3]
    chosen, factors, square = min(pairs, key=lambda one: one[2])
    assert {to_text(term, ["x", "v"]) for term in chosen} == {"x", "v", "x**3"}
    found = dict(zip((to_text(term, ["x", "v"]) for term in chosen), factors, strict=True))
    assert abs(found["x"] + 1.2) < 0.15 and abs(found["x**3"] + 0.5) < 0.1
    assert square < 0.7 * fitted.fit.chi_square
    assert all(term in terms[:3] for one in few for term in one[0])


def test_squares_are_compared_with_squares_that_keep_the_sign() -> None:
    names = ["x", "y"]
    for text, expected in (
        ("1.6 - 0.6*y**2 - sin(x)", ["1.6 - 0.6*(y*abs(y)) - sin(x)"]),
        ("x**2 + 2*y**2", ["x*abs(x) + 2*y**2", "x**2 + 2*(y*abs(y))"]),
        ("y*abs(y)", ["y**2"]),
        ("x**3 - x", []),
    ):
        assert [to_text(one, names) for one in with_signed_squares(parse(text, names))] == expected
