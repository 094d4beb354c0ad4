"""Systems for the tests: each answers a whole benchmark problem in milliseconds, in its own way."""

from __future__ import annotations

import os
import time
from fractions import Fraction

from benchmarks_feynman.sampling import Table
from benchmarks_feynman.suites import select
from benchmarks_feynman.systems.answer import Answer
from benchmarks_feynman.tasks import Settings, Task
from physdiffuser.expressions import Expression, Number, parse
from physdiffuser.expressions.tree import mul

NAME = "module:benchmark_fakes"


def prepare(settings: Settings) -> None:
    """Nothing to import."""


def solve(table: Table, task: Task, units: dict[str, str] | None) -> Answer:
    """What the id of the law asks for: a crash, an endless loop, an error, nothing, or the truth."""
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
            return Answer("exact", wrong(table), 0.25)
    (law,) = select([task.suite], [task.id])
    return Answer("exact", parse(law.text, table.names), 0.25, {"units": units})


def wrong(table: Table) -> Expression:
    """The law with a factor of 1.5."""
    return mul(Number(Fraction(3, 2)), parse("omega/c", table.names))
