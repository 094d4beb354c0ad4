"""Peer: Operon through pyoperon (Burlacu, Kronberger, Kommenda 2020).

Settings follow its SRBench entry: 1,000 individuals, trees of at most 50 nodes, five local search steps,
two objectives; stopped by the clock. Its constants are single precision. The model is chosen from its front
by Bayes' information criterion: the description length of the entry needs the size of the noise, and without
that takes formulas that are too short.

It has no other stop than its limits, so an answer always takes the whole time. So that its speed can be
compared all the same, `first_exact_seconds` in the details tells when the best R2 of its population first
rounded to one in single precision: the earliest moment at which a stop could have been thought of.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any

from benchmarks_feynman.sampling import Table
from benchmarks_feynman.systems import require
from benchmarks_feynman.systems.answer import Answer
from benchmarks_feynman.systems.clock import Clock
from benchmarks_feynman.systems.formulas import read_formula
from benchmarks_feynman.tasks import Settings, Task

_SYMBOLS = "add,sub,mul,div,constant,variable,exp,log,sqrt,square,sin,cos,tanh,asin,acos"
_DIGITS = 17
_SINGLE_PRECISION = 2.0**-24
PACKAGE = "pyoperon"
PATIENCE = 40.0


def prepare(settings: Settings) -> None:
    """Import the package."""
    require("pyoperon.sklearn", "pyoperon")


def solve(table: Table, task: Task, units: dict[str, str] | None) -> Answer:
    """Run until the time is over; units are not used."""
    package: Any = require("pyoperon.sklearn", "pyoperon")
    clock = Clock(task.settings.cores)
    regressor = package.SymbolicRegressor(
        allowed_symbols=_SYMBOLS,
        objectives=["r2", "length"],
        optimizer_iterations=5,
        max_length=50,
        population_size=1000,
        tournament_size=5,
        model_selection_criterion="bayesian_information_criterion",
        generations=1_000_000,
        max_evaluations=1_000_000_000,
        max_time=math.ceil(PATIENCE * task.settings.time),
        n_threads=task.settings.cores,
        random_state=task.seed + 1,
    )
    with _timed(package.op, clock, task.settings.time) as moments:
        regressor.fit(table.inputs, table.target)
    # Own names: the table's may be names that Operon's text does not keep apart.
    names = [f"X{number}" for number in range(1, len(table.names) + 1)]
    text = regressor.get_model_string(regressor.model_, _DIGITS, names)
    seconds = clock.seconds()
    details: dict[str, Any] = {
        "formula": text,
        "wall_seconds": clock.wall_seconds(),
        "generations": regressor.stats_["generations"],
    }
    if moments:
        details["first_exact_seconds"] = moments[0]
    return Answer("approximate", read_formula(text, names), seconds, details)


@contextlib.contextmanager
def _timed(operon: Any, clock: Clock, limit: float) -> Iterator[list[float]]:
    """Stop by a clock of ours, and note when the population first fits exactly.

    The estimator offers no callback, but its algorithm does, after each generation; there, a budget of
    evaluations that is used up ends the run.
    """
    algorithm, objectives = operon.NSGA2Algorithm, operon.MultiEvaluator
    moments: list[float] = []
    evaluators: list[Any] = []

    def evaluator(*arguments: Any) -> Any:
        evaluators.append(objectives(*arguments))
        return evaluators[-1]

    class Timed:
        """The algorithm, called back after each generation; everything else is passed on."""

        def __init__(self, *arguments: Any) -> None:
            self.__dict__["_inner"] = algorithm(*arguments)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.__dict__["_inner"], name)

        def __setattr__(self, name: str, value: Any) -> None:
            setattr(self.__dict__["_inner"], name, value)

        def Run(self, rng: Any, callback: Any, *arguments: Any) -> None:
            inner = self.__dict__["_inner"]

            def note() -> None:
                # The first objective is -R2.
                if not moments and any(one[0] <= -1.0 + _SINGLE_PRECISION for one in inner.BestFront):
                    moments.append(clock.seconds())
                if clock.seconds() >= limit:
                    evaluators[-1].Budget = 0

            inner.Run(rng, note, *arguments)

    operon.NSGA2Algorithm, operon.MultiEvaluator = Timed, evaluator
    try:
        yield moments
    finally:
        operon.NSGA2Algorithm, operon.MultiEvaluator = algorithm, objectives
