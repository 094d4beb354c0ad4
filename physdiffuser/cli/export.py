"""`physdiffuser export`: a law as code or LaTeX."""

from __future__ import annotations

from pathlib import Path

import click

from physdiffuser.cli.process.stdout import reserved_stdout
from physdiffuser.cli.shared.stored import (
    chosen_equation,
    load_run,
    row_option,
    system_of,
    target_option,
    write_output,
)
from physdiffuser.errors import UsageError

FORMATS = ("python", "numpy", "c", "torch", "julia", "sympy", "latex")


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "format_name",
    type=click.Choice(FORMATS),
    default="python",
    show_default=True,
    help="python: a module; numpy: one function; c: C99 source; torch: a module with trainable constants; "
    "julia: ModelingToolkit, for runs of 'dynamics'; sympy: a script; latex: one line.",
)
@row_option
@target_option
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Write there instead of stdout.")
@reserved_stdout()
def export(run: Path, format_name: str, row: int | None, target: str | None, out: Path | None) -> int:
    """Write the law found by RUN (a run folder, or its result.json) in another language."""
    from physdiffuser.report.export.exports import export as written
    from physdiffuser.report.export.exports import formula_of

    system = system_of(run)
    if system is not None:
        from physdiffuser.dynamics.report.exports import export_system

        if row is not None or target is not None:
            raise UsageError(
                "--row and --target: a run of 'dynamics' holds one system of equations. Leave them out."
            )
        write_output(export_system(system, format_name), out)
        return 0
    if format_name == "julia":
        raise UsageError("--format julia is for runs of 'dynamics'; choose another format.")
    solution = load_run(run, target)
    equation = chosen_equation(solution, row, run)
    write_output(written(formula_of(solution, equation), format_name), out)
    return 0
