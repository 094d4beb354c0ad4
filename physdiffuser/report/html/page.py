"""All parts of the page put together. jinja2 is imported only when a page is made."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from physdiffuser.core.solution import Equation, Solution
from physdiffuser.errors import UsageError
from physdiffuser.expressions import to_text
from physdiffuser.expressions.printing.latex import to_latex
from physdiffuser.expressions.printing.mathml import mathml_terms, name_mathml, to_mathml
from physdiffuser.expressions.tree import variables
from physdiffuser.io.display import counted, visible
from physdiffuser.report.documents.json_document import is_chosen
from physdiffuser.report.export.exports import export, formula_of
from physdiffuser.report.html.charts import Chart
from physdiffuser.report.html.evidence import checks_of, names_with_target, steps_of
from physdiffuser.report.html.extrapolation import extrapolation_warnings
from physdiffuser.report.html.pictures import column_chart, fit_charts, front_chart
from physdiffuser.report.html.sensitivity import sensitivities
from physdiffuser.report.html.suggestions import suggestion_charts
from physdiffuser.report.text.digits import (
    aligned,
    constant_note,
    half_width,
    in_percent,
    r_squared,
    short,
    shown_digits,
    table_digits,
    with_uncertainty,
)
from physdiffuser.report.text.group_table import group_head, group_rows, shared_constants
from physdiffuser.report.text.suggested import suggestion_table

if TYPE_CHECKING:
    from jinja2 import Environment, Template

_TEMPLATES = Path(__file__).parent / "templates"
_STEP_DIGITS = 5
_LIMIT = 20_000
_MOST_CHARTS = 6
_LANGUAGES = (("python", "Python"), ("c", "C"), ("latex", "LaTeX"), ("torch", "PyTorch"))


@dataclass(frozen=True)
class Row:
    """A row of the Pareto table as the page shows it."""

    number: int
    equation: Equation
    chosen: bool
    short_text: str
    text: str
    latex: str
    terms: Sequence[str]
    charts: Sequence[Chart]
    constants: Sequence[ConstantRow]


class ConstantRow(NamedTuple):
    """A row of the table of constants, as text."""

    name: str
    value: str
    note: str
    interval: str
    odds: str


def report_html(solution: Solution) -> str:
    """The report as one page that needs nothing else: no network, no other file.

    Parameters
    ----------
    solution
        As `solve` returns it. Read back from `result.json` it has no rows, and the page no charts.

    Returns
    -------
    HTML, with the style, the script and all pictures inside. A policy in its head lets the browser run this
    script and no other, and load nothing.

    Raises
    ------
    ValueError
        If there is no formula to report.
    """
    if solution.best is None:
        raise ValueError("a solution without a formula has no report")
    script = page_script()
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    # Numbers near the ends of double precision overflow inside the axes, which costs ticks and no more.
    with np.errstate(all="ignore"):
        content = _content(solution, solution.best)
    return template("report.html").render(**content, style=page_style(), script=script, script_digest=digest)


@cache
def template(name: str) -> Template:
    """A template of this folder, compiled once."""
    return template_environment().get_template(name)


@cache
def template_environment(*folders: Path) -> Environment:
    """The templates of this folder and, before them, of others that are made of its parts."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader([*folders, _TEMPLATES]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # The project's own files, and MathML that escapes every name: all else is escaped by the template.
    environment.filters["own"] = Markup
    environment.filters["visible"] = lambda text: visible(str(text), _LIMIT)
    environment.filters["short"] = short
    environment.filters["aligned"] = aligned
    environment.filters["in_percent"] = in_percent
    environment.filters["r_squared"] = r_squared
    environment.filters["counted"] = counted
    return environment


@cache
def page_script() -> str:
    """The script of a report, which starts with what draws long formulas smaller."""
    return formulas_script() + own_file("report.js")


def formulas_script() -> str:
    """What draws long formulas smaller: `fitFormulas()` does so once more."""
    return own_file("formulas.js")


def page_style() -> str:
    """The style of a page of its own, with the font of its formulas."""
    font = base64.b64encode((_TEMPLATES.parent / "fonts" / "formulas.woff2").read_bytes()).decode("ascii")
    face = f"src: url(data:font/woff2;base64,{font}) format('woff2')"
    return f"@font-face {{ font-family: 'physdiffuser formulas'; {face}; }}\n{own_file('report.css')}"


