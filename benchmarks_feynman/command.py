"""`physdiffuser evaluate`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from physdiffuser.cli.process import messages
from physdiffuser.cli.process.stdout import reserved_stdout
from physdiffuser.errors import NothingFoundError, UsageError

if TYPE_CHECKING:
    from benchmarks_feynman.results import Result
    from benchmarks_feynman.tasks import Settings

T = TypeVar("T")


def _list(convert: Callable[[str], T]) -> Callable[[click.Context, click.Parameter, str], tuple[T, ...]]:
    """Option callback: a list separated by commas, without repetitions."""

    def read(context: click.Context, parameter: click.Parameter, value: str) -> tuple[T, ...]:
        parts = [part.strip() for part in (value or "").split(",") if part.strip()]
        try:
            return tuple(dict.fromkeys(convert(part) for part in parts))
        except ValueError as error:
            name = parameter.opts[0]
            raise UsageError(f"{name} {value!a}: {error}; give numbers separated by commas") from error

    return read


@click.command(context_settings={"show_default": True})
@click.option(
    "--suite",
    "suites",
    default="fsred",
    callback=_list(str),
    metavar="NAME,...",
    help="fsred, tiers, ood, dev, textbook, classic, measured; or odebench, odes.",
)
@click.option(
    "--only", default="", callback=_list(str), metavar="ID,...", help="Only these laws.", show_default=False
)
@click.option(
    "--dropped",
    type=click.FloatRange(0, 0.9),
    metavar="SHARE",
    help="Differential equations: share of the points of each trajectory that are left out.",
)
@click.option(
    "--fitted",
    type=click.Choice(["both", "first"]),
    help="Differential equations: initial conditions whose trajectories are fitted; by default both.",
)
@click.option("--every", default=1, metavar="N", help="Only every N-th law of a suite.")
@click.option(
    "--noise", "noises", default="0", callback=_list(float), metavar="SIGMA,...", help="Noise levels."
)
@click.option(
    "--rows", type=click.IntRange(2), metavar="N", help="Training rows; by default those of the protocol."
)
@click.option(
    "--seed", "seeds", default="0", callback=_list(int), metavar="N,...", help="Seeds of the tables."
)
@click.option(
    "--protocol",
    type=click.Choice(["strict", "srbench"]),
    default="strict",
    help="Training rows: 1,000 (strict) or 10,000 (srbench). The criteria of both are always recorded.",
)
@click.option(
    "--time",
    "seconds",
    type=click.FloatRange(0, min_open=True),
    default=30.0,
    metavar="SECONDS",
    help="Time limit of each problem.",
)
@click.option(
    "--steps", type=click.IntRange(1), metavar="N", help="Limit in steps: runs can be repeated exactly."
)
@click.option(
    "--jobs", type=click.IntRange(1), metavar="N", help="Problems at a time; by default what the cores allow."
)
@click.option("--cores", type=click.IntRange(1), default=1, metavar="N", help="Cores for each problem.")
@click.option("--units", is_flag=True, help="Give the systems the units, where the suite has them.")
@click.option("--dummy", type=click.IntRange(0), metavar="N", help="Add columns that the law does not need.")
@click.option(
    "--generators", default="", callback=_list(str), metavar="A,B", help="As in `solve`.", show_default=False
)
@click.option("--cold", is_flag=True, help="A fresh `physdiffuser solve` per problem, start-up included.")
@click.option(
    "--peers",
    default="",
    callback=_list(str),
    metavar="NAME,...",
    help="Other systems to run as well: pyoperon, gplearn, pyeggp; for odebench and odes pysindy, pyoperon.",
    show_default=False,
)
@click.option("--peers-only", is_flag=True, help="Run the peers and not physdiffuser.")
@click.option("--snap-peers", is_flag=True, help="Set the constants of peers to exact values as our own are.")
@click.option(
    "--scheduler",
    default="local",
    metavar="ADDRESS",
    help="local, local:WORKERS (Dask, this machine), or tcp://HOST:PORT.",
)
@click.option(
    "--results",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Result file (JSON lines); by default a fresh one under runs/, none with --json.",
)
@click.option("--resume", is_flag=True, help="Go on with the result file; what it holds is not run again.")
@click.option("--no-run", is_flag=True, help="Run nothing: report what the result file holds.")
@click.option(
    "--report", type=click.Path(path_type=Path, file_okay=False), help="Folder for report.md and report.html."
)
@click.option(
    "--export",
    type=click.Path(path_type=Path, file_okay=False),
    help="Only write the tables as CSV here.",
)
@click.option(
    "--at-least", type=click.IntRange(0), metavar="N", help="Exit with 5 if fewer laws are recovered."
)
@click.option("--json", "as_json", is_flag=True, help="Print the rates as one JSON document.")
@click.option("--quiet", is_flag=True, help="No progress.")
@reserved_stdout()
# More than eight parameters and 60 lines: each option is a parameter, and each step reads some of them.
def evaluate(
    suites: tuple[str, ...],
    only: tuple[str, ...],
    dropped: float | None,
    fitted: str | None,
    every: int,
    noises: tuple[float, ...],
    rows: int | None,
    seeds: tuple[int, ...],
    protocol: str,
    seconds: float,
    steps: int | None,
    jobs: int | None,
    cores: int,
    units: bool,
    dummy: int | None,
    generators: tuple[str, ...],
    cold: bool,
    peers: tuple[str, ...],
    peers_only: bool,
    snap_peers: bool,
    scheduler: str,
    results: Path | None,
    resume: bool,
    no_run: bool,
    report: Path | None,
    export: Path | None,
    at_least: int | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Run a benchmark suite: known laws, sampled tables, and a judge of the answers.

    The suite `measured` has tables of measurements; its answers are compared with the laws of their fields.
    Every problem runs in a process of its own. Each answer is a line in the result file as soon as it is
    there; Ctrl-C keeps them, and --resume goes on. --report writes rates, curves and failures as
    Markdown and as one HTML page.
    """
    from benchmarks_feynman.executors import check_scheduler
    from benchmarks_feynman.report.printed import print_rates
    from benchmarks_feynman.results import fresh_path
    from benchmarks_feynman.running import make_executor, run_tasks
    from benchmarks_feynman.suites import select
    from benchmarks_feynman.tasks import KNOWN_SYSTEM, Settings, make_tasks

    if _are_odes(suites):
        shared = {"only": only, "every": every, "noises": noises, "seeds": seeds, "seconds": seconds}
        shared["solvers"] = peers if peers_only else (KNOWN_SYSTEM, *peers)
        _evaluate_odes(
            suites, shared, dropped or 0.0, fitted or "both", steps, results, as_json=as_json, quiet=quiet
        )
        return
    if dropped is not None or fitted is not None:
        raise UsageError("--dropped and --fitted are for suites of differential equations: odebench, odes")
    laws = select(suites or ("fsred",), only, every)
    _check_measured(laws, noises, rows, dummy)
    check_scheduler(scheduler)
    _check(seeds, noises, peers, peers_only, resume, no_run, results)
    settings = Settings(
        protocol="srbench" if protocol == "srbench" else "strict", rows=rows, dummy=dummy, time=seconds,
        steps=steps, cores=cores, units=units, cold=cold, generators=generators, snap_peers=snap_peers,
    )  # fmt: skip
    if report is not None:
        from physdiffuser.io.output_folder import check_writable

        check_writable(report, "--report")  # before hours of running
    if export is not None:
        _export(laws, export, settings, seeds, noises)
        return
    if no_run and results is not None:
        found = _read(results)
    else:
        if results is None and not as_json:
            results = fresh_path()
            messages.note(f"results go to {results}")
        systems = peers if peers_only else (KNOWN_SYSTEM, *peers)
        tasks = make_tasks(laws, systems, seeds, noises, settings)
        found = run_tasks(tasks, make_executor(scheduler, jobs, cores), results, resume=resume, quiet=quiet)
    print_rates(found, as_json)
    if report is not None:
        from benchmarks_feynman.report.render import write_report

        written = write_report(found, report)
        messages.note(f"report: {written[0]} and {written[1].name}")
    if at_least is not None:
        _guard(found, at_least)


