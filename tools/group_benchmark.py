"""Recovery of laws with groups: the eight problems of PhySO's Class benchmark.

Tenachi et al., "Class symbolic regression: gotta fit 'em all" (2024, arXiv:2312.01816): `var` columns are
measured, the constants called `spe` differ from group to group, the numbers of a formula are shared. A law
counts as recovered if its form meets noise-free rows of new groups, its constants fitted anew, to a relative
loss of 1e-10, and has no more constants than the true one. With `--groups 1` it is solved as any table.

    python tools/group_benchmark.py --groups 10 --rows 100 --noise 0,0.01 --seed 0,1 --steps 300
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from physdiffuser import solve
from physdiffuser.core.solution import Equation
from physdiffuser.expressions import Apply, Expression, Number, Parameter, Variable, evaluate, parse
from physdiffuser.expressions.tree import substitute, walk
from physdiffuser.fitting import fit_constants

FloatArray = npt.NDArray[np.float64]
PROBLEMS = Path(__file__).parent.parent / "benchmarks_feynman" / "data" / "class_problems.csv"
SAME, NEW_GROUPS, STARTS = 1e-10, 4, 64


@dataclass(frozen=True)
class Problem:
    """A row of the table of problems."""

    number: str
    formula: Expression
    target: str
    measured: list[tuple[str, float, float]]
    specific: list[tuple[str, float, float]]

    @property
    def constants(self) -> int:
        """Constants of the true form: specific ones and numbers that are no exponents or signs."""
        numbers = [node for node in walk(self.formula) if isinstance(node, Number) and abs(node.value) != 1]
        return len(self.specific) + len(numbers)

    def rows(self, groups: int, rows: int, seed: int) -> tuple[FloatArray, FloatArray, npt.NDArray[np.intp]]:
        """Inputs, target and group of each row."""
        random = np.random.default_rng([seed, int(self.number)])
        inputs = np.column_stack([random.uniform(a, b, groups * rows) for _, a, b in self.measured])
        codes = np.repeat(np.arange(groups), rows)
        own = [random.uniform(a, b, groups)[codes] for _, a, b in self.specific]
        return inputs, evaluate(self.formula, np.column_stack([inputs, *own])), codes


def problems() -> list[Problem]:
    """All eight."""
    found = []
    with PROBLEMS.open(encoding="utf-8") as stream:
        for row in csv.DictReader(stream, delimiter=";"):
            every = [
                (row[f"v{i}_name"], row[f"v{i}_type"], float(row[f"v{i}_low"]), float(row[f"v{i}_high"]))
                for i in range(1, 5)
                if row.get(f"v{i}_name")
            ]
            measured = [(name, low, high) for name, kind, low, high in every if kind == "var"]
            specific = [(name, low, high) for name, kind, low, high in every if kind == "spe"]
            names = [name for name, _, _ in (*measured, *specific)]
            formula = parse(row["Formula"], names)
            found.append(Problem(row["Number"], formula, row["Output_name"], measured, specific))
    return found


def form_of(equation: Equation, columns: int) -> tuple[Expression, int]:
    """The form with a parameter for each number and each constant of a group, and how many there are."""
    position: dict[Expression, int] = {}

    def replace(node: Expression) -> Expression | None:
        if isinstance(node, Apply) and node.operator == "pow" and isinstance(node.arguments[1], Number):
            return Apply("pow", (substitute(node.arguments[0], replace), node.arguments[1]))
        if isinstance(node, Variable) and node.index >= columns:
            return Parameter(position.setdefault(node, len(position)))
        if isinstance(node, Number) and abs(node.value) != 1:
            return Parameter(position.setdefault(Number(float(node.value)), len(position)))
        return None

    return substitute(equation.expression, replace), len(position)


def recovered(problem: Problem, equation: Equation) -> bool:
    """Whether the form is that of the law."""
    form, constants = form_of(equation, len(problem.measured))
    if constants > problem.constants:
        return False
    inputs, target, codes = problem.rows(NEW_GROUPS, 60, 10_000)
    fits = [
        fit_constants(form, inputs[codes == code], target[codes == code], starts=STARTS)
        for code in range(NEW_GROUPS)
    ]
    return all(fit.loss < SAME for fit in fits)


def run(problem: Problem, groups: int, rows: int, noise: float, seed: int, **budget: Any) -> dict[str, Any]:
    """Solve one problem; a record of what was found."""
    inputs, target, codes = problem.rows(groups, rows, seed)
    random = np.random.default_rng([seed, 99])
    target = target + noise * target.std() * random.normal(size=target.size)
    names = [name for name, _, _ in problem.measured]
    begun = time.monotonic()
    own = codes if groups > 1 else None
    found = solve(inputs, target, names=names, target=problem.target, groups=own, **budget).best
    return {
        "problem": problem.number,
        "groups": groups,
        "rows": rows,
        "noise": noise,
        "seed": seed,
        "recovered": found is not None and recovered(problem, found),
        "expression": None if found is None else found.text,
        "seconds": round(time.monotonic() - begun, 1),
    }


def main() -> int:
    """Run the benchmark; one JSON line a problem on stdout, the rates on stderr."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--groups", type=int, default=10)
    parser.add_argument("--rows", type=int, default=100, help="rows of each group")
    parser.add_argument("--noise", default="0", help="shares of the target's deviation")
    parser.add_argument("--seed", default="0")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--only", default="", help="numbers of problems")
    chosen = parser.parse_args()
    for noise in map(float, chosen.noise.split(",")):
        records = []
        for seed in map(int, chosen.seed.split(",")):
            for problem in problems():
                if not chosen.only or problem.number in chosen.only.split(","):
                    record = run(problem, chosen.groups, chosen.rows, noise, seed, steps=chosen.steps)
                    print(json.dumps(record), flush=True)
                    records.append(record)
        rate = sum(record["recovered"] for record in records) / len(records)
        print(f"noise {noise:g}: {100 * rate:.1f} % of {len(records)} runs", file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