def own_file(name: str) -> str:
    """The text of a file beside the templates."""
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _content(solution: Solution, best: Equation) -> dict[str, Any]:
    rows = [table_row(solution, row, number) for number, row in enumerate(solution.pareto, start=1)]
    # A stored run whose chosen formula is not among the rows still has a page.
    chosen = next((row for row in rows if row.chosen), None) or table_row(solution, best, 0)
    points = solution.fit_points
    table = None if points is None else points.inputs
    moved = [] if table is None else sensitivities(best.expression, table)
    own = 0 if solution.groups is None else len(solution.groups.constants)
    used = [column for column in sorted(variables(best.expression)) if column < len(solution.names) - own]
    along = [column_chart(solution, best.expression, column) for column in used[:_MOST_CHARTS]]
    target = names_with_target(solution)[-1]
    return {
        "solution": solution,
        "best": best,
        "target": visible(solution.target, 200),
        "target_mathml": name_mathml(target),
        "headline": visible(f"{solution.target} = {chosen.text}", _LIMIT),
        "rows": rows,
        "chosen": chosen,
        "front": front_chart(solution, [row.short_text for row in rows]) if rows else None,
        "steps": _steps(solution),
        "checks": checks_of(best),
        "group_head": group_head(solution, best),
        "group_rows": group_rows(best),
        "group_sentence": "" if solution.groups is None else shared_constants(solution, best),
        "renamed": renamed_columns(solution, used),
        "sensitivities": moved,
        "columns": [visible(name, 200) for name in solution.columns],
        "used": used,
        "along": [chart for chart in along if chart is not None],
        "extrapolation": extrapolation_warnings(solution, best),
        "summaries": solution.summaries,
        **_suggestions(solution),
        "languages": _languages(solution, best),
        # Where the target passes 0 a relative error is a share of almost nothing.
        "one_sign": not any(
            one.name == solution.target and one.low <= 0 <= one.high for one in solution.summaries
        ),
    }


def _suggestions(solution: Solution) -> dict[str, Any]:
    """What to measure next; nothing unless it was asked for."""
    found = solution.next_measurements
    if found is None:
        return {"suggested": None, "differences": []}
    return {"suggested": suggestion_table(solution, found), "differences": suggestion_charts(solution, found)}


def table_row(solution: Solution, equation: Equation, number: int) -> Row:
    """A formula as the page shows it; `number` counts from 1."""
    names, digits = solution.names, shown_digits(equation)
    return Row(
        number=number,
        equation=equation,
        chosen=is_chosen(equation, solution.best),
        short_text=visible(to_text(equation.expression, names, table_digits(equation)), _LIMIT),
        text=visible(to_text(equation.expression, names, digits), _LIMIT),
        latex=visible(to_latex(equation.expression, names, digits), _LIMIT),
        terms=mathml_terms(equation.expression, names, digits),
        charts=fit_charts(solution, equation, number),
        constants=_constants(equation),
    )


def _constants(equation: Equation) -> list[ConstantRow]:
    rows = []
    for constant in equation.constants:
        name, value, width = visible(constant.name), visible(constant.text), half_width(constant)
        number, interval = short(constant.value, 6), ""
        if constant.is_set and number != value:
            value = f"{value} = {number}"
        if width is not None and constant.low is not None and constant.high is not None:
            low, high = (with_uncertainty(end, width)[0] for end in (constant.low, constant.high))
            interval = f"{low} to {high}"
        rows.append(
            ConstantRow(name, value, visible(constant_note(constant)), interval, short(constant.odds, 1))
        )
    return rows


def _steps(solution: Solution) -> list[dict[str, Any]]:
    names = names_with_target(solution)
    steps = []
    for step in steps_of(solution):
        terms: list[str] = []
        if step.left is not None and step.right is not None:
            first, *rest = mathml_terms(step.right, names, _STEP_DIGITS)
            terms = [f"{to_mathml(step.left, names, _STEP_DIGITS)}<mo>=</mo>{first}", *rest]
        steps.append({"text": visible(step.text, _LIMIT), "terms": terms, "evidence": step.evidence})
    return steps


def renamed_columns(solution: Solution, used: Sequence[int]) -> list[tuple[str, str]]:
    """Names of the formula that are not those of the table."""
    pairs = [(solution.names[column], solution.columns[column]) for column in used]
    pairs.append((names_with_target(solution)[-1], solution.target))
    return [(alias, visible(name, 200)) for alias, name in pairs if alias != name]


def _languages(solution: Solution, best: Equation) -> list[tuple[str, str, str]]:
    """Format, its name, and the formula in it; without those that an operator has no form in."""
    formula = formula_of(solution, best)
    found = []
    for format_name, language in _LANGUAGES:
        try:
            found.append((format_name, language, export(formula, format_name).rstrip("\n")))
        except UsageError:
            continue
    return found
