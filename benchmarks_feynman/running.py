"""Runs of many tasks at a terminal: a progress bar, a result file, and what runs them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from physdiffuser.cli.process import messages

if TYPE_CHECKING:
    from benchmarks_feynman.results import Result
    from benchmarks_feynman.runner import Execute
    from benchmarks_feynman.tasks import Task


def make_executor(scheduler: str, jobs: int | None, cores: int) -> Execute:
    """What runs tasks: processes on this machine, by default as many as its CPUs allow, or Dask."""
    import os

    from benchmarks_feynman.executors import LOCAL, run_dask, run_local

    if scheduler != LOCAL:
        return partial(run_dask, scheduler=scheduler, cores=cores)
    return partial(run_local, jobs=jobs or max(1, (os.cpu_count() or 1) // cores), cores=cores)


def run_tasks(
    tasks: list[Task],
    execute: Execute,
    path: Path | None,
    *,
    resume: bool,
    quiet: bool = False,
    renew: bool = False,
) -> list[Result]:
    """Run tasks with a progress bar and a result file, going on where it stopped with `resume`.

    With `renew`, results that another commit measured count as missing; the new line then stands for the old.
    """
    from tqdm import tqdm

    from benchmarks_feynman.results import open_results
    from benchmarks_feynman.runner import commit, pending, run

    with open_results(path, resume=resume) as results:
        for problem in results.existing.problems if results is not None else ():
            messages.warning(problem)
        if results is not None and renew:
            old = results.existing
            old.results = [result for result in old.results if result.get("commit") == commit()]
        count = len(pending(tasks, results))
        if results is not None and resume:
            messages.note(f"{len(tasks) - count} of {len(tasks)} problems have results in {path}")
        # disable=None: no bar where stderr is no terminal
        with tqdm(total=count, unit="law", disable=True if quiet else None) as bar:
            recovered = ended = 0

            def notice(result: Result) -> None:
                nonlocal recovered, ended
                ended += 1
                recovered += bool(result["recovered"])
                bar.set_postfix_str(f"{recovered} of {ended} recovered, last {result['id']}", refresh=False)
                bar.update()

            try:
                return run(tasks, execute, results, notice)
            except KeyboardInterrupt:
                bar.close()
                where = f"; {ended} new results are in {path}, go on with --resume" if path else ""
                messages.note(f"stopped{where}")
                raise
