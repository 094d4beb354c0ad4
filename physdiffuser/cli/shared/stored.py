"""What `predict` and `export` share: a stored run, a row of its table, and where the output goes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from physdiffuser.cli.process import messages
from physdiffuser.cli.shared.options import WholeNumber
from physdiffuser.errors import DataError, UsageError
from physdiffuser.io.display import listed, visible

if TYPE_CHECKING:
    from physdiffuser.core.solution import Equation, Solution
    from physdiffuser.dynamics.report.solution import DynamicsSolution

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


def target_option(function: Function) -> Function:
    """`--target NAME`, for runs of several targets."""
    option = click.option(
        "--target", metavar="NAME", help="Which law of a run of several targets; its column of the table."
    )
    return option(function)


def load_runs(run: Path, target: str | None = None) -> dict[str, Solution]:
    """The results of a run by target; loads plugins only when a formula has an operator of theirs.

    Parameters
    ----------
    run
        A run folder or its `result.json`.
    target
        The only target wanted; all of them when None.

    Raises
    ------
    UsageError
        If the run has no such target.
    """
    from physdiffuser.data.selection import did_you_mean
    from physdiffuser.expressions import ExpressionSyntaxError
    from physdiffuser.report.runfolder import load_solutions

    try:
        found = load_solutions(run)
    except DataError as error:
        if not isinstance(error.__cause__, ExpressionSyntaxError):
            raise
        from physdiffuser.plugin_system.manager import load_plugins

        load_plugins()
        found = load_solutions(run)
    if target is None:
        return found
    if target not in found:
        raise UsageError(
            f"--target: '{visible(str(run), 300)}' has no target '{visible(target)}'. "
            f"{did_you_mean(list(found), target, 'targets')}"
        )
    return {target: found[target]}


def load_run(run: Path, target: str | None = None) -> Solution:
    """The result of a run for one target.

    Raises
    ------
    UsageError
        If it has several and none is named, or not the one that is named.
    """
    found = load_runs(run, target)
    if len(found) > 1:
        raise UsageError(
            f"'{visible(str(run), 300)}' holds the laws of several targets: name one with --target, of "
            f"{listed(list(found))}."
        )
    return next(iter(found.values()))


def system_of(run: Path) -> DynamicsSolution | None:
    """The equations of a run of `dynamics`; None for a run of another kind."""
    from physdiffuser.dynamics.report.document import KIND, solution_from_dynamics
    from physdiffuser.report.runfolder import load_result

    content, source = load_result(run)
    kind = content.get("kind") if isinstance(content, dict) else None
    return solution_from_dynamics(content, source) if kind == KIND else None


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
