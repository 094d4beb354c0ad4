"""Peer: eggp, genetic programming on an e-graph (de Franca and Kronberger 2025), formerly pyeggp.

Its time limit is soft: it has been seen to run twice as long; the time it took is what is recorded.
"""

from __future__ import annotations

import math
import os
import time
from typing import Any

from benchmarks_feynman.sampling import Table
from benchmarks_feynman.systems import require
from benchmarks_feynman.systems.answer import Answer
from benchmarks_feynman.systems.formulas import read_formula
from benchmarks_feynman.tasks import Settings, Task

_FUNCTIONS = "add,sub,mul,div,power,exp,log,sqrt,sin,cos"
PACKAGE = "eggp"


def prepare(settings: Settings) -> None:
    """Import the package, whose Haskell run time takes its number of threads from the environment."""
    os.environ["GHCRTS"] = f"-N{settings.cores}"
    require("eggp", "pyeggp")


def solve(table: Table, task: Task, units: dict[str, str] | None) -> Answer:
    """Run until the time is over; units are not used."""
    package: Any = require("eggp", "pyeggp")
    started = time.perf_counter()
    regressor = package.EGGP(
        gen=100_000,
        nPop=100,
        maxSize=50,
        nonterminals=_FUNCTIONS,
        optIter=50,
        optRepeat=2,
        max_time=max(1, math.floor(task.settings.time)),
    )
    regressor.fit(table.inputs, table.target)
    # The front comes from simple to complex: the last row is the most accurate.
    text = str(regressor.results.iloc[-1]["Expression"])
    seconds = time.perf_counter() - started
    names = [f"x{number}" for number in range(len(table.names))]
    return Answer("approximate", read_formula(text, names), seconds, {"formula": text})
