"""How many laws a learned generator recovers by itself: one round, no search.

    python -m physdiffuser.training.recovery --suite dev --generator diffusion --weights runs/small/model

prints one JSON object with the rate, a bootstrap interval, and what was found for each law. A law counts as
recovered when some candidate agrees with it on fresh rows to within rounding (noise 0) or has its form, so
that refitting it on clean rows agrees to within rounding (noise above 0).
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.problem import Budget, Problem
from physdiffuser.expressions import Expression, evaluate, to_text
from physdiffuser.expressions.tree import free_constants
from physdiffuser.fitting import fit_constants
from physdiffuser.search.archive import ParetoArchive
from physdiffuser.training.decontamination import Excluded

if TYPE_CHECKING:
    from benchmarks_feynman.suites import Law


AGREEMENT = 1e-6
_CHECKED = 8


@dataclass(frozen=True)
class Recovery:
    """What happened to one law.

    Attributes
    ----------
    law
        Its identifier.
    excluded
        Whether the law is one of those kept out of training; the others are arithmetic of at most nine
        tokens (but for a constant in front).
    recovered
        Whether a candidate agrees with it.
    expression
        That candidate, or the best one.
    seconds
        Time taken to write and fit all candidates.
    candidates
        How many distinct ones were fitted.
    """

    law: str
    excluded: bool
    recovered: bool
    expression: str
    seconds: float
    candidates: int


def agrees(expression: Expression, inputs: FloatArray, target: FloatArray) -> bool:
    """Whether the formula equals the target on every row, up to `AGREEMENT` of the target's spread."""
    value = evaluate(expression, inputs)
    scale = max(float(target.std()), float(np.abs(target).max()) * 1e-6)
    return bool(np.isfinite(value).all() and np.abs(value - target).max() <= AGREEMENT * scale)


def attempt(law: Law, generator: Any, *, rows: int, noise: float, seed: int) -> Recovery:
    """Let a generator write its candidates for one law.

    Parameters
    ----------
    law
        Of a suite.
    generator
        A learned generator with as many rounds as are wanted.
    rows, noise, seed
        Of the table it sees.
    """
    from benchmarks_feynman.sampling import sample

    kept_out = Excluded([law.expression]).long > 0
    table = sample(law, rows=rows, seed=seed, noise=noise)
    clean = sample(law, rows=rows, seed=seed + 1, stream="test")
    problem = Problem(inputs=table.inputs, target=table.target, names=tuple(table.names), seed=seed)
    began = time.perf_counter()
    found = list(generator.propose(problem, ParetoArchive(problem), Budget(steps=10**9)))
    seconds = time.perf_counter() - began

    def misfit(expression: Expression) -> float:
        with np.errstate(all="ignore"):
            residual = evaluate(expression, table.inputs) - table.target
            error = float(np.mean(np.square(residual)))
        return error if np.isfinite(error) else float("inf")

    ranked = sorted((candidate.expression for candidate in found), key=misfit)
    best = to_text(ranked[0], table.names, digits=4) if ranked else ""
    for expression in ranked[:_CHECKED]:
        judged = expression
        if noise:
            skeleton, values = free_constants(expression)
            if values:
                judged = fit_constants(skeleton, clean.inputs, clean.target, initial=values).expression
        if agrees(judged, clean.inputs, clean.target):
            text = to_text(expression, table.names, digits=4)
            return Recovery(law.id, kept_out, True, text, round(seconds, 3), len(found))
    return Recovery(law.id, kept_out, False, best, round(seconds, 3), len(found))


def interval(outcomes: Sequence[bool], samples: int = 2000) -> tuple[float, float]:
    """95 % bootstrap interval of a rate, by resampling laws."""
    values = np.array(outcomes, dtype=np.float64)
    rng = np.random.default_rng(0)
    rates = values[rng.integers(0, len(values), (samples, len(values)))].mean(axis=1)
    low, high = np.quantile(rates, (0.025, 0.975))
    return float(low), float(high)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure one generator on one suite and print a JSON object."""
    from benchmarks_feynman.suites import SUITES, load_suite

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--suite", choices=SUITES, default="dev")
    parser.add_argument("--generator", choices=("diffusion", "autoregressive"), default="autoregressive")
    parser.add_argument("--weights", help="folder of weights; the shipped ones when not given")
    parser.add_argument("--attention", help="variant of the shipped weights")
    parser.add_argument("--candidates", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=1, help="of as many candidates each")
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--noise", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=int, default=1, help="take every n-th law only")
    parser.add_argument("--options", type=json.loads, default={}, help="further generator options, as JSON")
    parser.add_argument("--threads", type=int, default=0, help="threads of torch; its own choice when 0")
    chosen = parser.parse_args(arguments)
    if chosen.threads:
        import torch

        torch.set_num_threads(chosen.threads)
    package = importlib.import_module(f"physdiffuser.generation.{chosen.generator}")
    results: list[Recovery] = []
    laws = load_suite(chosen.suite)[:: chosen.every]
    for law in laws:
        generator = package.build(
            candidates=chosen.candidates,
            rounds=chosen.rounds,
            attention=chosen.attention,
            weights=chosen.weights,
            **chosen.options,
        )
        results.append(attempt(law, generator, rows=chosen.rows, noise=chosen.noise, seed=chosen.seed))
        print(f"{len(results)}/{len(laws)} {results[-1]}", file=sys.stderr)
    outcomes = [result.recovered for result in results]
    summary = {
        "suite": chosen.suite,
        "generator": chosen.generator,
        "laws": len(results),
        "recovered": sum(outcomes),
        "excluded": sum(result.excluded for result in results),
        "excluded_recovered": sum(result.excluded and result.recovered for result in results),
        "rate": round(sum(outcomes) / max(1, len(outcomes)), 4),
        "interval": [round(bound, 4) for bound in interval(outcomes)],
        "median_seconds": float(np.median([result.seconds for result in results])),
        "settings": {key: value for key, value in vars(chosen).items() if key != "weights"},
    }
    print(json.dumps({**summary, "results": [asdict(result) for result in results]}))


if __name__ == "__main__":
    main()
