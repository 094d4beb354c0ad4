"""A system for the tests: it ends every problem in milliseconds, in the way the id of the law asks for."""

from __future__ import annotations

import os
import time
from fractions import Fraction
from pathlib import Path

from benchmarks_feynman.sampling import Table
from benchmarks_feynman.suites import select
from benchmarks_feynman.systems.answer import Answer
from benchmarks_feynman.tasks import Settings, Task
from physdiffuser.expressions import Number, parse
from physdiffuser.expressions.tree import mul

NAME = "module:benchmark_fakes"
KILLED, ENDLESS, RAISING, NOTHING, WRONG = "I.12.1", "I.12.5", "I.14.3", "I.25.13", "I.29.4"

# Each call adds a line here, where the variable names a file: how often a problem was run.
COUNT_VARIABLE = "BENCHMARK_FAKES_COUNT"
DELAY_VARIABLE = "BENCHMARK_FAKES_DELAY"


def prepare(settings: Settings) -> None:
    """Nothing to import."""


def solve(table: Table, task: Task, units: dict[str, str] | None) -> Answer:
    """A crash, an endless loop, an error, nothing, a wrong law, or the truth."""
    if path := os.environ.get(COUNT_VARIABLE):
        with Path(path).open("a", encoding="utf-8") as stream:
            stream.write(f"{task.id} {os.getppid()}\n")
    time.sleep(float(os.environ.get(DELAY_VARIABLE, "0")))
    match task.id:
        case "I.12.1":
            os.kill(os.getpid(), 9)
        case "I.12.5":
            time.sleep(3600)
        case "I.14.3":
            print("a library that prints to standard output")
            raise ValueError("no can do")
        case "I.25.13":
            return Answer("none", None, 0.5)
        case "I.29.4":
            return Answer("exact", mul(Number(Fraction(5, 4)), parse("omega/c", table.names)), 0.25)
    (law,) = select([task.suite], [task.id])
    return Answer("exact", parse(law.text, table.names), 0.25, {"units": units})
