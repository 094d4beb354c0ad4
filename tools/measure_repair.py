"""Laws with one wrong part: how many of them the refiners repair in one turn.

    python tools/measure_repair.py --suite dev --every 12 --noise 0.01

A part of each law is replaced by another one, constants are fitted to 200 rows, and each refiner has a turn
on the result. A law is repaired when one of the eight candidates that fit best has its form, as in
`physdiffuser.training.recovery`. Seconds are of the processor.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import time
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks_feynman.sampling import Table, sample
from benchmarks_feynman.suites import Law, load_suite
from physdiffuser.core.candidate import Candidate
from physdiffuser.core.problem import Budget, Problem
from physdiffuser.expressions import Apply, Expression, Number, Variable, evaluate, to_text
from physdiffuser.expressions.tree import free_constants, positions, replace_at, size, variables
from physdiffuser.fitting import fit_constants
from physdiffuser.models.tokens.skeleton import with_linear_coefficients, without_linear_coefficients
from physdiffuser.search.archive import ParetoArchive
from physdiffuser.search.stopping import POLICY
from physdiffuser.training.recovery import agrees

REFINERS = ("neighbours", "infilling")
_ROWS, _CHECKED, _ATTEMPTS, _MAX_LAW, _MAX_PART = 200, 8, 12, 30, 7


def has_form(expression: Expression, clean: Table) -> bool:
    """Whether the formula is the law once its constants are fitted to clean rows."""
    skeleton, values = free_constants(expression)
    if values:
        expression = fit_constants(skeleton, clean.inputs, clean.target, initial=values).expression
    return agrees(expression, clean.inputs, clean.target)


def spoiled(law: Law, table: Table, clean: Table) -> Expression | None:
    """The law with a part exchanged, constants fitted; None if no exchange gives another form."""
    rng = np.random.default_rng(zlib.crc32(law.id.encode()))
    found = positions(law.expression)
    places = [(path, node) for path, node in found if path and 2 <= size(node) <= _MAX_PART]
    places = [(path, node) for path, node in places if variables(node)]
    for _ in range(_ATTEMPTS if places else 0):
        path, node = places[int(rng.integers(len(places)))]
        column = Variable(int(rng.choice(sorted(variables(node)))))
        parts = (
            column,
            Apply("sqrt", (column,)),
            Apply("mul", (Number(0.7), column)),
            Apply("exp", (Apply("neg", (column,)),)),
            Apply("pow", (column, Number(2))),
            Apply("add", (Number(1.3), column)),
        )
        wrong = replace_at(law.expression, path, parts[int(rng.integers(len(parts)))])
        skeleton = with_linear_coefficients(without_linear_coefficients(wrong))
        fit = fit_constants(skeleton, table.inputs, table.target)
        if np.isfinite(fit.loss) and not has_form(fit.expression, clean):
            return fit.expression
    return None


def repaired(name: str, wrong: Expression, table: Table, clean: Table) -> tuple[bool, float]:
    """Whether a turn of a refiner finds the form, and the seconds that it takes."""
    problem = Problem(inputs=table.inputs, target=table.target, names=table.names, seed=0)
    archive = ParetoArchive(problem)
    archive.offer(Candidate(wrong, "spoiled"))
    began = time.process_time()
    generator: Any = importlib.import_module(f"physdiffuser.generation.{name}").build()
    found = [one.expression for one in generator.propose(problem, archive, Budget(POLICY.refiner_steps))]
    seconds = time.process_time() - began

    def misfit(expression: Expression) -> float:
        error = float(np.mean(np.square(evaluate(expression, table.inputs) - table.target)))
        return error if np.isfinite(error) else float("inf")

    return any(has_form(one, clean) for one in sorted(found, key=misfit)[:_CHECKED]), seconds


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each law and the counts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--suite", default="dev")
    parser.add_argument("--every", type=int, default=12)
    parser.add_argument("--noise", type=float, default=0.01)
    chosen = parser.parse_args(arguments)
    outcomes: list[tuple[bool, ...]] = []
    seconds: list[tuple[float, ...]] = []
    with np.errstate(all="ignore"):
        for law in load_suite(chosen.suite)[:: chosen.every]:
            table = sample(law, rows=_ROWS, seed=0, noise=chosen.noise)
            clean = sample(law, rows=_ROWS, seed=1, stream="test")
            wrong = spoiled(law, table, clean) if size(law.expression) <= _MAX_LAW else None
            if wrong is None:
                continue
            results = [repaired(name, wrong, table, clean) for name in REFINERS]
            outcomes.append(tuple(good for good, _ in results))
            seconds.append(tuple(used for _, used in results))
            print(law.id, outcomes[-1], to_text(wrong, table.names, digits=3), flush=True)
    for place, name in enumerate(REFINERS):
        alone = sum(one[place] and sum(one) == 1 for one in outcomes)
        median = statistics.median(used[place] for used in seconds)
        total = sum(one[place] for one in outcomes)
        print(f"{name}: {total} of {len(outcomes)}, {alone} by it alone, median {median:.2f} s")


if __name__ == "__main__":
    main()
