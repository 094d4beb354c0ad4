"""`python -m benchmarks_feynman.campaign`: run the plans behind `docs/benchmarks.md` and write its tables.

Runs unattended: whatever happens to a problem is recorded and the rest goes on; stopped at any moment, the
same command goes on where it was. Each plan has a result file in the folder and a block between two comments
in the document, which is rewritten after every stage. Results of two machines, or of two folders, are joined
by concatenating the files: of lines for the same problem the newest counts.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from benchmarks_feynman.plans import Plan, Stage, find_plan
from physdiffuser.errors import DataError, FileError, PhysdiffuserError

FOLDER = Path("docs/results")
DOCUMENT = Path("docs/benchmarks.md")


def markers(name: str) -> tuple[str, str]:
    """The comments around a plan's block."""
    return f"<!-- campaign:{name} -->", f"<!-- /campaign:{name} -->"


def replace_block(document: str, name: str, block: str) -> str:
    """The document with another block between the plan's markers.

    Raises
    ------
    DataError
        If it does not hold each marker once, in order.
    """
    first, last = markers(name)
    if (
        document.count(first) != 1
        or document.count(last) != 1
        or document.index(first) > document.index(last)
    ):
        raise DataError(f"the document does not hold {first} and {last} once each, in this order; add them")
    before, _, rest = document.partition(first)
    _, _, after = rest.partition(last)
    inner = block.strip("\n")
    return f"{before}{first}\n\n{inner}\n\n{last}{after}"


@click.command(context_settings={"show_default": True, "help_option_names": ["-h", "--help"]})
@click.option(
    "--plan", "plans", multiple=True, required=True, help="suites, peers, targets or dev; repeatable."
)
@click.option("--stage", "stages", multiple=True, help="Only this stage; repeatable, or with commas.")
@click.option("--every", type=click.IntRange(1), default=1, help="Only every N-th law of each stage.")
@click.option("--time", "seconds", type=click.FloatRange(0, min_open=True), help="Other seconds a table.")
@click.option("--jobs", type=click.IntRange(1), help="Tables at a time; by default, what the CPUs allow.")
@click.option("--folder", type=click.Path(path_type=Path, file_okay=False), default=FOLDER, help="Results.")
@click.option(
    "--document",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where the tables go: docs/benchmarks.md, or PLAN.md in another --folder.",
    show_default=False,
)
@click.option("--renew", is_flag=True, help="Run again what another commit measured.")
@click.option("--tables-only", is_flag=True, help="Run nothing; write the tables from the files.")
@click.option("--list", "only_list", is_flag=True, help="Print the stages and their commands; run nothing.")
@click.option("--quiet", is_flag=True, help="No progress.")
# More than eight parameters: one for each option.
def campaign(
    plans: tuple[str, ...],
    stages: tuple[str, ...],
    every: int,
    seconds: float | None,
    jobs: int | None,
    folder: Path,
    document: Path | None,
    renew: bool,
    tables_only: bool,
    only_list: bool,
    quiet: bool,
) -> None:
    """Run plans of benchmark problems, unattended and resumable, and write their tables."""
    names = [name.strip() for text in stages for name in text.split(",") if name.strip()]
    chosen = [find_plan(name.strip()).with_time(seconds) for text in plans for name in text.split(",")]
    work = [(plan, plan.choose(names)) for plan in chosen]
    if only_list:
        for plan, listed in work:
            for stage in listed:
                problems = len(stage.tasks(every))
                click.echo(
                    f"{plan.name} {stage.name}, {problems} tables: {_command(plan, stage, folder, every)}"
                )
        return
    targets = {plan.name: _document(plan, folder, document) for plan in chosen}
    for plan in chosen:  # before hours of running, not after
        _check(targets[plan.name], plan)
    for plan, wanted in work:
        path = folder / f"{plan.name}.jsonl"
        if tables_only:
            write_tables(plan, path, targets[plan.name])
            continue
        for stage in wanted:
            _run(plan, stage, path, every, jobs, renew, quiet)
            write_tables(plan, path, targets[plan.name])


def _command(plan: Plan, stage: Stage, folder: Path, every: int) -> str:
    return stage.command(str(folder / f"{plan.name}.jsonl"), every)


def _document(plan: Plan, folder: Path, document: Path | None) -> Path:
    if document is not None:
        return document
    return DOCUMENT if folder == FOLDER else folder / f"{plan.name}.md"


def _check(document: Path, plan: Plan) -> None:
    if document.exists():
        replace_block(_read(document), plan.name, "")
    elif document == DOCUMENT:
        raise FileError(
            f"no {document} here: run this in the checkout, or name another --folder or --document"
        )


def _read(document: Path) -> str:
    try:
        return document.read_text(encoding="utf-8")
    except OSError as error:
        raise FileError(f"cannot read {str(document)!a}: {error.strerror}") from error


def _run(
    plan: Plan, stage: Stage, path: Path, every: int, jobs: int | None, renew: bool, quiet: bool
) -> None:
    from benchmarks_feynman.executors import LOCAL
    from benchmarks_feynman.running import make_executor, run_tasks
    from benchmarks_feynman.systems import check_system
    from physdiffuser.cli.process import messages

    for system in stage.systems:
        check_system(system)
    messages.note(f"plan {plan.name}, stage {stage.name}: {stage.command(str(path), every)}")
    execute = make_executor(LOCAL, jobs, stage.settings.cores)
    run_tasks(stage.tasks(every), execute, path, resume=True, quiet=quiet, renew=renew)


def write_tables(plan: Plan, path: Path, document: Path) -> None:
    """Rewrite the plan's block of the document from its result file.

    Raises
    ------
    FileError, DataError
        If a file cannot be read or written, or the document has no place for the block.
    """
    from benchmarks_feynman.report.plan_tables import block
    from benchmarks_feynman.results import read_results
    from physdiffuser.cli.process import messages
    from physdiffuser.io.atomic import write_text_atomic

    lines = read_results(path)
    for problem in lines.problems:
        messages.warning(problem)
    if document.exists():
        text = _read(document)
    else:
        text = "\n".join([f"# {plan.name}", "", *markers(plan.name), ""])
    write_text_atomic(document, replace_block(text, plan.name, block(plan, lines.results, path)))
    messages.note(f"tables of plan {plan.name}: {document}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; messages and exit codes are those of `physdiffuser`."""
    from physdiffuser.cli.process import messages

    try:
        campaign.main(
            args=arguments, prog_name="python -m benchmarks_feynman.campaign", standalone_mode=False
        )
    except PhysdiffuserError as error:
        messages.error(str(error))
        return error.exit_code
    except click.ClickException as error:
        messages.error(error.format_message())
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        return 128 + signal.SIGINT
    return 0


if __name__ == "__main__":
    sys.exit(main())
