"""The system of equations as a scientist reads it in a terminal."""

from __future__ import annotations

import textwrap

from physdiffuser.core.solution import Equation
from physdiffuser.dynamics.report.solution import DynamicsSolution
from physdiffuser.expressions import to_text
from physdiffuser.io.display import visible
from physdiffuser.report.text.digits import (
    in_percent,
    r_squared,
    short,
    shown_digits,
)
from physdiffuser.report.text.style import Style

_LABEL = 11
_LIMIT = 20_000


def render_dynamics(solution: DynamicsSolution, style: Style | None = None) -> str:
    """The whole report, with a line end at the end."""
    style = style or Style()
    lines = [style.emphasise(line) for line in _system(solution)]
    lines.append("")
    lines += _simulation(solution, style)
    best = solution.equations[0].best
    if best is not None:
        verdict = "verified" if solution.is_verified else "not verified: not every check holds"
        lines += _labelled("Verdict", [verdict, *_checks(best, style)])
        if best.probability is not None:
            lines += _labelled("Odds", [f"{in_percent(best.probability)} this system"])
    lines += _constants(solution)
    for one in solution.conserved:
        shown = "shown by sympy" if one.proven else f"by the {one.source}"
        lines += _labelled("Conserved", [f"{visible(one.text, _LIMIT)} ({shown}; drift {short(one.drift)})"])
    return "\n".join(lines) + "\n"


def _system(solution: DynamicsSolution) -> list[str]:
    lines = []
    for equation in solution.equations:
        if equation.best is not None:
            text = to_text(equation.best.expression, solution.names, shown_digits(equation.best))
            lines.append(f"  {visible(equation.target, 200)} = {visible(text, _LIMIT)}")
    named = [c for c in solution.columns if c.alias != c.name]
    return lines + [f"    {column.alias} is the column '{column.shown}'" for column in named]


def _simulation(solution: DynamicsSolution, style: Style) -> list[str]:
    found = solution.simulation
    squared = style.sign("R²", "R^2")

    def shown(values: object) -> str:
        assert isinstance(values, dict)
        return ", ".join(
            f"{visible(name)} {'-' if value is None else r_squared(value)}" for name, value in values.items()
        )

    lines = _labelled("Simulated", [f"{squared} of the fitted rows: {shown(dict(found.r2_fitted))}"])
    if found.held_out:
        lines += _labelled("Held out", [f"{squared} of {found.held_out}: {shown(dict(found.r2_held_out))}"])
    if found.diverged:
        lines += _labelled("", ["a simulation blew up before the last time"])
    if found.horizon is not None and found.lyapunov_exponent is not None:
        followed = (
            f"chaotic: followed for {found.horizon:.1f} Lyapunov times of {1 / found.lyapunov_exponent:.3g}"
        )
        lines += _labelled("Horizon", [followed])
    return lines


def _checks(best: Equation, style: Style) -> list[str]:
    width = None if style.width is None else max(style.width - _LABEL - 2, 30)
    lines: list[str] = []
    for text in best.verification:
        sentence = "- " + visible(text, _LIMIT)
        lines += [sentence] if width is None else textwrap.wrap(sentence, width, subsequent_indent="  ")
    return lines


def _constants(solution: DynamicsSolution) -> list[str]:
    rows = [
        f"{visible(constant.text)} in {visible(equation.target, 200)}"
        for equation in solution.equations
        if equation.best is not None
        for constant in equation.best.constants
        if not constant.is_set and constant.sigma is not None
    ]
    note = "(in brackets: the standard error of the last digits)"
    return _labelled("Constants", [*rows, note]) if rows else []


def _labelled(label: str, lines: list[str]) -> list[str]:
    first, *rest = lines
    return [f"  {label:<{_LABEL}}{first}", *(" " * (_LABEL + 2) + line for line in rest)]
