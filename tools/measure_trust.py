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
import os
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from resumed_runs import run_tables

from benchmarks_feynman.sampling import Table
from benchmarks_feynman.suites import Law
from physdiffuser.core.problem import Problem
from physdiffuser.core.solution import Equation
from physdiffuser.expressions import Expression, Number, Variable, evaluate, parse, to_text
from physdiffuser.expressions.tree import substitute, variables
from physdiffuser.finalize.evidence.figures import POLICY as FIGURES
from physdiffuser.selection.misfit import misfit

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


def with_constants(law: Law, rng: np.random.Generator) -> Law:
    """The law with some of its inputs turned into constants of three to five digits, as in most real tables.

    At least one input remains, and at most three.
    """
    many = len(law.variables)
    remaining = int(rng.integers(1, min(many, 3) + 1))
    kept = sorted(rng.choice(many, remaining, replace=False))
    digits = int(rng.integers(3, 6))
    values: dict[int, Expression] = {}
    for position, variable in enumerate(law.variables):
        if position in kept:
            values[position] = Variable(kept.index(position))
        else:
            low, high = variable.low, variable.high
            value = low * (high / low) ** rng.random() if variable.scale == "log" else rng.uniform(low, high)
            values[position] = Number(float(f"{value:.{digits}g}"))
    expression = substitute(
        law.expression, lambda node: values[node.index] if isinstance(node, Variable) else None
    )
    fixed = replace(law, variables=tuple(law.variables[position] for position in kept))
    fixed.__dict__["expression"] = expression
    return fixed


def is_usable(law: Law, seed: int) -> bool:
    """Whether every remaining input matters, and the law is finite on most of its ranges."""
    from benchmarks_feynman.sampling import sample

    if len(variables(law.expression)) < len(law.variables):
        return False
    try:
        table = sample(law, rows=200, seed=seed)
    except RuntimeError:
        return False
    spread = float(np.std(table.clean))
    if not spread > 1e-3 * float(np.abs(table.clean).max()):
        return False
    for position in range(len(law.variables)):
        moved = table.inputs.copy()
        moved[:, position] = np.roll(moved[:, position], 1)
        change = evaluate(law.expression, moved) - table.clean
        if not float(np.sqrt(np.nanmean(np.square(change)))) > 0.02 * spread:
            return False
    return True


def drawn(
    number: int, seed: int, laws_of: str, between: tuple[int, int], levels: tuple[float, ...], first: str = ""
) -> tuple[Law, Table, np.ndarray, str, float, int]:
    """Draw a law, its table, the noisy target, the kind and level of the noise, and the irrelevant columns.

    Parameters
    ----------
    first
        Identifier of the law that was drawn first, when the suite had others.
    """
    from benchmarks_feynman.sampling import sample
    from benchmarks_feynman.suites import select

    rng = np.random.default_rng([seed, number])
    laws = select(["dev"])
    law = laws[int(rng.integers(len(laws)))]
    law = next((other for other in laws if other.id == first), law)
    while laws_of == "frozen":
        fixed = with_constants(law, rng)
        if is_usable(fixed, seed):
            law = fixed
            break
        law = laws[int(rng.integers(len(laws)))]
    rows = round(math.exp(rng.uniform(*map(math.log, between))))
    kind, level = str(rng.choice(NOISES)), float(rng.choice(levels))
    dummy = int(rng.random() < 0.3)
    table = sample(law, rows=rows, seed=seed * 1000 + number, noise=0.0, dummy=dummy)
    return law, table, noisy(table.clean, kind, level, rng), kind, level, dummy


