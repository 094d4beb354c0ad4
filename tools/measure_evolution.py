"""What the evolution generator recovers alone on the development laws, and what each part of it is worth.

    python tools/measure_evolution.py [--every 6] [--steps 40] [--noise 0.01] [--option demands=0]

A law counts as recovered when a candidate is right on 1,000 fresh rows of the clean law to 1e-9 of their
spread (without noise), or to 0.3 of the noise. Times are processor seconds of one thread (set
OMP_NUM_THREADS=1), from the first step. With noise this tells that the values are close, not that
the form is the law's.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchmarks_feynman.sampling import sample
from benchmarks_feynman.suites import Law, load_suite
from physdiffuser.core.problem import Budget, Problem
from physdiffuser.expressions import evaluate, to_text
from physdiffuser.generation.evolution import EvolutionGenerator
from physdiffuser.generation.evolution.policy import POLICY
from physdiffuser.search.archive import ParetoArchive

EXACT = 1e-9
ROWS = 300


def run(
    law: Law, steps: int, noise: float, seed: int, options: dict[str, int]
) -> tuple[float | None, float, str]:
    """Processor seconds to the law (None if not found), the rate of scored formulas, and the formula."""
    table = sample(law, rows=law.rows or ROWS, noise=noise, dummy=law.dummy, seed=seed)
    fresh = sample(law, rows=1000, dummy=law.dummy, seed=seed, stream="test")
    loss = "robust" if law.outliers else "squared"
    problem = Problem(table.inputs, table.target, table.names, loss=loss, seed=seed)  # type: ignore[arg-type]
    archive = ParetoArchive(problem)
    generator = EvolutionGenerator(policy=replace(POLICY, **options))  # type: ignore[arg-type]
    limit = max(EXACT, 0.3 * noise)
    start = time.process_time()
    for candidate in generator.propose(problem, archive, Budget(steps)):
        if not archive.offer(candidate):
            continue
        values = evaluate(candidate.expression, fresh.inputs)
        with np.errstate(all="ignore"):
            error = np.sqrt(np.mean((values - fresh.clean) ** 2)) / np.std(fresh.clean)
        if error < limit:
            seconds = time.process_time() - start
            return seconds, generator.scored / seconds, to_text(candidate.expression, table.names, 4)
    seconds = time.process_time() - start
    front = archive.front()
    text = to_text(front[-1].candidate.expression, table.names, 4) if front else ""
    return None, generator.scored / seconds, text


def _option(text: str) -> tuple[str, int]:
    name, _, value = text.partition("=")
    return name, int(value)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each law and a summary."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--every", type=int, default=6, help="take every n-th law")
    parser.add_argument("--only", default="", help="ids of laws, instead of every n-th")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--noise", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--option", action="append", type=_option, default=[], help="of EvolutionPolicy")
    options = parser.parse_args(arguments)
    laws = load_suite("dev")
    wanted = set(options.only.split(",")) - {""}
    laws = tuple(law for law in laws if law.id in wanted) if wanted else laws[:: options.every]
    times: list[float] = []
    rates: list[float] = []
    for law in laws:
        seconds, rate, text = run(law, options.steps, options.noise, options.seed, dict(options.option))
        rates.append(rate)
        if seconds is not None:
            times.append(seconds)
        shown = "     -" if seconds is None else f"{seconds:6.2f}"
        print(f"{law.id} {law.name[:32]:32} {shown} s  {text[:110]}", flush=True)
    middle = f"{np.median(times):.2f} s" if times else "-"
    print(
        f"recovered {len(times)} of {len(laws)}, median {middle}, "
        f"{np.mean(rates):.0f} formulas scored a second (processor time)"
    )


if __name__ == "__main__":
    main()
