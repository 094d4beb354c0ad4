"""The JSON document of `dynamics --json`."""

from __future__ import annotations

import math
from typing import Any

from physdiffuser.dynamics.solution import DynamicsSolution
from physdiffuser.report.json_document import document

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
        "order": solution.order,
        "equations": [
            _equation(solution, index, column.name) for index, column in enumerate(solution.states)
        ],
        "simulation": {
            "r2_fitted": dict(solution.simulation.r2_fitted),
            "r2_held_out": dict(solution.simulation.r2_held_out),
            "held_out": solution.simulation.held_out or None,
            "diverged": solution.simulation.diverged,
        },
        "conserved": [
            {"expression": one.text, "drift": one.drift if math.isfinite(one.drift) else None}
            for one in solution.conserved
        ],
        "aliases": {
            column.alias: column.name
            for column in (*solution.states, *solution.inputs, solution.time)
            if column.alias != column.name
        },
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
