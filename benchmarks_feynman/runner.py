"""A run: tasks that have no result yet are executed, and each result is written as it comes."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from benchmarks_feynman.executors import Done
from benchmarks_feynman.judge import unjudged
from benchmarks_feynman.results import SCHEMA, Result, ResultFile
from benchmarks_feynman.suites import select
from benchmarks_feynman.tasks import Task
from benchmarks_feynman.workers import Message

Execute = Callable[[Sequence[Task]], Iterator[Done]]
Notice = Callable[[Result], None]


@cache
def commit() -> str | None:
    """Commit of the source tree this runs from, with `+` when it was changed since; None elsewhere."""
    root = Path(__file__).resolve().parent.parent
    if not (root / ".git").exists():
        return None

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, timeout=10, check=True
        )
        return done.stdout.strip()

    try:
        name = git("rev-parse", "--short=12", "HEAD")
        changed = git("status", "--porcelain", "--untracked-files=no", "--", "*.py", "*.csv")
    except (OSError, subprocess.SubprocessError):
        return None
    return f"{name}+" if changed else name


def to_result(task: Task, message: Message) -> Result:
    """The line of one task: what was asked, what came back, and on which commit."""
    (law,) = select([task.suite], [task.id])
    return {
        "schema": SCHEMA,
        **task.document(),
        **unjudged(law),
        "expression": None,
        "seconds": None,
        **message,
        "commit": commit(),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def pending(tasks: Sequence[Task], results: ResultFile | None) -> list[Task]:
    """Tasks without a result, each once."""
    done = set() if results is None else results.existing.keys
    return [task for key, task in {task.key: task for task in tasks}.items() if key not in done]


def run(
    tasks: Sequence[Task], execute: Execute, results: ResultFile | None, notice: Notice | None = None
) -> list[Result]:
    """Run tasks and record each as soon as it ends.

    Parameters
    ----------
    tasks
        What is to have a result in the end.
    execute
        `run_local` or `run_dask` with its options bound.
    results
        Where lines go; tasks that have one there are not run again. None writes nothing.
    notice
        Called with each new result, for progress.

    Returns
    -------
    list
        Results of `tasks`, old and new.
    """
    keys = {task.key for task in tasks}
    found: list[Result] = []
    if results is not None:
        from benchmarks_feynman.tasks import task_key

        found = [result for result in results.existing.results if task_key(result) in keys]
    missing = pending(tasks, results)
    if not missing:
        return found
    commit()  # remembered from here on: the sources may change while this runs
    ended = execute(missing)
    try:
        for task, message in ended:
            result = to_result(task, message)
            if results is not None:
                results.append(result)
            found.append(result)
            if notice is not None:
                notice(result)
    finally:
        close = getattr(ended, "close", None)
        if close is not None:
            close()
    return found
