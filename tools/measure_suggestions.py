"""How many more rows determine a law: those of `--suggest-next`, and random ones.

    python tools/measure_suggestions.py --laws 12 --steps 5 --seed 1 --results runs/suggestions.jsonl

Every law is one of the development suite (`dev`) with one or two inputs, in its own ranges and with errors of
2 % in each value, that is found from sixty random rows. It starts with eight rows from the lowest quarter of
each range, from which the answer is not the law. Rows are then added within the whole ranges, two at a time
by suggestion, or at random (at least two, and half as many as were added before), until the answer is the law
twice running. An answer is the law if it becomes exact once its fitted constants are refitted to rows without
noise. Both ways begin with the same rows. Each law is a line of the results file; a run that is stopped goes
on where it was.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks_feynman.judge import has_form
from benchmarks_feynman.suites import Law, load_suite
from physdiffuser.core.solution import Solution
from physdiffuser.data import dataset_from_arrays
from physdiffuser.expressions import complexity, evaluate
from physdiffuser.pipeline import solve_dataset

WAYS = ("suggested", "random")
FIRST_ROWS, ENOUGH_ROWS, ERROR = 8, 60, 0.02
# Share of each range in which the first rows lie.
FIRST_SHARE = 0.25
BY_SUGGESTION, MAX_SUGGESTED, MAX_RANDOM = 2, 12, 42
# Laws of more operations are hardly found from so few rows, chosen or not.
COMPLEXITY = range(5, 15)


def drawn(law: Law, rows: int, share: float, rng: np.random.Generator) -> np.ndarray:
    """Random inputs in a share of each range, from its lower end."""
    columns = []
    for variable in law.variables:
        unit = share * rng.random(rows)
        if variable.scale == "log":
            columns.append(variable.low * (variable.high / variable.low) ** unit)
        else:
            columns.append(variable.low + (variable.high - variable.low) * unit)
    return np.stack(columns, axis=1)


def measured(law: Law, inputs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Values of the law with errors in proportion to each."""
    clean = evaluate(law.expression, inputs)
    return clean * (1.0 + ERROR * rng.standard_normal(len(inputs)))


def solved(law: Law, inputs: np.ndarray, target: np.ndarray, steps: int, suggest: int) -> Solution:
    """The answer of enumeration alone, which is quick, with suggestions in the ranges of the law."""
    dataset = dataset_from_arrays(inputs, target, names=law.names, target_name=law.output)
    ranges = {variable.name: (variable.low, variable.high) for variable in law.variables}
    return solve_dataset(
        dataset,
        steps=steps,
        generators=("enumeration",),
        suggest_next=suggest,
        suggest_range=ranges if suggest else None,
    )


def is_law(law: Law, solution: Solution) -> bool:
    """Whether the answer has the form of the law."""
    best = solution.best
    return best is not None and has_form(law, best.expression, seed=0, dummy=0)


def rows_needed(law: Law, inputs: np.ndarray, seed: list[int], steps: int, suggested: bool) -> int | None:
    """Rows added to the first ones until the answer is the law twice running; None if they do not suffice."""
    rng = np.random.default_rng([*seed, int(suggested)])
    target = measured(law, inputs, np.random.default_rng([*seed, 7]))
    first, most = len(inputs), MAX_SUGGESTED if suggested else MAX_RANDOM
    found: int | None = None
    solution = solved(law, inputs, target, steps, BY_SUGGESTION if suggested else 0)
    while len(inputs) - first < most:
        added = len(inputs) - first
        if suggested:
            plan = solution.next_measurements
            points = plan.points if plan is not None else ()
            # One law is left, and is not the right one: as a user would, measure somewhere.
            more = np.array([point.inputs for point in points]) if points else drawn(law, 1, 1.0, rng)
        else:
            more = drawn(law, max(2, added // 2), 1.0, rng)
        inputs = np.vstack([inputs, more])
        target = np.concatenate([target, measured(law, more, rng)])
        solution = solved(law, inputs, target, steps, BY_SUGGESTION if suggested else 0)
        if not is_law(law, solution):
            found = None
        elif found is not None:
            return found
        else:
            found = len(inputs) - first
    return found


def one(law: Law, seed: int, steps: int) -> dict[str, Any]:
    """The rows that a law needs in either way."""
    key = [seed, sum(map(ord, law.id))]
    inputs = drawn(law, FIRST_ROWS, FIRST_SHARE, np.random.default_rng(key))
    line: dict[str, Any] = {"law": law.id, "text": law.text, "seed": seed}
    if not np.isfinite(evaluate(law.expression, inputs)).all():
        return line | {"status": "not finite"}
    target = measured(law, inputs, np.random.default_rng([*key, 7]))
    if is_law(law, solved(law, inputs, target, steps, 0)):
        return line | {"status": "determined by the first rows"}
    rng = np.random.default_rng([*key, 8])
    many = drawn(law, ENOUGH_ROWS, 1.0, rng)
    if not is_law(law, solved(law, many, measured(law, many, rng), steps, 0)):
        return line | {"status": "not found from many rows"}
    needed = {
        name: rows_needed(law, inputs, key, steps, name == "suggested") for name in ("suggested", "random")
    }
    return line | {"status": "measured", **needed}


def candidates(seed: int) -> list[Law]:
    """Development laws of one or two inputs, of moderate complexity, in random order."""
    laws = [
        law
        for law in load_suite("dev")
        if len(law.variables) <= 2 and "si" not in law.tags and complexity(law.expression) in COMPLEXITY
    ]
    order = np.random.default_rng(seed).permutation(len(laws))
    return [laws[place] for place in order]


def report(lines: list[dict[str, Any]]) -> None:
    """Print the rows of each law, and their medians."""
    some = [line for line in lines if line["status"] == "measured"]
    ratios = []
    for line in some:
        print(f"{line['law']:12} {line['suggested']!s:>5} {line['random']!s:>5}  {line['text']}")
        if line["suggested"] is not None:
            # A law that random rows did not determine needs more than were tried.
            ratios.append(line["suggested"] / (line["random"] or MAX_RANDOM))
    determined = [sum(line[way] is not None for line in some) for way in WAYS]
    print(f"{len(some)} laws; determined by suggested rows {determined[0]}, by random rows {determined[1]}")
    if ratios:
        share = sum(ratio <= 1 / 3 for ratio in ratios)
        print(f"median ratio {statistics.median(ratios):.2f}; at most a third: {share} of {len(ratios)}")


def main() -> None:
    """Run or continue a measurement."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--laws", type=int, default=12)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--new", type=int, help="stop after so many new lines")
    options = parser.parse_args()
    lines: list[dict[str, Any]] = []
    if options.results.exists():
        lines = [json.loads(line) for line in options.results.read_text().splitlines()]
    done = {line["law"] for line in lines}
    fresh = 0
    options.results.parent.mkdir(parents=True, exist_ok=True)
    for law in candidates(options.seed):
        enough = sum(line["status"] == "measured" for line in lines) >= options.laws
        if enough or (options.new is not None and fresh >= options.new):
            break
        if law.id in done:
            continue
        lines.append(one(law, options.seed, options.steps))
        fresh += 1
        with options.results.open("a") as stream:
            stream.write(json.dumps(lines[-1]) + "\n")
    report(lines)


if __name__ == "__main__":
    main()
