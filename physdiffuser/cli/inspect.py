"""`physdiffuser inspect`: look inside the learned generators."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from physdiffuser.cli.process import messages
from physdiffuser.cli.process.stdout import reserved_stdout
from physdiffuser.cli.shared.options import FiniteNumber, Names, WholeNumber, table_options
from physdiffuser.errors import UsageError

if TYPE_CHECKING:
    from physdiffuser.inspection.page import Report

_SUITES = ("fsred", "tiers", "ood", "dev", "textbook")


@click.command(short_help="Look inside the learned generators.")
@click.argument("table", required=False)
@click.option("--equation", metavar="ID", help="A law of a suite, by id or name, instead of a table.")
@click.option(
    "--suite",
    type=click.Choice(_SUITES),
    metavar="NAME",
    help="A suite, for statistics over its laws, instead of a table.",
)
@click.option(
    "--sample",
    type=WholeNumber(2),
    default=10,
    metavar="N",
    show_default=True,
    help="Number of laws that are drawn from --suite.",
)
@click.option("--target", metavar="COLUMN", help="Column to explain; by default the last one.")
@click.option(
    "--inputs", type=Names(), metavar="A,B", help="Columns that may explain it; by default all others."
)
@table_options
@click.option("--columns", type=Names(), metavar="A,B", help="The two columns on which rows are drawn.")
@click.option("--attention", metavar="NAME", help="Attention variant of the weights; by default standard.")
@click.option(
    "--rows", type=WholeNumber(4), metavar="N", help="Rows of the table drawn from a law; 200 by default."
)
@click.option(
    "--noise", type=FiniteNumber(least=0), metavar="SIGMA", help="Relative noise on a law's target."
)
@click.option(
    "--remask",
    type=FiniteNumber(least=0),
    metavar="P",
    help="Share of the revealed tokens that the sampler may mask again.",
)
@click.option(
    "--trajectories",
    type=WholeNumber(1, 4096),
    metavar="N",
    help="Formulas sampled by diffusion: by default 64, and 8 for each law of --suite.",
)
@click.option("--seed", type=WholeNumber(0), default=0, metavar="N", show_default=True, help="Random seed.")
@click.option(
    "--dpi",
    type=WholeNumber(50, 600),
    default=300,
    metavar="N",
    show_default=True,
    help="Resolution of the PNG files.",
)
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR", help="Folder; by default a fresh one in runs/."
)
@click.option("--quiet", is_flag=True, help="No progress and no notes on stderr; warnings stay.")
@reserved_stdout()
def inspect(
    table: str | None,
    equation: str | None,
    suite: str | None,
    out: Path | None,
    quiet: bool,
    **options: Any,
) -> None:
    """Show what the networks do with TABLE, with a law (--equation) or over many laws (--suite).

    Writes inspection.html, the same pictures as PNG, and inspection.json. TABLE is a file, or - for
    standard input.
    """
    _check(table, equation, suite, options)
    from physdiffuser.inspection.page import fresh_name, write
    from physdiffuser.io.output_folder import check_writable

    subject = table or equation or suite or ""
    folder = out if out is not None else fresh_name("stdin" if subject == "-" else Path(subject).name)
    check_writable(folder)
    report = _report(table, equation, suite, options, quiet)
    paths = write(report, folder)
    messages.output(f"{paths[0]}\n")
    if not quiet:
        messages.note(f"{len(report.pictures)} pictures beside it, and their numbers in inspection.json")


def _check(table: str | None, equation: str | None, suite: str | None, options: dict[str, Any]) -> None:
    """Refuse what contradicts itself, before anything is read."""
    given = [
        name for name, value in (("TABLE", table), ("--equation", equation), ("--suite", suite)) if value
    ]
    if len(given) != 1:
        what = f"not {' and '.join(given)}" if given else "none was given"
        raise UsageError(f"name one thing to look at: TABLE, --equation ID or --suite NAME; {what}.")
    of_tables = ("target", "inputs", "encoding", "delimiter", "header", "thousands")
    meant = {
        "TABLE": (*of_tables, "units_row", "columns", "remask"),
        "--equation": ("columns", "rows", "noise", "remask"),
        "--suite": ("rows", "noise"),
    }
    for name in sorted(
        {option for options_of in meant.values() for option in options_of} - set(meant[given[0]])
    ):
        if options[name] not in (None, False):
            raise UsageError(f"--{name.replace('_', '-')} says nothing about {given[0]}; leave it out.")
    if options["remask"] is not None and options["remask"] > 1:
        raise UsageError(f"--remask {options['remask']:g}: a share lies between 0 and 1.")
    if options["columns"] is not None and len(options["columns"]) != 2:
        raise UsageError(f"--columns: rows are drawn on two columns, not {len(options['columns'])}.")


def _report(
    table: str | None, equation: str | None, suite: str | None, options: dict[str, Any], quiet: bool
) -> Report:
    from physdiffuser.inspection.subjects import find_columns, find_law, from_law, from_table, sample_suite

    # What the user may have mistyped is looked up before torch is imported.
    rows, noise, seed = options["rows"] or 200, options["noise"] or 0.0, options["seed"]
    command = shlex.join(["physdiffuser", *sys.argv[1:]])
    pair = None
    subject = None
    laws = sample_suite(suite, options["sample"]) if suite is not None else ()
    if table is not None:
        named = ("target", "inputs", "encoding", "delimiter", "header", "thousands", "units_row")
        subject, warnings = from_table(table, {name: options[name] for name in named})
        for warning in warnings:
            messages.warning(warning)
    elif equation is not None:
        subject = from_law(find_law(equation), rows=rows, noise=noise, seed=seed)
    if subject is not None and options["columns"] is not None:
        first, second = find_columns((*subject.names, subject.target_name), options["columns"])
        pair = (first, second)

    from physdiffuser.inspection.networks import open_networks

    networks = open_networks(options["attention"])
    if not networks.trained:
        messages.warning(f"these weights are untrained: {networks.label}")
    from physdiffuser.inspection.reports import Settings, inspect_suite, inspect_table

    trajectories = options["trajectories"] or (64 if suite is None else 8)
    with _Progress(quiet) as progress:
        settings = Settings(seed, trajectories, options["dpi"], command, progress.say)
        if subject is not None:
            return inspect_table(networks, subject, settings, pair=pair, remask=options["remask"])
        assert suite is not None
        return inspect_suite(networks, suite, laws, settings, rows=rows, noise=noise)


class _Progress:
    """A line on a terminal that says what is being done; silent elsewhere."""

    def __init__(self, quiet: bool) -> None:
        self.shown = not quiet and sys.stderr.isatty()

    def __enter__(self) -> _Progress:
        return self

    def say(self, text: str) -> None:
        """Replace the line."""
        if self.shown:
            click.echo(f"\r\x1b[K{messages.one_line(text)}", nl=False, err=True)

    def __exit__(self, *exception: object) -> None:
        if self.shown:
            click.echo("\r\x1b[K", nl=False, err=True)
