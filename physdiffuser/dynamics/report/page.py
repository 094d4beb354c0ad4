"""The report of a system of equations as one web page. jinja2 is imported only when a page is made."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import numpy as np

from physdiffuser.dynamics.phase.fixed_points import FixedPoint, fixed_points
from physdiffuser.dynamics.report.pictures import phase_portrait, residual_charts, trajectory_charts
from physdiffuser.dynamics.report.solution import DynamicsSolution
from physdiffuser.errors import UsageError
from physdiffuser.expressions import to_text
from physdiffuser.expressions.printing.mathml import mathml_terms, name_mathml
from physdiffuser.report.html.page import page_script, page_style, table_row, template
from physdiffuser.report.text.digits import short, shown_digits

_LANGUAGES = (
    ("python", "Python, for solve_ivp"),
    ("julia", "Julia, ModelingToolkit"),
    ("torch", "PyTorch"),
    ("c", "C"),
    ("latex", "LaTeX"),
)


def dynamics_html(solution: DynamicsSolution) -> str:
    """The report as one page that needs nothing else: no network, no other file.

    Parameters
    ----------
    solution
        As `solve_dynamics` returns it. Read back from `result.json` it has no runs, and the page no charts.
    """
    script = page_script()
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    with np.errstate(all="ignore"):
        content = _content(solution)
    return template("dynamics.html").render(
        **content, style=page_style(), script=script, script_digest=digest
    )


def _content(solution: DynamicsSolution) -> dict[str, Any]:
    points = _fixed_points(solution)
    best = [one.best for one in solution.equations if one.best is not None]
    texts = [
        f"{one.target} = {to_text(row.expression, solution.names, shown_digits(row))}"
        for one, row in zip(solution.equations, best, strict=True)
    ]
    rows = [table_row(one, row, 0) for one, row in zip(solution.equations, best, strict=True)]
    return {
        "solution": solution,
        "best": best[0],
        "texts": texts,
        "equations": [
            (_left(solution, place), mathml_terms(row.expression, solution.names, shown_digits(row)))
            for place, row in enumerate(best)
        ],
        "derivations": [(one.target, one.derivation) for one in solution.equations],
        "constants_of": [
            (one.target, row.constants) for one, row in zip(solution.equations, rows, strict=True)
        ],
        "renamed": [
            (column.alias, column.name) for column in solution.columns if column.alias != column.name
        ],
        "checks": list(zip(best[0].verification, best[0].check_states, strict=False)),
        "trajectories": trajectory_charts(solution),
        "residuals": residual_charts(solution),
        "portrait": phase_portrait(solution, points),
        "fixed_points": [_point_row(point) for point in points],
        "phase": [column.name for column in solution.phase],
        "languages": [
            (name, language, text) for name, language in _LANGUAGES if (text := _export(solution, name))
        ],
    }


def _fixed_points(solution: DynamicsSolution) -> list[FixedPoint]:
    if not solution.runs:
        return []
    return fixed_points(
        solution.flow, np.concatenate([run.simulated for run in solution.runs]), solution.seed
    )


def _left(solution: DynamicsSolution, place: int) -> str:
    """`dx/dt` in MathML."""
    state, time = name_mathml(solution.states[place].alias), name_mathml(solution.time.alias)
    if solution.order == 1:
        return f"<mfrac><mrow><mi>d</mi>{state}</mrow><mrow><mi>d</mi>{time}</mrow></mfrac>"
    above = f"<mrow><msup><mi>d</mi><mn>2</mn></msup>{state}</mrow>"
    below = f"<mrow><mi>d</mi><msup>{time}<mn>2</mn></msup></mrow>"
    return f"<mfrac>{above}{below}</mfrac>"


def _point_row(point: FixedPoint) -> tuple[list[str], str, str]:
    """Coordinates, eigenvalues and kind, as text."""
    values = [_complex(complex(value)) for value in point.eigenvalues if np.isfinite(value)]
    return [short(float(value), 4) for value in point.state], ", ".join(values) or "–", point.kind


def _complex(value: complex) -> str:
    size = abs(value) or 1.0
    real = 0.0 if abs(value.real) < 1e-6 * size else value.real
    if abs(value.imag) < 1e-6 * size:
        return short(real, 3)
    sign = "+" if value.imag > 0 else "−"
    front = f"{short(real, 3)} {sign} " if real else ("" if value.imag > 0 else "−")
    return f"{front}{short(abs(value.imag), 3)}i"


def _export(solution: DynamicsSolution, name: str) -> str:
    try:
        return solution.export(name)
    except UsageError:
        return ""  # an operator without a form in the language
