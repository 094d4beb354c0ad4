"""Peer: eggp, genetic programming on an e-graph (de Franca and Kronberger 2025), formerly pyeggp.

Settings are the defaults of its documentation, except for the functions and for `maxSize` (20 instead of 15,
for the laws are longer than that; with 30 and 50 a generation took several times longer and fits were worse).
The number of generations is left to the clock. Its time limit counts wall time and is soft: it is looked at
between generations, and has been seen to be passed by as much again. Processor time is what is recorded.
"""

from __future__ import annotations

import math
import os
from typing import Any

from benchmarks_feynman.sampling import Table
from benchmarks_feynman.systems import require
from benchmarks_feynman.systems.answer import Answer
from benchmarks_feynman.systems.clock import Clock
from benchmarks_feynman.systems.formulas import read_formula
from benchmarks_feynman.tasks import Settings, Task

_FUNCTIONS = "add,sub,mul,div,power,exp,log,sqrt,sin,cos"
PACKAGE = "eggp"
PATIENCE = 20.0


def prepare(settings: Settings) -> None:
    """Import the package, whose Haskell run time takes its number of threads from the environment."""
    os.environ["GHCRTS"] = f"-N{settings.cores}"
    require("eggp", "pyeggp")


def solve(table: Table, task: Task, units: dict[str, str] | None) -> Answer:
    """Run until the time is over; units are not used."""
    package: Any = require("eggp", "pyeggp")
    clock = Clock(task.settings.cores)
    regressor = package.EGGP(
        gen=100_000,
        nPop=100,
        maxSize=20,
        nonterminals=_FUNCTIONS,
        optIter=50,
        optRepeat=2,
        max_time=max(1, math.floor(task.settings.time)),
    )
    regressor.fit(table.inputs, table.target)
    # The front comes from simple to complex: the last row is the most accurate.
    text = str(regressor.results.iloc[-1]["Expression"])
    names = [f"x{number}" for number in range(len(table.names))]
    details = {"formula": text, "wall_seconds": clock.wall_seconds()}
    return Answer("approximate", read_formula(text, names), clock.seconds(), details)
