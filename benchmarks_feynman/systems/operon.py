"""Peer: Operon through pyoperon (Burlacu, Kronberger, Kommenda 2020).

Settings follow its SRBench entry: 1,000 individuals, trees of at most 50 nodes, five local search steps,
two objectives, model chosen by description length; stopped by the clock. Its constants are single precision.
"""

from __future__ import annotations

import math
import time
from typing import Any

from benchmarks_feynman.sampling import Table
from benchmarks_feynman.systems import require
from benchmarks_feynman.systems.answer import Answer
from benchmarks_feynman.systems.formulas import read_formula
from benchmarks_feynman.tasks import Settings, Task

_SYMBOLS = "add,sub,mul,div,constant,variable,exp,log,sqrt,square,sin,cos,tanh,asin,acos"
_DIGITS = 17
PACKAGE = "pyoperon"


def prepare(settings: Settings) -> None:
    """Import the package."""
    require("pyoperon.sklearn", "pyoperon")


def solve(table: Table, task: Task, units: dict[str, str] | None) -> Answer:
    """Run until the time is over; units are not used."""
    package: Any = require("pyoperon.sklearn", "pyoperon")
    started = time.perf_counter()
    regressor = package.SymbolicRegressor(
        allowed_symbols=_SYMBOLS,
        objectives=["r2", "length"],
        optimizer_iterations=5,
        max_length=50,
        population_size=1000,
        tournament_size=5,
        generations=1_000_000,
        max_evaluations=1_000_000_000,
        max_time=max(1, math.ceil(task.settings.time)),
        n_threads=task.settings.cores,
        random_state=task.seed + 1,
    )
    regressor.fit(table.inputs, table.target)
    # Own names: the table's may be names that Operon's text does not keep apart.
    names = [f"X{number}" for number in range(1, len(table.names) + 1)]
    text = regressor.get_model_string(regressor.model_, _DIGITS, names)
    seconds = time.perf_counter() - started
    return Answer("approximate", read_formula(text, names), seconds, {"formula": text})
