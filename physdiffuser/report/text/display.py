"""How a solution and a formula show themselves: `print`, the prompt, a notebook, LaTeX."""

from __future__ import annotations

from functools import singledispatch
from os import PathLike
from typing import TYPE_CHECKING, Any

from physdiffuser.core.solution import Equation, Solution
from physdiffuser.errors import UsageError
from physdiffuser.expressions import to_text
from physdiffuser.expressions.printing.latex import latex_name, to_latex
from physdiffuser.io.display import counted, visible
from physdiffuser.report.text.digits import in_percent, r_squared, short, shown_digits

if TYPE_CHECKING:
    from physdiffuser.report.html.frame import Page

_LIMIT = 20_000
_SHORT = 120


@singledispatch
def as_text(shown: object) -> str:
    """What the terminal prints of a solution; the formula of an equation."""
    raise TypeError(f"{type(shown).__name__} has no text")


@as_text.register
def _(shown: Equation) -> str:
    if not shown.names:
        return shown.text
    return to_text(shown.expression, shown.names, shown_digits(shown))


@as_text.register
def _(shown: Solution) -> str:
    from physdiffuser.report.text.terminal import render

    return render(shown).rstrip("\n")


@singledispatch
def as_short_text(shown: object) -> str:
    """What the prompt shows: one line for an equation, a few for a solution."""
    raise TypeError(f"{type(shown).__name__} has no text")


@as_short_text.register
def _(shown: Equation) -> str:
    text = visible(str(shown), _SHORT)
    return f"Equation({text!r}, complexity={shown.complexity}, rmse={short(shown.rmse)})"


@as_short_text.register
def _(shown: Solution) -> str:
    target, best = visible(shown.target, _SHORT), shown.best
    table = f"{counted(shown.rows, 'row')}, {counted(len(shown.pareto), 'formula')}"
    if best is None:
        return f"Solution(no law of {target} found; {table})"
    facts = [shown.status, "verified" if best.verdict == "verified" else "not verified"]
    facts.append(f"R2 {r_squared(best.r2)}")
    if best.probability is not None and shown.status != "exact":
        facts.append(f"probability {in_percent(best.probability)}")
    law = f"  {target} = {visible(str(best), _SHORT)}"
    return f"Solution({table})\n{law}\n  {', '.join(facts)}"


@singledispatch
def as_html(shown: object) -> str | None:
    """What a notebook shows; None where there is no formula."""
    raise TypeError(f"{type(shown).__name__} has no page")


@as_html.register
def _(shown: Equation) -> str | None:
    from physdiffuser.report.html.card import equation_card

    return equation_card(shown) if shown.names else None


@as_html.register
def _(shown: Solution) -> str | None:
    from physdiffuser.report.html.card import solution_card

    return None if shown.best is None else solution_card(shown)


@singledispatch
def as_latex(shown: object) -> str | None:
    """The formula between dollars, with the digits of the report; None where there is none."""
    raise TypeError(f"{type(shown).__name__} has no LaTeX")


@as_latex.register
def _(shown: Equation) -> str | None:
    return f"$\\displaystyle {_latex(shown)}$"


@as_latex.register
def _(shown: Solution) -> str | None:
    if shown.best is None:
        return None
    return f"$\\displaystyle {latex_name(target_alias(shown))} = {_latex(shown.best)}$"


def _latex(equation: Equation) -> str:
    if not equation.names:
        return equation.latex
    return visible(to_latex(equation.expression, equation.names, shown_digits(equation)), _LIMIT)


def target_alias(solution: Solution) -> str:
    """The target's name as formulas have it."""
    from physdiffuser.report.html.evidence import names_with_target

    return names_with_target(solution)[-1]


def row_of(solution: Solution, row: int | None) -> Equation:
    """A row of the Pareto table, counted from 1; the chosen one when None.

    Raises
    ------
    UsageError
        If there is no such row.
    """
    if row is None and solution.best is not None:
        return solution.best
    if row is None or not 1 <= row <= len(solution.pareto):
        raise UsageError(
            f"equations_ has no row {row}: its rows are numbered from 1 to {len(solution.pareto)}"
            if solution.pareto
            else "the solution holds no formula"
        )
    return solution.pareto[row - 1]


def plot_of(solution: Solution, kind: str, row: int | None, axes: Any) -> Any:
    """See `physdiffuser.report.plots.plot`."""
    from physdiffuser.report.plots import plot

    return plot(solution, row_of(solution, row), kind, axes)


def page_of(solution: Solution, path: str | PathLike[str] | None) -> Page:
    """The page of a solution, written to a file if one is named."""
    from physdiffuser.io.atomic import write_text_atomic
    from physdiffuser.report.html import report_html
    from physdiffuser.report.html.frame import Page

    page = Page(report_html(solution))
    if path is not None:
        write_text_atomic(path, page)
    return page