def one(
    number: int, seed: int, draw: Callable[..., Any], limits: dict[str, Any], law_given: bool = False
) -> list[dict[str, Any]]:
    """Solve and judge a table that `drawn` gives: one line."""
    from benchmarks_feynman.judge import has_form
    from physdiffuser.data.arrays import dataset_from_arrays
    from physdiffuser.pipeline import solve_dataset

    law, table, target, kind, level, dummy = draw(number)
    dataset = dataset_from_arrays(table.inputs, target, names=table.names, target_name=table.output)
    known = [to_text(law.expression, dataset.names)] if law_given else []
    solution = solve_dataset(dataset, **limits, initial=known)
    best = solution.best
    right = has_form(law, None if best is None else best.expression, seed=seed, dummy=dummy)

    def record(row: Equation) -> dict[str, Any]:
        longer = (row.description_length or math.inf) - ((best and best.description_length) or 0.0)
        near = longer < CLOSE and row is not best
        return {
            "text": row.text,
            "complexity": row.complexity,
            "longer": longer,
            "is_law": right
            if row is best
            else near and has_form(law, row.expression, seed=seed, dummy=dummy),
        }

    line = {
        "number": number,
        "law": law.id,
        "inputs": list(law.names),
        "rows": len(target),
        "noise": kind,
        "level": level,
        "dummy": dummy,
        "answer": None if best is None else best.text,
        "verdict": None if best is None else best.verdict,
        "not_passed": []
        if best is None
        else [
            said
            for said, state in zip(best.verification, best.check_states, strict=True)
            if state != "passed"
        ],
        "probability": getattr(best, "probability", None),
        "is_law": right,
        "rows_shown": [record(row) for row in solution.pareto],
        "evidence": dict(solution.evidence),
        "status": solution.status,
        "steps": sum(spent for name, spent in solution.timing.items() if name.startswith("steps_")),
        "seconds": solution.timing["elapsed_seconds"],
        "warnings": [text for text in solution.warnings if "errors of" in text],
    }
    return [line]


def with_figures(line: dict[str, Any], draw: Callable[..., Any]) -> dict[str, Any]:
    """The line with the figures of its evidence that only the answer and the table are needed for.

    A line whose table is another one when it is drawn again, because the laws have changed, stays as it is.
    """
    if not line["evidence"] or line["answer"] is None:
        return line
    law, table, target, kind, level, dummy = draw(line["number"], first=line["law"])
    known = (line[key] for key in ("law", "rows", "noise", "level", "dummy"))
    same = (law.id, len(target), kind, level, dummy) == tuple(known)
    same = same and line.get("inputs", list(law.names)) == list(law.names)
    if not same:
        return line
    answer = parse(line["answer"], tuple(table.names))
    size = np.abs(evaluate(answer, table.inputs))
    scale = float(np.sqrt(np.mean(np.square(size))))
    spread = {"relative": size, "poisson": np.sqrt(size * scale), "mixed": np.hypot(0.3 * scale, size)}
    weights = 1.0 / np.square(np.maximum(spread[kind], 1e-3 * scale)) if kind in spread else None
    if weights is not None:
        weights /= weights.mean()
    problem = Problem(table.inputs, target, tuple(table.names), weights=weights)
    figures = {
        "misfit": min(misfit(answer, problem).nats, FIGURES.max_nats),
        "columns": len(variables(answer)),
    }
    return {**line, "evidence": {**line["evidence"], **figures}}


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
    parser.add_argument("--time", type=float, help="seconds for each table (10 without --steps)")
    parser.add_argument("--steps", type=int, help="steps of the search for each table")
    parser.add_argument(
        "--laws",
        choices=("dev", "frozen"),
        default="dev",
        help="the development laws, or these with some inputs turned into constants",
    )
    parser.add_argument(
        "--rows", type=int, nargs=2, default=(20, 2000), metavar=("FEWEST", "MOST"), help="of the tables"
    )
    parser.add_argument("--levels", type=float, nargs="+", default=LEVELS, help="of the noise")
    parser.add_argument(
        "--law-given",
        action="store_true",
        help="the law is a starting formula: what is still missed is not chosen, rather than not found",
    )
    parser.add_argument(
        "--figures",
        action="store_true",
        help="solve nothing: add figures of the evidence that the recorded lines lack",
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--results", type=Path, required=True)
    options = parser.parse_args()
    draw = partial(
        drawn,
        seed=options.seed,
        laws_of=options.laws,
        between=tuple(options.rows),
        levels=tuple(options.levels),
    )
    if options.figures:
        lines = [json.loads(line) for line in options.results.read_text().splitlines()]
        made = [json.dumps(with_figures(line, draw)) + "\n" for line in lines]
        options.results.write_text("".join(made))
        return
    seconds = 10.0 if options.steps is None and options.time is None else options.time
    limits = {"time": seconds, "steps": options.steps}
    work = partial(one, seed=options.seed, draw=draw, limits=limits, law_given=options.law_given)
    print(summary(run_tables(work, options.tables, options.results, options.jobs)))


if __name__ == "__main__":
    main()
