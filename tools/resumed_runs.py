"""Runs of many numbered tables in processes, with a results file that an interrupted run continues."""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

Line = dict[str, Any]


def _worker() -> None:
    os.environ["OMP_NUM_THREADS"] = "1"


def run_tables(one: Callable[[int], list[Line]], tables: int, results: Path, jobs: int) -> list[Line]:
    """The lines of all tables: those in the results file, and those of the tables that are not in it.

    Parameters
    ----------
    one
        Makes the lines of the table with a number, which each has under the key `number`. A function of a
        module, or a `functools.partial` of one.
    tables
        How many; their numbers start from 0.
    results
        JSON lines, written after each table.
    jobs
        Number of processes.
    """
    lines: list[Line] = []
    if results.exists():
        lines = [json.loads(line) for line in results.read_text().splitlines()]
    done = {line["number"] for line in lines}
    results.parent.mkdir(parents=True, exist_ok=True)
    context = multiprocessing.get_context("spawn")
    with (
        ProcessPoolExecutor(jobs, mp_context=context, initializer=_worker) as pool,
        results.open("a") as stream,
    ):
        for task in [pool.submit(one, number) for number in range(tables) if number not in done]:
            made = task.result()
            lines += made
            stream.write("".join(json.dumps(line) + "\n" for line in made))
            stream.flush()
    return lines
