"""How often the law is found under each kind of errors, compared with constant errors of the same size.

    python tools/measure_noise_models.py --tables 60 --seed 1 --results runs/noise_models.jsonl

A paired design: each table has a law of the development suite and its rows, drawn from the seed, and is
solved once with each kind of errors. All kinds have the same root mean square, `level` times that of the
target, and are made from the same random numbers where they are normal. The searches are limited by steps, so
the load of the machine changes nothing. An answer is the law if it becomes exact once its constants are
refitted to rows without noise. Each table is five lines of the results file; a run that is stopped continues
where it was.
"""

from __future__ import annotations

import argparse
import math
import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from resumed_runs import run_tables

KINDS = ("constant", "relative", "poisson", "mixed", "student")
LEVELS = (0.003, 0.01, 0.03)
# Student's t with three degrees of freedom has this variance.
STUDENT, STUDENT_VARIANCE = 3, 3.0


def errors_of(kind: str, clean: np.ndarray, level: float, rng: np.random.Generator) -> np.ndarray:
    """Random errors of one kind, shape (rows,), of root mean square `level` times that of the target."""
    size = float(np.sqrt(np.mean(np.square(clean))))
    if kind == "student":
        return level * size * rng.standard_t(STUDENT, len(clean)) / math.sqrt(STUDENT_VARIANCE)
    shape = {
        "constant": np.ones(len(clean)),
        "relative": np.abs(clean),
        "poisson": np.sqrt(np.abs(clean)),
        "mixed": np.sqrt((0.3 * size) ** 2 + np.square(clean)),
    }[kind]
    spread = level * size * shape / float(np.sqrt(np.mean(np.square(shape))))
    return spread * rng.standard_normal(len(clean))


def one(number: int, seed: int, steps: int) -> list[dict[str, Any]]:
    """Solve and judge one table with each kind of errors."""
    from benchmarks_feynman.judge import has_form
    from benchmarks_feynman.sampling import sample
    from benchmarks_feynman.suites import select
    from physdiffuser.data.arrays import dataset_from_arrays
    from physdiffuser.pipeline import solve_dataset

    rng = np.random.default_rng([seed, number])
    laws = select(["dev"])
    law = laws[int(rng.integers(len(laws)))]
    rows = round(math.exp(rng.uniform(math.log(30), math.log(1000))))
    level = float(rng.choice(LEVELS))
    table = sample(law, rows=rows, seed=seed * 1000 + number, noise=0.0, dummy=0)
    lines = []
    for kind in KINDS:
        target = table.clean + errors_of(kind, table.clean, level, np.random.default_rng([seed, number, 1]))
        dataset = dataset_from_arrays(table.inputs, target, names=table.names, target_name=table.output)
        solution = solve_dataset(dataset, steps=steps, plugins=False)
        best = solution.best
        lines.append(
            {
                "number": number,
                "law": law.id,
                "rows": rows,
                "level": level,
                "errors": kind,
                "answer": None if best is None else best.text,
                "is_law": has_form(law, None if best is None else best.expression, seed=seed, dummy=0),
                "verdict": None if best is None else best.verdict,
                "probability": None if best is None else best.probability,
                "warnings": [text for text in solution.warnings if "errors of" in text],
                "seconds": solution.timing["elapsed_seconds"],
            }
        )
    return lines


def summary(lines: list[dict[str, Any]]) -> str:
    """Laws found by kind of errors, and how they differ from those under constant errors."""
    by_kind = {kind: {line["number"]: line for line in lines if line["errors"] == kind} for kind in KINDS}
    constant = by_kind["constant"]
    text = [
        "| errors | tables | laws found, % | found only here | found only with constant errors "
        "| verified, not the law |"
    ]
    text.append("|---|---|---|---|---|---|")
    for kind, some in by_kind.items():
        gained = sum(line["is_law"] and not constant[number]["is_law"] for number, line in some.items())
        lost = sum(constant[number]["is_law"] and not line["is_law"] for number, line in some.items())
        found = 100 * sum(line["is_law"] for line in some.values()) / max(len(some), 1)
        verified = [line for line in some.values() if line["verdict"] == "verified"]
        wrong = sum(not line["is_law"] for line in verified)
        text.append(
            f"| {kind} | {len(some)} | {found:.0f} | {gained} | {lost} | {wrong} of {len(verified)} |"
        )
    return "\n".join(text)


def main() -> None:
    """Run the tables that are not in the results file, and print the rates."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=60, help="for each search")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--results", type=Path, required=True)
    options = parser.parse_args()
    work = partial(one, seed=options.seed, steps=options.steps)
    print(summary(run_tables(work, options.tables, options.results, options.jobs)))


if __name__ == "__main__":
    main()
