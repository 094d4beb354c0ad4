"""Peer: gplearn, with the settings of its SRBench entry.

It knows no time limit, so generations are added until the time is over; it stops by itself when its mean
error is below 1e-12. Its protected logarithm and root are
those of absolute values; its protected division is read as division.
"""

from __future__ import annotations

from typing import Any

from benchmarks_feynman.sampling import Table
from benchmarks_feynman.systems import require
from benchmarks_feynman.systems.answer import Answer
from benchmarks_feynman.systems.clock import Clock
from benchmarks_feynman.tasks import Settings, Task
from physdiffuser.expressions import Apply, Expression, Number, Variable
from physdiffuser.expressions.tree import ONE

_FUNCTIONS = ("add", "sub", "mul", "div", "log", "sqrt", "sin", "cos")
_STEP = 5
PACKAGE = "gplearn"
PATIENCE = 40.0


def prepare(settings: Settings) -> None:
    """Import the package."""
    require("gplearn.genetic", "gplearn")


def solve(table: Table, task: Task, units: dict[str, str] | None) -> Answer:
    """Run until the time is over; units are not used."""
    package: Any = require("gplearn.genetic", "gplearn")
    clock = Clock(task.settings.cores)
    regressor = package.SymbolicRegressor(
        population_size=1000,
        generations=_STEP,
        tournament_size=20,
        init_depth=(2, 6),
        function_set=_FUNCTIONS,
        metric="mean absolute error",
        parsimony_coefficient=0.001,
        stopping_criteria=1e-12,
        warm_start=True,
        n_jobs=task.settings.cores,
        random_state=task.seed,
    )
    generations = 0
    while True:
        generations += _STEP
        regressor.set_params(generations=generations)
        regressor.fit(table.inputs, table.target)
        done = clock.seconds()
        # The next generations take as long as these did: begin them only where they fit.
        if done * (1 + _STEP / generations) > task.settings.time:
            break
        if regressor.run_details_["best_fitness"][-1] <= regressor.stopping_criteria:
            break
    program = regressor._program
    details = {"formula": str(program), "wall_seconds": clock.wall_seconds(), "generations": generations}
    return Answer("approximate", to_tree(program.program), done, details)


def to_tree(program: list[Any]) -> Expression:
    """A program in gplearn's prefix list: functions, column numbers (int) and constants (float)."""
    stack: list[Expression] = []
    for node in reversed(program):
        if hasattr(node, "arity"):
            arguments = [stack.pop() for _ in range(node.arity)]
            stack.append(_apply(node.name, arguments))
        elif isinstance(node, float):
            stack.append(Number(float(node)))
        else:
            stack.append(Variable(int(node)))
    (tree,) = stack
    return tree


def _apply(name: str, arguments: list[Expression]) -> Expression:
    match name:
        case "log" | "sqrt":
            return Apply(name, (Apply("abs", tuple(arguments)),))
        case "inv":
            return Apply("div", (ONE, *arguments))
        case _:
            return Apply(name, tuple(arguments))
