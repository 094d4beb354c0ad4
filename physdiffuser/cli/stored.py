"""What `predict` and `export` share: a stored run, a row of its table, and where the output goes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from physdiffuser.cli.options import WholeNumber
from physdiffuser.cli.process import messages
from physdiffuser.errors import DataError, UsageError
from physdiffuser.io.display import visible

if TYPE_CHECKING:
    from physdiffuser.core.solution import Equation, Solution

Function = TypeVar("Function", bound=Callable[..., Any])


def row_option(function: Function) -> Function:
    """`--row K`, counted as the report counts."""
    option = click.option(
        "--row",
        type=WholeNumber(1),
        metavar="K",
        help="Row of the Pareto table, counted from 1; the chosen formula when not given.",
    )
    return option(function)


def load_run(run: Path) -> Solution:
    """The result of a run; loads plugins only when a formula has an operator of theirs."""
    from physdiffuser.expressions import ExpressionSyntaxError
    from physdiffuser.report.runfolder import load_solution

    try:
        return load_solution(run)
    except DataError as error:
        if not isinstance(error.__cause__, ExpressionSyntaxError):
            raise
    from physdiffuser.plugin_system.manager import load_plugins

    load_plugins()
    return load_solution(run)


def chosen_equation(solution: Solution, row: int | None, run: Path) -> Equation:
    """The row asked for, or the chosen formula.

    Raises
    ------
    UsageError
        If there is no such row.
    """
    shown = visible(str(run), 300)
    if row is None:
        if solution.best is None:
            raise UsageError(f"'{shown}' holds no formula: its search found none.")
        return solution.best
    if row > len(solution.pareto):
        raise UsageError(
            f"'{shown}' has no row {row}: the rows of its Pareto table are numbered from 1 to "
            f"{len(solution.pareto)}."
        )
    return solution.pareto[row - 1]


def write_output(text: str, out: Path | None) -> None:
    """Write to a file in one step, or to stdout."""
    if out is None:
        messages.output(text)
        return
    from physdiffuser.io.atomic import write_text_atomic

    write_text_atomic(out, text)
