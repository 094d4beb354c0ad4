"""How often the 95 % intervals of constants hold the true values.

    python tools/measure_coverage.py --tables 200 --seed 1 --results runs/coverage.jsonl

Each table has one of the forms of `measure_constants.py` with arbitrary constants, a kind of errors, their
size (0.001 to 0.1) and 20 to 10,000 rows. The true form is given to the search as a formula to start from, so
that nearly every answer has it. The true values are those that the constants of the answer take when they are
refitted to rows without noise; answers that are not exact then, and constants that were set to special
values, are not counted.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

KINDS = ("constant", "relative", "poisson", "mixed", "student")
ROWS = (20, 50, 200, 1_000, 10_000)
# The answer has the right form if refitting leaves less than this share of the target.
EXACT = 1e-7


def one(number: int, seed: int, kinds: tuple[str, ...]) -> list[dict[str, Any]]:
    """Intervals of one table for each kind of errors."""
    from measure_constants import FORMS, draw, table
    from measure_noise_models import errors_of

    from physdiffuser.data.arrays import dataset_from_arrays
    from physdiffuser.expressions import evaluate, to_text
    from physdiffuser.expressions.tree import bind
    from physdiffuser.pipeline import solve_dataset

    rng = np.random.default_rng([seed, number])
    rows = int(ROWS[number % len(ROWS)])
    made = None
    while made is None:
        skeleton, values = draw(str(rng.choice(FORMS)), False, rng)
        made = table(skeleton, values, rows, 0.0, rng)
    inputs, clean = made
    law = to_text(bind(skeleton, values), ("x", "y"))
    level = math.exp(rng.uniform(math.log(0.001), math.log(0.1)))
    lines = []
    for kind in kinds:
        target = clean + errors_of(kind, clean, level, np.random.default_rng([seed, number, 1]))
        dataset = dataset_from_arrays(inputs, target, names=("x", "y"), target_name="z")
        best = solve_dataset(dataset, steps=2, plugins=False, initial=[law]).best
        line: dict[str, Any] = {"number": number, "law": law, "rows": rows, "level": level, "errors": kind}
        truth = None if best is None else true_values(best.expression, inputs, clean, evaluate)
        if best is not None and truth is not None:
            free = [constant for constant in best.constants if not constant.is_set]
            line["constants"] = [
                {"truth": true, "value": constant.value, "low": constant.low, "high": constant.high}
                for true, constant in zip(truth, free, strict=True)
            ]
        lines.append(line | {"answer": None if best is None else best.text})
    return lines


def true_values(
    expression: Any, inputs: np.ndarray, clean: np.ndarray, evaluate: Callable[..., Any]
) -> list[float] | None:
    """The values of the constants of a formula on rows without noise; None if it is not the law."""
    from physdiffuser.expressions.tree import bind, distinct_constants
    from physdiffuser.fitting import fit_constants

    skeleton, values = distinct_constants(expression)
    if not values:
        return None
    fit = fit_constants(skeleton, inputs, clean, initial=values, starts=1, iterations=200)
    left = np.abs(evaluate(bind(skeleton, list(fit.parameters)), inputs) - clean).max()
    return list(fit.parameters) if left < EXACT * np.abs(clean).max() else None


def summary(lines: list[dict[str, Any]]) -> str:
    """Coverage by kind of errors and number of rows."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for line in lines:
        for rows in (str(line["rows"]), "all"):
            count = counts.setdefault((line["errors"], rows), Counter())
            count["tables"] += 1
            for constant in line.get("constants", ()):
                if constant["low"] is None:
                    count["without"] += 1
                    continue
                count["constants"] += 1
                count["inside"] += constant["low"] <= constant["truth"] <= constant["high"]
    columns = [*map(str, ROWS), "all"]
    text = ["| errors | " + " | ".join(f"{rows} rows" if rows != "all" else rows for rows in columns) + " |"]
    text.append("|---" * (len(columns) + 1) + "|")
    for kind in dict.fromkeys(line["errors"] for line in lines):
        cells = [counts.get((kind, rows), Counter()) for rows in columns]
        shown = [
            f"{100 * cell['inside'] / max(cell['constants'], 1):.1f} ({cell['constants']})" for cell in cells
        ]
        text.append(f"| {kind} | " + " | ".join(shown) + " |")
    return "\n".join(text)


def _worker() -> None:
    os.environ["OMP_NUM_THREADS"] = "1"


def main() -> None:
    """Run the tables that are not in the results file, and print the coverage."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--results", type=Path, required=True)
    options = parser.parse_args()
    lines: list[dict[str, Any]] = []
    if options.results.exists():
        lines = [json.loads(line) for line in options.results.read_text().splitlines()]
    done = {line["number"] for line in lines}
    left = [number for number in range(options.tables) if number not in done]
    options.results.parent.mkdir(parents=True, exist_ok=True)
    context = multiprocessing.get_context("spawn")
    kinds = tuple(options.kinds.split(","))
    with (
        ProcessPoolExecutor(options.jobs, mp_context=context, initializer=_worker) as pool,
        options.results.open("a") as stream,
    ):
        for task in [pool.submit(one, number, options.seed, kinds) for number in left]:
            made = task.result()
            lines += made
            stream.write("".join(json.dumps(line) + "\n" for line in made))
            stream.flush()
    print(summary(lines))


if __name__ == "__main__":
    main()
