"""How often an answer is the law, and how often a *verified* answer is, on noisy development tables.

    python tools/measure_trust.py --tables 200 --seed 1 --results runs/trust.jsonl

Every table has a law of the development suite, 20 to 2,000 rows, one kind of noise (constant, relative,
Poisson, mixed, heavy-tailed; of 0.1, 1 or 10 per cent) and up to one irrelevant column, all drawn from the
seed. An answer is the law if it becomes exact once its fitted constants are refitted to rows without noise.
Each table is a line of the results file; a run that is stopped continues where it was.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from physdiffuser.core.solution import Equation

NOISES = ("constant", "relative", "poisson", "mixed", "student")
LEVELS = (0.001, 0.01, 0.1)
# Rows of the Pareto table that are longer by more nats than these are not judged.
CLOSE = 15.0


def noisy(clean: np.ndarray, kind: str, level: float, rng: np.random.Generator) -> np.ndarray:
    """A target with noise whose size is `level` relative to the root mean square, or to each value."""
    size = float(np.sqrt(np.mean(np.square(clean))))
    unit = rng.standard_normal(len(clean))
    if kind == "student":
        return clean + level * size * rng.standard_t(3, len(clean))
    spread = {
        "constant": np.full(len(clean), size),
        "relative": np.abs(clean),
        "poisson": np.sqrt(np.abs(clean) * size),
        "mixed": np.sqrt((0.3 * size) ** 2 + np.square(clean)),
    }[kind]
    return clean + level * spread * unit


def one(number: int, seed: int, seconds: float) -> dict[str, Any]:
    """Solve and judge one table."""
    from benchmarks_feynman.judge import has_form
    from benchmarks_feynman.sampling import sample
    from benchmarks_feynman.suites import select
    from physdiffuser.data.arrays import dataset_from_arrays
    from physdiffuser.pipeline import solve_dataset

    rng = np.random.default_rng([seed, number])
    laws = select(["dev"])
    law = laws[int(rng.integers(len(laws)))]
    rows = round(math.exp(rng.uniform(math.log(20), math.log(2000))))
    kind, level = str(rng.choice(NOISES)), float(rng.choice(LEVELS))
    dummy = int(rng.random() < 0.3)
    table = sample(law, rows=rows, seed=seed * 1000 + number, noise=0.0, dummy=dummy)
    target = noisy(table.clean, kind, level, rng)
    dataset = dataset_from_arrays(table.inputs, target, names=table.names, target_name=table.output)
    solution = solve_dataset(dataset, time=seconds)
    best = solution.best
    right = has_form(law, None if best is None else best.expression, seed=seed, dummy=dummy)

    def record(row: Equation) -> dict[str, Any]:
        longer = (row.description_length or math.inf) - ((best and best.description_length) or 0.0)
        near = longer < CLOSE and row is not best
        return {
            "complexity": row.complexity,
            "longer": longer,
            "is_law": right
            if row is best
            else near and has_form(law, row.expression, seed=seed, dummy=dummy),
        }

    return {
        "number": number,
        "law": law.id,
        "rows": rows,
        "noise": kind,
        "level": level,
        "dummy": dummy,
        "answer": None if best is None else best.text,
        "verdict": None if best is None else best.verdict,
        "probability": getattr(best, "probability", None),
        "is_law": right,
        "rows_shown": [record(row) for row in solution.pareto],
        "evidence": dict(solution.evidence),
        "status": solution.status,
        "seconds": solution.timing["elapsed_seconds"],
        "warnings": [text for text in solution.warnings if "errors of" in text],
    }


def _worker() -> None:
    os.environ["OMP_NUM_THREADS"] = "1"


def summary(lines: list[dict[str, Any]]) -> str:
    """Rates by kind of noise, by level and over all."""
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in lines:
        for name in (f"noise {line['noise']}", f"level {line['level']:g}", "all"):
            groups[name].append(line)
    text = ["| tables | number | the law, % | verified, % | verified and not the law | law and verified, % |"]
    text.append("|---|---|---|---|---|---|")
    for name, some in sorted(groups.items()):
        right = [line for line in some if line["is_law"]]
        verified = [line for line in some if line["verdict"] == "verified"]
        wrong = [line for line in verified if not line["is_law"]]
        both = len(verified) - len(wrong)
        text.append(
            f"| {name} | {len(some)} | {100 * len(right) / len(some):.0f} | "
            f"{100 * len(verified) / len(some):.0f} | {len(wrong)} of {len(verified)} | "
            f"{100 * both / max(len(right), 1):.0f} |"
        )
    return "\n".join(text)


def main() -> None:
    """Run the tables that are not in the results file, and print the rates."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--time", type=float, default=10.0, help="seconds for each table")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--results", type=Path, required=True)
    options = parser.parse_args()
    lines = []
    if options.results.exists():
        lines = [json.loads(line) for line in options.results.read_text().splitlines()]
    done = {line["number"] for line in lines}
    left = [number for number in range(options.tables) if number not in done]
    context = multiprocessing.get_context("spawn")
    options.results.parent.mkdir(parents=True, exist_ok=True)
    with (
        ProcessPoolExecutor(options.jobs, mp_context=context, initializer=_worker) as pool,
        options.results.open("a") as stream,
    ):
        tasks = [pool.submit(one, number, options.seed, options.time) for number in left]
        for task in tasks:
            line = task.result()
            lines.append(line)
            stream.write(json.dumps(line) + "\n")
            stream.flush()
    print(summary(lines))


if __name__ == "__main__":
    main()
