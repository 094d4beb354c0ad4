"""A stand-in for the search, so that the command line can be tested in milliseconds.

`FAKE_MODE` says how it behaves, `FAKE_PLOT` that there is something to plot, and `FAKE_RECORD` names a
file that gets the options it was called with.
Run as a program it is `physdiffuser` with this search in place of the real one.
"""

from __future__ import annotations

import json
import os
import sys
import time as clock
import types
from typing import Any

import numpy as np


def solve(source: Any, *, on_progress: Any, cancelled: Any, **options: Any) -> Any:
    from physdiffuser.core.progress import Progress
    from physdiffuser.data import load_dataset

    mode = os.environ.get("FAKE_MODE", "quick")
    record = os.environ.get("FAKE_RECORD")
    if mode == "bug":
        raise KeyError("a bug")
    if mode == "memory":
        raise MemoryError
    if mode == "stuck early":
        print("stuck", file=sys.stderr, flush=True)
        clock.sleep(60)
    reading = ("encoding", "delimiter", "header", "thousands", "units_row")
    dataset = load_dataset(
        source,
        target=options["target"],
        inputs=options["inputs"],
        weights=options["weights"],
        **{name: options[name] for name in reading},
    )
    if callable(options.get("resumed")):
        options["resumed"] = options["resumed"](dataset)
    if record:
        with open(record, "w") as stream:
            json.dump({"source": source} | options, stream)
    start = clock.monotonic()
    first = dataset.names[0]
    front = ("1.5", f"2.0*{first}")
    while mode in ("slow", "stuck"):
        elapsed = clock.monotonic() - start
        on_progress(Progress(elapsed, options["time"], front[1], 0.25, 3, "fake", front))
        if mode == "stuck":
            clock.sleep(60)
        if cancelled() or elapsed > (options["time"] or 60):
            break
        clock.sleep(0.02)
    return _solution(dataset, options, found=mode != "none")


def _solution(dataset: Any, options: dict[str, Any], found: bool) -> Any:
    from physdiffuser.core.solution import ConstantEstimate, Equation, Solution, sample_fit_points
    from physdiffuser.expressions import Number, Variable, complexity, evaluate, to_text
    from physdiffuser.expressions.tree import mul

    x, y = dataset.inputs[:, 0], dataset.target
    slope = float(x @ y / (x @ x))
    sigma = float(np.sqrt(np.mean((y - slope * x) ** 2) / (x @ x))) or 1e-9
    equations = []
    for expression in (Number(float(y.mean())), mul(Number(slope), Variable(0))):
        residual = y - evaluate(expression, dataset.inputs)
        value = float(expression.value if isinstance(expression, Number) else slope)
        equations.append(
            Equation(
                expression=expression,
                text=to_text(expression, dataset.names),
                latex="stored text",
                complexity=complexity(expression),
                rmse=float(np.sqrt(np.mean(residual**2))),
                r2=1.0 - float(np.mean(residual**2) / (np.var(y) or 1.0)),
                max_relative_error=float(np.max(np.abs(residual / y))) if (y != 0).all() else float("inf"),
                test_rmse=None,
                verdict="verified",
                verification=("holds on every row",),
                constants=(
                    ConstantEstimate("c1", value, value - 2 * sigma, value + 2 * sigma, repr(value), False),
                ),
                covariance=((sigma**2,),),
                degrees_of_freedom=dataset.rows - 1,
                generator="fake",
            )
        )
    points = sample_fit_points(
        y, evaluate(equations[1].expression, dataset.inputs), np.zeros(dataset.rows, dtype=bool)
    )
    return Solution(
        target=dataset.target_column.name,
        status="approximate" if found else "none",
        best=equations[1] if found else None,
        pareto=tuple(equations) if found else (),
        names=dataset.names,
        columns=tuple(column.name for column in dataset.columns),
        aliases=dataset.aliases,
        derivation=("a straight line through the origin",) if found else (),
        warnings=dataset.warnings,
        notes=dataset.notes,
        rows=dataset.rows,
        known_constants={},
        timing={"elapsed_seconds": 0.1},
        seed=options["seed"],
        version="0",
        fit_points=points if found and os.environ.get("FAKE_PLOT") else None,
    )


if __name__ == "__main__":
    module = types.ModuleType("physdiffuser.pipeline")
    module.solve = solve  # type: ignore[attr-defined]
    sys.modules["physdiffuser.pipeline"] = module
    from physdiffuser.cli import main

    sys.exit(main())
