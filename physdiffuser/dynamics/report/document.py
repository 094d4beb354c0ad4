"""The JSON document of `dynamics --json`, both ways."""

from __future__ import annotations

import math
from typing import Any

from physdiffuser.core.solution import Equation, Solution
from physdiffuser.data.dataset import Column
from physdiffuser.dynamics.report.solution import DynamicsSolution, SimulationSummary, derivative_text
from physdiffuser.errors import UsageError
from physdiffuser.expressions import parse, to_text
from physdiffuser.report.documents.document_reader import Reader
from physdiffuser.report.documents.json_document import document

Json = dict[str, Any]

SCHEMA = 2
KIND = "dynamics"


def dynamics_document(solution: DynamicsSolution) -> Json:
    """The answer as plain JSON values: dictionaries, lists, strings, finite numbers, booleans and None."""
    return {
        "schema": SCHEMA,
        "kind": KIND,
        "time": solution.time.name,
        "states": [column.name for column in solution.states],
        "inputs": [column.name for column in solution.inputs],
        "derivatives": [column.name for column in solution.derivatives],
        "order": solution.order,
        "equations": [
            _equation(solution, index, column.name) for index, column in enumerate(solution.states)
        ],
        "simulation": {
            "r2_fitted": dict(solution.simulation.r2_fitted),
            "r2_held_out": dict(solution.simulation.r2_held_out),
            "held_out": solution.simulation.held_out or None,
            "diverged": solution.simulation.diverged,
            "lyapunov_exponent": solution.simulation.lyapunov_exponent,
            "horizon": solution.simulation.horizon,
        },
        "conserved": [
            {
                "expression": one.text,
                "drift": one.drift if math.isfinite(one.drift) else None,
                "proven": one.proven,
                "source": one.source,
            }
            for one in solution.conserved
        ],
        "aliases": {column.alias: column.name for column in solution.columns if column.alias != column.name},
        "warnings": list(solution.warnings),
        "notes": dict(solution.notes),
        "timing": {part: seconds for part, seconds in solution.timing.items() if math.isfinite(seconds)},
        "seed": solution.seed,
        "version": solution.version,
    }


def _equation(solution: DynamicsSolution, index: int, state: str) -> Json:
    content = document(solution.equations[index])
    best = content["best"]
    return {"state": state, "order": solution.order, **best, "pareto": content["pareto"]}


def solution_from_dynamics(content: object, source: str = "result.json") -> DynamicsSolution:
    """Read a document back, as far as simulations need it; formulas go through the expression parser.

    Raises
    ------
    DataError, UsageError
        If it is no document of `dynamics`.
    """
    reader = Reader(content, source)
    reader.schema(SCHEMA)
    if reader.optional_text("kind") != KIND:
        raise UsageError(
            f"{source} is no result of 'physdiffuser dynamics': it has no equations to simulate."
        )
    by_name = {name: alias for alias, name in reader.texts_by_name("aliases").items()}
    states, inputs, derivatives = (
        tuple(Column(name, by_name.get(name, name)) for name in reader.texts(key))
        for key in ("states", "inputs", "derivatives")
    )
    time = reader.text("time")
    clock = Column(time, by_name.get(time, time))
    names = [column.alias for column in (*states, *derivatives, *inputs, clock)]
    order = reader.integer("order")
    equations = []
    for column, row in zip(states, reader.rows("equations"), strict=True):
        expression = row.formula("expression", parse, tuple(names), {})
        best = Equation(
            expression=expression,
            text=to_text(expression, names),
            latex=row.text("latex"),
            complexity=row.integer("complexity"),
            rmse=math.nan,
            r2=math.nan,
            max_relative_error=math.nan,
        )
        target = derivative_text(column.alias, clock.alias, order)
        columns = tuple(one.name for one in (*states, *derivatives, *inputs, clock))
        equations.append(Solution(target, "approximate", best, (best,), tuple(names), columns, {}))
    nothing = SimulationSummary({}, {}, "", False)
    return DynamicsSolution(clock, states, inputs, order, tuple(equations), nothing, derivatives)
