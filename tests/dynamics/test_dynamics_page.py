"""Fixed points, and the report page of a system."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from physdiffuser.cli.app import cli
from physdiffuser.dynamics.phase.fixed_points import fixed_points
from physdiffuser.dynamics.report.page import dynamics_html
from physdiffuser.dynamics.solve import solve_dynamics
from physdiffuser.expressions import parse


@pytest.mark.parametrize(
    ("equations", "expected"),
    [
        (["a - 2/5*a*b", "3/10*a*b - b"], {(0.0, 0.0): "saddle", (10 / 3, 2.5): "centre (to first order)"}),
        (["b", "-a - b/5"], {(0.0, 0.0): "stable focus"}),
        (
            ["b", "a - a**3 - b/2"],
            {(-1.0, 0.0): "stable focus", (0.0, 0.0): "saddle", (1.0, 0.0): "stable focus"},
        ),
        (["-2*a", "-3*b"], {(0.0, 0.0): "stable node"}),
        (["a + 1", "b + sin(t)"], {}),
    ],
)
def test_fixed_points_and_their_stability(
    equations: list[str], expected: dict[tuple[float, ...], str]
) -> None:
    rng = np.random.default_rng(0)
    states = rng.uniform([-1.5, -1.5], [4.0, 3.0], (100, 2))
    found = fixed_points([parse(text, ["a", "b", "t"]) for text in equations], states)
    assert len(found) == len(expected)
    for state, kind in expected.items():
        assert any(np.allclose(one.state, state, atol=1e-6) and one.kind == kind for one in found), state


def test_the_command_leaves_a_page_with_all_parts(tmp_path: Path) -> None:
    times = np.linspace(0.0, 10.0, 100)
    rng = np.random.default_rng(0)
    states = np.column_stack([np.cos(1.5 * times), -np.sin(1.5 * times)])
    states = states + 0.01 * rng.standard_normal(states.shape)
    table = tmp_path / "table.csv"
    rows = np.column_stack([times, states])
    np.savetxt(table, rows, delimiter=",", header="t,a<b>,b", comments="", fmt="%.17g")
    out = tmp_path / "run"
    arguments = ["dynamics", str(table), "--steps", "2", "--order", "1", "--out", str(out)]
    run = CliRunner().invoke(cli, arguments)
    assert run.exit_code == 0, run.output
    page = (out / "report.html").read_text(encoding="utf-8")
    parts = ("95 % band", "held out", "Phase portrait", "Residuals", "Jacobian", "ModelingToolkit")
    for part in parts:
        assert part in page, part
    assert "a<b>" not in page and "a&lt;b&gt;" in page
    assert not re.search(r"(src|href)=\"https?:", page)


def test_a_page_of_more_than_two_states_has_no_portrait() -> None:
    times = np.linspace(0.0, 8.0, 100)
    found = solve_dynamics(
        {"t": times, "a": np.cos(times), "b": -np.sin(times), "c": np.exp(-0.3 * times)}, steps=2, order=1
    )
    page = dynamics_html(found)
    assert "Phase portrait" not in page and "Fixed points" in page
    assert "<iframe" in found._repr_html_()
