"""`physdiffuser export`: a law as code or LaTeX."""

from __future__ import annotations

from pathlib import Path

import click

from physdiffuser.cli.process.stdout import reserved_stdout
from physdiffuser.cli.stored import chosen_equation, load_run, row_option, write_output

FORMATS = ("python", "numpy", "c", "torch", "sympy", "latex")


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "format_name",
    type=click.Choice(FORMATS),
    default="python",
    show_default=True,
    help="python: a module; numpy: one function; c: C99 source; torch: a module with trainable constants; "
    "sympy: a script; latex: one line.",
)
@row_option
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Write there instead of stdout.")
@reserved_stdout()
def export(run: Path, format_name: str, row: int | None, out: Path | None) -> int:
    """Write the law found by RUN (a run folder, or its result.json) in another language."""
    from physdiffuser.report.exports import export as written
    from physdiffuser.report.exports import formula_of

    solution = load_run(run)
    equation = chosen_equation(solution, row, run)
    write_output(written(formula_of(solution, equation), format_name), out)
    return 0
