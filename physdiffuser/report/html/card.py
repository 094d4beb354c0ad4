"""What a notebook shows of a solution: the law, its evidence, the Pareto table and the fit.

It is made of the parts and the style of the page (`page.py`). A notebook has one document for all outputs,
so the style is confined to the card by nesting, and every identifier begins with that of the card.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from physdiffuser.core.solution import Equation, Solution
from physdiffuser.expressions.printing.mathml import mathml_terms, name_mathml
from physdiffuser.expressions.tree import variables
from physdiffuser.io.display import visible
from physdiffuser.report.html.charts import axis_for
from physdiffuser.report.html.evidence import names_with_target
from physdiffuser.report.html.page import Row, own_file, renamed_columns, table_row, template
from physdiffuser.report.text.digits import aligned, shown_digits

_LIMIT = 20_000
_WIDTH, _HEIGHT, _MARGIN = 140, 28, 5
# The card's own rules, after those of the page, inside the same block.
_OWN = """
& { background: var(--paper); color: var(--ink); padding: .8rem 1rem; border-radius: 8px; max-width: 62rem;
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
& table { color: inherit; }
& td, & th { text-align: left; background: none; }
& .front-table tbody tr { cursor: auto; }
& .sparkline { vertical-align: middle; margin-left: .4rem; }
& .sparkline .front { fill: none; stroke: var(--muted); stroke-width: 1.2; }
& .sparkline .dot { fill: var(--muted); }
& .sparkline .chosen { fill: var(--accent); }
"""


@dataclass(frozen=True)
class Sparkline:
    """The errors of the rows, drawn as small as a word.

    Attributes
    ----------
    path
        The line as an SVG path.
    dots
        Place of each row, and whether it is the chosen one.
    label
        For those who do not see it.
    """

    path: str
    dots: Sequence[tuple[float, float, bool]]
    label: str
    width: int = _WIDTH
    height: int = _HEIGHT


def solution_card(solution: Solution) -> str:
    """HTML of a solution with a formula, to stand inside another document.

    It holds its style and its picture, no script, and loads nothing; it is light or dark as the reader's
    system is.

    Raises
    ------
    ValueError
        If there is no formula to show.
    """
    best = solution.best
    if best is None:
        raise ValueError("a solution without a formula has no card")
    with np.errstate(all="ignore"):
        rows = [table_row(solution, row, number) for number, row in enumerate(solution.pareto, start=1)]
        chosen = next((row for row in rows if row.chosen), None) or table_row(solution, best, 0)
    headline = visible(f"{solution.target} = {chosen.text}", _LIMIT)
    return template("card.html").render(
        solution=solution,
        best=best,
        headline=headline,
        target_mathml=name_mathml(names_with_target(solution)[-1]),
        terms=chosen.terms,
        renamed=renamed_columns(solution, sorted(variables(best.expression))),
        rows=rows,
        spark=sparkline(rows),
        charts=chosen.charts,
        style=_style(),
        id=_identifier(headline),
    )


def equation_card(equation: Equation) -> str:
    """HTML of one formula with its figures, to stand inside another document."""
    text = visible(str(equation), _LIMIT)
    return template("card.html").render(
        solution=None,
        best=equation,
        headline=text,
        target_mathml="",
        terms=mathml_terms(equation.expression, equation.names, shown_digits(equation)),
        style=_style(),
        id=_identifier(text),
    )


def sparkline(rows: Sequence[Row]) -> Sparkline:
    """Rms error of each row, from left to right; on a logarithmic scale where it spans decades."""
    errors = np.array([row.equation.rmse for row in rows], dtype=float)
    positive = errors[np.isfinite(errors) & (errors > 0)]
    floor = float(positive.min()) / 10 if positive.size else 1.0
    heights = np.where(errors > 0, errors, floor)
    x = np.linspace(_MARGIN, _WIDTH - _MARGIN, len(rows)) if len(rows) > 1 else np.array([_WIDTH / 2])
    y = axis_for(heights, _HEIGHT - _MARGIN, _MARGIN, log=True, decades=0.5).place(heights)
    dots = [
        (round(float(across), 1), float(down), row.chosen)
        for across, down, row in zip(x, y, rows, strict=True)
    ]
    path = "".join(f"{'L' if number else 'M'}{a:g} {b:g}" for number, (a, b, _) in enumerate(dots))
    label = f"rms error from {aligned(float(errors[0]))} to {aligned(float(errors[-1]))}" if rows else ""
    return Sparkline(path, dots, label)


@cache
def _style() -> str:
    """The page's style, for this card alone."""
    return f".physdiffuser {{\n{own_file('report.css').replace(':root', '&')}{_OWN}}}"


def _identifier(text: str) -> str:
    return f"physdiffuser-{hashlib.sha256(text.encode('utf-8')).hexdigest()[:10]}"
