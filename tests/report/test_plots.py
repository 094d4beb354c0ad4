"""The picture of a fit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from solutions import equation, fitted, solution

from physdiffuser.core.solution import sample_fit_points

ROOT = Path(__file__).resolve().parents[2]
LAZY = (
    "import sys; import physdiffuser.cli.shared.run;"
    "import physdiffuser.report.runfolder, physdiffuser.report.predictions;"
    "import physdiffuser.report.text.terminal;"
    "import physdiffuser.report.export.exports, physdiffuser.report.export.functions;"
    "heavy = {'matplotlib', 'torch', 'sympy', 'pandas', 'sklearn', 'scipy.optimize'} & set(sys.modules);"
    "sys.exit(', '.join(sorted(heavy)) or 0)"
)


def test_nothing_heavy_is_imported_before_it_is_needed() -> None:
    done = subprocess.run([sys.executable, "-c", LAZY], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_same_fit_gives_the_same_picture() -> None:
    from physdiffuser.report.plots import fit_png

    first = fit_png(solution())
    assert first.startswith(b"\x89PNG\r\n")
    assert first == fit_png(solution())
    assert first != fit_png(solution(target="U"))


@pytest.mark.parametrize("target", ["$\\frac{", "a_b^c", "θ", "\x1b[31m", "x" * 500, "100 %", "$", "\\"])
def test_any_name_can_be_drawn(target: str) -> None:
    from physdiffuser.report.plots import fit_png

    assert fit_png(solution(fitted(), target=target))


@pytest.mark.parametrize(
    "prediction",
    [
        np.full(5, np.nan),
        np.zeros(5),
        np.array([1.0, np.inf, 3.0, np.nan, 1e300]),
        np.geomspace(1e-30, 1e30, 5),
    ],
)
def test_any_numbers_can_be_drawn(prediction: np.ndarray) -> None:
    from physdiffuser.report.plots import fit_png

    points = sample_fit_points(np.geomspace(1e-30, 1e30, 5), prediction, np.zeros(5, dtype=bool))
    assert fit_png(solution(fit_points=points))


def test_no_formula_is_no_picture() -> None:
    from physdiffuser.report.plots import fit_png

    with pytest.raises(ValueError, match="no plot"):
        fit_png(solution(equation("a"), fit_points=None))


def test_a_sample_keeps_the_worst_rows_and_the_extremes() -> None:
    rows = 100_000
    truth = np.linspace(1.0, 2.0, rows)
    prediction = truth.copy()
    prediction[[17, 4242, 77_777]] += 5.0
    prediction[1234] = np.nan
    points = sample_fit_points(truth, prediction, np.zeros(rows, dtype=bool), limit=1000)
    assert points.truth.size <= 1000
    assert points.rows == rows
    assert np.count_nonzero(points.prediction > 3.0) == 3
    assert np.isnan(points.prediction).any()
    assert {points.truth.min(), points.truth.max()} == {1.0, 2.0}
    small = sample_fit_points(truth[:10], prediction[:10], np.zeros(10, dtype=bool))
    assert small.truth.size == 10
