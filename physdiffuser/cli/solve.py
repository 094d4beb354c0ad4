"""`physdiffuser solve`: from a table to a law."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from physdiffuser.cli.options import Constants, FiniteNumber, Names, table_options
from physdiffuser.errors import UsageError

DEFAULT_TIME = 60.0
LARGEST_SEED = 2**63 - 1


@click.command()
@click.argument("table")
@click.option("--target", metavar="COLUMN", help="Column to explain; the last one when not given.")
@click.option("--inputs", type=Names(), help="Columns that may explain it; all others when not given.")
@click.option("--weights", metavar="COLUMN", help="Column with the weight of each row, 1/sigma**2.")
@click.option("--units", metavar="FILE", help="JSON or YAML file with the unit of each column.")
@table_options
@click.option(
    "--time",
    "seconds",
    type=FiniteNumber(above=0),
    metavar="SECONDS",
    help=f"Most seconds to search; {DEFAULT_TIME:g} when neither this nor --steps is given.",
)
@click.option(
    "--steps", type=click.IntRange(min=1), help="Most steps to search: the same answer on every run."
)
@click.option(
    "--seed",
    type=click.IntRange(0, LARGEST_SEED),
    default=0,
    show_default=True,
    help="Start of everything random.",
)
@click.option("--generators", type=Names(), help="Generators to use; all when not given.")
@click.option("--attention", metavar="NAME", help="Attention variant of the learned generators.")
@click.option(
    "--device",
    type=click.Choice(["auto", "cpu", "cuda"]),
    default="auto",
    show_default=True,
    help="Where the learned generators run.",
)
@click.option(
    "--noise", type=FiniteNumber(least=0), metavar="SIGMA", help="Relative error of the target, if known."
)
@click.option("--operators", type=Names(), help="Operators a formula may contain, such as add,mul,sqrt.")
@click.option(
    "--max-complexity",
    type=click.IntRange(min=1),
    default=60,
    show_default=True,
    help="Most complex formula to consider.",
)
@click.option("--constants", type=Constants(), help="Known constants that a formula may contain.")
@click.option(
    "--loss",
    type=click.Choice(["squared", "huber"]),
    default="squared",
    show_default=True,
    help="What is minimised; huber bears outliers.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Run folder; fresh under runs/ if not given.",
)
@click.option("--resume", is_flag=True, help="Start from the formulas that an earlier run left in --out.")
@click.option("--no-plugins", is_flag=True, help="Use only what ships with physdiffuser.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
@click.option("--quiet", is_flag=True, help="No progress and no notes on stderr; warnings stay.")
def solve(
    table: str,
    seconds: float | None,
    out: Path | None,
    resume: bool,
    no_plugins: bool,
    as_json: bool,
    quiet: bool,
    **search: Any,
) -> int:
    """Find the law behind TABLE (a file, or - for standard input).

    The report goes to stdout. A run folder keeps result.json, pareto.csv and fit.png.
    """
    if resume and out is None:
        raise UsageError("--resume needs --out DIR, the run folder to go on from.")
    if search["units"] is not None and search["units_row"]:
        raise UsageError("give the units once: either --units FILE or --units-row.")
    # A budget of steps alone has no clock: the same answer on a slow machine as on a fast one.
    search["time"] = DEFAULT_TIME if seconds is None and search["steps"] is None else seconds
    search["plugins"] = not no_plugins

    from physdiffuser.cli.run import Run
    from physdiffuser.cli.stopping import Stopping

    run = Run(table, search, out=out, resume=resume, as_json=as_json, quiet=quiet)
    with Stopping(run.emergency) as stopping:
        return run.go(stopping)
