"""`physdiffuser solve`: from a table to a law."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import click

from physdiffuser.cli.process import messages
from physdiffuser.cli.process.stdout import reserved_stdout
from physdiffuser.cli.shared.options import (
    FiniteNumber,
    Formulas,
    Names,
    SectionedCommand,
    WholeNumber,
    table_options,
)
from physdiffuser.core.problem import NoiseModelName
from physdiffuser.errors import UsageError
from physdiffuser.options import DEFAULT_SECONDS, DEFAULTS, MAX_NEXT, SAVE_INTERVAL

_DEVICES = click.Choice(["auto", "cpu", "cuda", "cpu-torch"])
# Titles in the help, each at the option that it stands above.
_SECTIONS = {
    "target": "The table",
    "operators": "What the law may be",
    "noise": "Errors of the measurements",
    "seconds": "The search",
    "out": "The output",
}


@click.command(cls=SectionedCommand, sections=_SECTIONS)
@click.pass_context
@click.argument("table")
@click.option("--target", type=Names(), metavar="A,B", help="Column(s) to explain; by default the last one.")
@click.option(
    "--inputs", type=Names(), metavar="A,B", help="Columns that may explain it; by default all others."
)
@click.option("--weights", metavar="COLUMN", help="Column with the weight of each row, 1/sigma**2.")
@click.option(
    "--errors", metavar="COLUMN", help="Column with the standard error of each row, instead of weights."
)
@click.option(
    "--input-errors",
    metavar="X=0.01,Y=DY,Z=1%",
    help="Standard errors of inputs: a number, a column or a percentage.",
)
@click.option("--units", metavar="FILE", help="JSON or YAML file with the unit of each column.")
@table_options
@click.option(
    "--group",
    "groups",
    multiple=True,
    metavar="COLUMN",
    help="Column that divides the rows into groups with constants of their own.",
)
@click.option("--operators", type=Names(), metavar="A,B", help="Operators that may occur: add,mul,sqrt,...")
@click.option(
    "--operator",
    "defined",
    multiple=True,
    metavar="F(X)=FORMULA",
    help="Define an operator, sinc(x)=sin(x)/x; may be repeated.",
)
@click.option("--forbid", multiple=True, metavar="F(G)", help="No G inside F, as sin(sin); may be repeated.")
@click.option(
    "--constants", metavar="G=6.674e-11", help="Known constants that may occur; auto: those of physics."
)
@click.option(
    "--guess",
    "initial",
    type=Formulas(),
    multiple=True,
    metavar="FORMULA",
    help="Formula to start from, A*exp(-b*t), or @FILE with one on each line; may be repeated.",
)
@click.option("--template", metavar="FORMULA", help="Form of the law, x*t + f(y), with f to be found.")
@click.option(
    "--known",
    metavar="FORMULA",
    help="Known part of the law, to which an unknown function is added; with a * before it, multiplied.",
)
@click.option("--constraints", metavar="FILE", help="YAML file with what the law must satisfy.")
@click.option("--auto-origin", is_flag=True, help="Try columns far from 0, such as years, with a shift.")
@click.option("--complexity", metavar="EXP=3,X=2", help="Complexity that operators and columns have.")
@click.option(
    "--max-complexity",
    type=WholeNumber(1),
    default=DEFAULTS.max_complexity,
    metavar="N",
    show_default=True,
    help="Complexity of the largest formula to consider.",
)
@click.option(
    "--noise", type=FiniteNumber(least=0), metavar="SIGMA", help="Relative error of the target, 0.01 for 1 %."
)
@click.option(
    "--noise-model",
    type=click.Choice(get_args(NoiseModelName)),
    default=DEFAULTS.noise_model,
    metavar="NAME",
    help="Errors of the target: constant, relative, poisson, mixed, robust; auto: chosen with the law.",
)
@click.option("--scatter", type=click.Choice(["auto", "constant", "relative"]), hidden=True)
@click.option(
    "--loss",
    default=DEFAULTS.loss,
    metavar="NAME",
    help="squared, robust, huber, absolute, quantile=0.5, logistic; auto: squared, or robust for outliers.",
)
@click.option(
    "--time",
    "seconds",
    type=FiniteNumber(above=0),
    metavar="SECONDS",
    help=f"Time limit, start and reading included; {DEFAULT_SECONDS:g} unless --steps is given.",
)
@click.option(
    "--steps",
    type=WholeNumber(1),
    metavar="N",
    help="Limit in steps of the search: the same answer on every run, however fast the machine is.",
)
@click.option(
    "--seed", type=WholeNumber(0), default=DEFAULTS.seed, metavar="N", show_default=True, help="Random seed."
)
@click.option(
    "--generators", type=Names(), metavar="A,B", help="Generators to use instead of the default ones."
)
@click.option("--attention", metavar="NAME", help="Attention variant of the learned generators.")
@click.option(
    "--device",
    type=_DEVICES,
    default=DEFAULTS.device,
    metavar="NAME",
    help="cuda: all dense work on a GPU; cpu: none; auto: that of the networks, where there is one.",
)
@click.option("--jobs", type=WholeNumber(1), metavar="N", help="Processes; by default one for each core.")
@click.option("--scheduler", metavar="ADDRESS", help="Dask cluster: tcp://HOST:PORT, or local:N.")
@click.option("--no-plugins", is_flag=True, help="Use only what ships with physdiffuser.")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR", help="Run folder; by default one under runs/."
)
@click.option(
    "--save-every",
    type=FiniteNumber(least=0.1),
    default=SAVE_INTERVAL,
    metavar="SECONDS",
    show_default=True,
    help="How often the formulas so far are saved in the run folder.",
)
@click.option("--resume", is_flag=True, help="Start from what an earlier run left in --out.")
@click.option(
    "--suggest-next",
    type=WholeNumber(0, MAX_NEXT),
    default=DEFAULTS.suggest_next,
    metavar="N",
    help="Suggest N measurements that tell the remaining laws apart.",
)
@click.option(
    "--suggest-range", metavar="X=0:10,...", help="Where to measure; by default the table's ranges."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
@click.option("--ascii", "ascii_only", is_flag=True, help="No signs beyond ASCII in the report.")
@click.option("--quiet", is_flag=True, help="No progress and no notes on stderr; warnings stay.")
@reserved_stdout()
def solve(
    context: click.Context,
    /,
    table: str,
    seconds: float | None,
    out: Path | None,
    save_every: float,
    resume: bool,
    no_plugins: bool,
    as_json: bool,
    ascii_only: bool,
    quiet: bool,
    **search: Any,
) -> int:
    """Find the law behind TABLE (a file, or - for standard input).

    The report goes to stdout. A run folder keeps report.html, result.json, pareto.csv and fit.png.
    """
    if resume and out is None:
        raise UsageError("--resume needs --out DIR, the run folder to go on from.")
    if search["units"] is not None and search["units_row"]:
        raise UsageError("give the units once: either --units FILE or --units-row.")
    # A budget of steps alone has no clock: the same answer on a slow machine as on a fast one.
    search["time"] = DEFAULTS.changed(time=seconds, steps=search["steps"]).time_limit
    search["plugins"] = not no_plugins
    defined = search.pop("defined")
    if defined:
        search["operators"] = [*(search["operators"] or ()), *defined]
    search["initial"] = tuple(text for texts in search["initial"] for text in texts)
    scatter = search.pop("scatter")
    if scatter is not None:
        messages.warning("--scatter is now called --noise-model; the old name will be removed")
        search["noise_model"] = scatter

    targets = search.pop("target") or (None,)
    several = len(targets) > 1
    search["targets" if several else "target"] = targets if several else targets[0]

    from physdiffuser.cli.process.stopping import Stopping
    from physdiffuser.cli.shared.run import Run
    from physdiffuser.cli.targets import TargetsRun

    started = context.find_object(float)  # of the program, where it is one
    kind = TargetsRun if several else Run
    run = kind(table, search, out=out, resume=resume, as_json=as_json, quiet=quiet, started=started)
    run.save_every, run.ascii_only = save_every, ascii_only
    with Stopping(run.emergency) as stopping:
        code = run.go(stopping)
        stopping.leave_if_stopped()
        return code
