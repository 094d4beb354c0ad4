"""`solve` points to `dynamics` for a trajectory that no formula of the time explains."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from physdiffuser.core.solution import Equation, FitPoints, Solution
from physdiffuser.expressions import parse
from physdiffuser.report.text.dynamics_hint import dynamics_hint

FloatArray = npt.NDArray[np.float64]
TIMES = np.linspace(0.0, 20.0, 60)
VAN_DER_POL = np.sign(np.sin(TIMES)) * np.sqrt(np.abs(np.sin(TIMES)))


def solution(name: str, times: FloatArray, truth: FloatArray, prediction: FloatArray) -> Solution:
    best = Equation(parse("x", ["x"]), "x", "x", 1, 0.1, 0.9, 0.1)
    points = FitPoints(truth, prediction, np.zeros(truth.size, bool), truth.size, times[:, None])
    return Solution("y", "approximate", best, (best,), ("x",), (name,), {}, fit_points=points)


@pytest.mark.parametrize("name", ["t", "Time", "time (s)", "year", "days", "t_s"])
def test_a_trajectory_without_a_formula_gets_the_hint(name: str) -> None:
    text = dynamics_hint(solution(name, TIMES, VAN_DER_POL, np.sin(TIMES)))
    assert name in text and "physdiffuser dynamics" in text


def test_other_tables_get_none() -> None:
    rng = np.random.default_rng(0)
    wave = np.sin(TIMES) + 0.05 * rng.standard_normal(TIMES.size)
    plain = solution("t", TIMES, VAN_DER_POL, np.sin(TIMES))
    assert plain.best is not None
    for other in (
        solution("t", TIMES, wave, np.sin(TIMES)),  # a formula of the time explains it
        solution("p", TIMES, VAN_DER_POL, np.sin(TIMES)),
        solution("temperature", TIMES, VAN_DER_POL, np.sin(TIMES)),
        solution("t", rng.permutation(TIMES), VAN_DER_POL, np.sin(TIMES)),
        solution("t", TIMES, rng.standard_normal(60), np.zeros(60)),
        solution("t", TIMES[:8], VAN_DER_POL[:8], np.sin(TIMES[:8])),
        replace(plain, columns=("t", "u"), names=("t", "u")),
        replace(plain, best=replace(plain.best, verdict="verified")),
        replace(plain, fit_points=None),
    ):
        assert dynamics_hint(other) == ""
