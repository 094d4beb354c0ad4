"""Parts of the page as HTML, made of the templates, charts and colours of the report."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from physdiffuser.app.comparison import Compared, Comparison
from physdiffuser.app.jobs import ACTIVE, Run
from physdiffuser.core.solution import Equation, Solution
from physdiffuser.expressions.printing.mathml import name_mathml
from physdiffuser.io.display import visible
from physdiffuser.report.html.evidence import names_with_target
from physdiffuser.report.html.page import Row, formulas_script, page_style, table_row, template_environment
from physdiffuser.report.html.pictures import front_chart
from physdiffuser.report.text.group_table import group_head, group_rows, shared_constants

if TYPE_CHECKING:
    from jinja2 import Environment

_HERE = Path(__file__).parent
_LIMIT = 20_000
ROLES = (
    ("target", "to be explained"),
    ("input", "may explain it"),
    ("group", "divides into groups"),
    ("weights", "weight 1/σ²"),
    ("errors", "error σ of the target"),
    ("unused", "not used"),
)


class Pin(NamedTuple):
    """A pinned formula, the row of the Pareto table that it is, and its figures; None where it has none."""

    text: str
    row: Row | None
    equation: Equation | None
    shown: str


@cache
def _environment() -> Environment:
    return template_environment(_HERE / "templates")


def index_page(token: str, table: str, limit: int) -> str:
    """The page without any table."""
    return _environment().get_template("index.html").render(token=token, table=table, limit=limit)


def style() -> str:
    """The colours and parts of the report, and what only this page has."""
    return page_style() + (_HERE / "static" / "app.css").read_text(encoding="utf-8")


def script() -> str:
    """The page's script."""
    return formulas_script() + (_HERE / "static" / "app.js").read_text(encoding="utf-8")


def setup(content: dict[str, Any]) -> str:
    """How a table was read."""
    return _environment().get_template("setup.html").render(**content, roles=ROLES)


def panel(
    run: Run, solution: Solution | None, number: int | None, pinned: Callable[[str], Compared | None]
) -> str:
    """The law of a run, its fit and the Pareto table.

    Parameters
    ----------
    number
        The row that is shown, from 1.
    pinned
        Fits a pinned formula to the table; None where that is not possible.
    """
    template = _environment().get_template("panel.html")
    if solution is None or solution.best is None or not solution.pareto:
        return template.render(solution=None, nothing=_nothing(run))
    with np.errstate(all="ignore"):
        rows = [table_row(solution, row, place) for place, row in enumerate(solution.pareto, start=1)]
    best = next((row for row in rows if row.chosen), rows[-1])
    selected = run.record.marks[-1].selected if run.has_result else None
    pins = [_pin(text, rows, pinned) for text in run.record.marks[-1].pins]
    wanted = number or selected or best.number
    shown = rows[wanted - 1] if wanted <= len(rows) else best
    return template.render(
        solution=solution,
        final=run.has_result,
        rows=rows,
        best=best,
        shown=_shown(shown, pins),
        selected=selected,
        headline=visible(f"{solution.target} = {shown.text}", _LIMIT),
        target_mathml=name_mathml(names_with_target(solution)[-1]),
        front=front_chart(solution, [row.short_text for row in rows]),
        pins=pins,
        alike=run.has_result and solution.fit_rows is None,
        group_head=group_head(solution, shown.equation),
        group_rows=group_rows(shown.equation),
        group_sentence="" if solution.groups is None else shared_constants(solution, shown.equation),
    )


def _pin(text: str, rows: list[Row], pinned: Callable[[str], Compared | None]) -> Pin:
    row = next((row for row in rows if row.text == text), None)
    if row is not None:
        return Pin(text, row, row.equation, "")
    found = pinned(text)
    if found is None:
        return Pin(text, None, None, "")
    # What it looks like with its constants, where they were free.
    return Pin(text, None, found.law, "" if found.text == text else found.text)


def comparison(both: tuple[Compared, Compared], found: Comparison) -> str:
    """Two laws side by side."""
    return _environment().get_template("comparison.html").render(both=both, found=found)


def _shown(row: Row, pins: list[Pin]) -> dict[str, Any]:
    return {
        "number": row.number,
        "equation": row.equation,
        "text": row.text,
        "terms": row.terms,
        "charts": row.charts,
        "pinned": any(pin.text == row.text for pin in pins),
    }


def _nothing(run: Run) -> str:
    if run.state == "failed":
        return "The search could not begin."
    if run.state in ACTIVE:
        return "No formula yet."
    return "The search has ended without a formula."