def _are_odes(suites: tuple[str, ...]) -> bool:
    """Whether the suites are of differential equations; they are not mixed with others."""
    from benchmarks_feynman.odes.suites import SUITES

    chosen = [suite for suite in suites if suite in SUITES]
    if chosen and len(suites) > 1:
        raise UsageError(f"--suite {chosen[0]}: run suites of differential equations one at a time")
    return bool(chosen)


def _evaluate_odes(
    suites: tuple[str, ...],
    shared: dict[str, Any],
    dropped: float,
    fitted: str,
    steps: int | None,
    results: Path | None,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    from benchmarks_feynman.odes.command import evaluate_odes
    from benchmarks_feynman.odes.suites import OdeSettings

    noises, seeds = shared["noises"], shared["seeds"]
    if len(noises) > 1 or len(seeds) > 1:
        raise UsageError(f"--suite {suites[0]}: give one --noise and one --seed")
    settings = OdeSettings(
        noise=noises[0],
        dropped=dropped,
        fitted="first" if fitted == "first" else "both",
        seed=seeds[0],
        steps=steps,
        seconds=None if steps is not None else shared["seconds"],
    )
    chosen = {name: shared[name] for name in ("only", "every", "solvers")}
    evaluate_odes(suites[0], settings, results, **chosen, as_json=as_json, quiet=quiet)


def _check(
    seeds: tuple[int, ...],
    noises: tuple[float, ...],
    peers: tuple[str, ...],
    peers_only: bool,
    resume: bool,
    no_run: bool,
    results: Path | None,
) -> None:
    from benchmarks_feynman.systems import check_system

    if not seeds or min(seeds) < 0:
        raise UsageError("--seed: give one or more integers that are not negative, separated by commas")
    if not noises or not all(0 <= noise < float("inf") for noise in noises):
        raise UsageError("--noise: give one or more numbers from 0, such as 0,0.01")
    for peer in peers:  # an unknown system is reported before hours of running, not after
        check_system(peer)
    if peers_only and not peers:
        raise UsageError("--peers-only needs --peers")
    if (resume or no_run) and results is None:
        raise UsageError(f"{'--resume' if resume else '--no-run'} needs the file: pass --results FILE")


def _check_measured(laws: Any, noises: tuple[float, ...], rows: int | None, dummy: int | None) -> None:
    from benchmarks_feynman.suites import MEASURED

    if any(law.suite == MEASURED for law in laws) and (noises != (0.0,) or rows or dummy):
        raise UsageError(
            "the tables of --suite measured are what was measured: leave out --noise, --rows and --dummy"
        )


def _export(
    laws: Any, folder: Path, settings: Settings, seeds: tuple[int, ...], noises: tuple[float, ...]
) -> None:
    from benchmarks_feynman.export import export

    if len(seeds) > 1 or len(noises) > 1:
        raise UsageError("--export writes one set of tables: give one --seed and one --noise")
    count = export(laws, folder, settings, seeds[0], noises[0])
    messages.output(f"{count} tables in {folder}; their laws are in {folder / 'laws.csv'}\n")


def _read(path: Path) -> list[Result]:
    from benchmarks_feynman.results import read_results

    lines = read_results(path)
    for problem in lines.problems:
        messages.warning(problem)
    return lines.results


def _guard(found: list[Result], at_least: int) -> None:
    count = len({(result["suite"], result["id"]) for result in found if result["recovered"]})
    if count < at_least:
        raise NothingFoundError(
            f"{count} laws recovered, fewer than the {at_least} asked for with --at-least"
        )
