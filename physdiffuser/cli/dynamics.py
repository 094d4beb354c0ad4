"""`physdiffuser dynamics`: from a table of trajectories to differential equations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from physdiffuser.cli.process import messages
from physdiffuser.cli.process.stdout import reserved_stdout
from physdiffuser.cli.shared.options import FiniteNumber, Names, WholeNumber, table_options


@click.command()
@click.pass_context
@click.argument("table")
@click.option("--time-column", metavar="COLUMN", help="Column of the time; by default the first one.")
@click.option("--states", type=Names(), metavar="A,B", help="State variables; by default all other columns.")
@click.option(
    "--inputs",
    type=Names(),
    metavar="A,B",
    help="Known inputs that drive the system; between rows they are interpolated.",
)
@click.option("--runs", metavar="COLUMN", help="Column with the number of the run that a row belongs to.")
@click.option(
    "--order",
    type=click.Choice(["1", "2", "auto"]),
    default="auto",
    metavar="N",
    show_default=True,
    help="Order of the equations: 1, or 2 where only positions were measured; auto: both are tried.",
)
@table_options
@click.option(
    "--time",
    type=FiniteNumber(above=0),
    metavar="SECONDS",
    help="Time limit; 60 unless --steps is given.",
)
@click.option(
    "--steps", type=WholeNumber(1), metavar="N", help="Limit in steps of the search for each equation."
)
@click.option("--jobs", type=WholeNumber(1), metavar="N", help="Processes; by default one for each core.")
@click.option("--seed", type=WholeNumber(0), default=0, metavar="N", show_default=True, help="Random seed.")
@click.option(
    "--generators", type=Names(), metavar="A,B", help="Generators to use instead of the default ones."
)
@click.option("--operators", type=Names(), metavar="A,B", help="Operators that may occur: add,mul,sin,...")
@click.option(
    "--max-complexity",
    type=WholeNumber(1),
    default=40,
    metavar="N",
    show_default=True,
    help="Complexity of the largest right-hand side.",
)
@click.option("--units", metavar="FILE", help="JSON or YAML file with the unit of each column.")
@click.option("--constants", metavar="g=9.81", help="Known constants that may occur.")
@click.option(
    "--noise-model",
    type=click.Choice(["auto", "constant", "relative"]),
    default="auto",
    metavar="NAME",
    help="How errors depend on the states: constant, relative; auto: chosen with the law.",
)
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR", help="Run folder; by default one under runs/."
)
@click.option("--no-plugins", is_flag=True, help="Use only what ships with physdiffuser.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
@click.option("--quiet", is_flag=True, help="No notes on stderr; warnings stay.")
@reserved_stdout()
def dynamics(
    context: click.Context,
    /,
    table: str,
    out: Path | None,
    no_plugins: bool,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> int:
    """Find the differential equations behind the trajectories in TABLE (a file, or - for standard input).

    The report goes to stdout. A run folder keeps result.json and report.html.
    """
    from contextlib import ExitStack

    from physdiffuser.cli.shared.run import open_folder, terminal_style
    from physdiffuser.dynamics.report.document import dynamics_document
    from physdiffuser.dynamics.report.page import dynamics_html
    from physdiffuser.dynamics.report.terminal import render_dynamics
    from physdiffuser.dynamics.solve import solve_dynamics
    from physdiffuser.report.documents.json_document import document_text

    options["inputs"] = options["inputs"] or ()
    options["order"] = "auto" if options["order"] == "auto" else int(options["order"])
    with ExitStack() as stack:
        folder = open_folder(table, out, as_json)
        if folder is not None:
            stack.enter_context(folder)
        solution = solve_dynamics(table, plugins=not no_plugins, **options)
        content = dynamics_document(solution)
        if folder is not None:
            folder.save_result(content)
            folder.save_page(dynamics_html(solution))
        for topic, text in solution.notes.items():
            if not quiet:
                messages.note(f"{topic}: {text}")
        for text in solution.warnings:
            messages.warning(text)
        if as_json:
            messages.output(document_text(content))
        else:
            messages.output(render_dynamics(solution, terminal_style()))
        if folder is not None and not quiet:
            messages.note(f"saved in {folder.path}")
    return 0
