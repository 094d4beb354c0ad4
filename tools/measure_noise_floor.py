"""How often noise is recognised before any law is known, by the kind of noise.

    python tools/measure_noise_floor.py --tables 80 --seed 1

Every table has a law of the development suite, every second one with some inputs turned into constants, and
60 to 2,000 rows. It is judged without noise, and with each kind of noise of 0.1, 1 and 10 per cent. Prints
the share of the tables that are said to be noisy.
"""

from __future__ import annotations

import argparse
import math
from collections import defaultdict

import numpy as np
from measure_trust import LEVELS, NOISES, is_usable, noisy, with_constants

from benchmarks_feynman.sampling import sample
from benchmarks_feynman.suites import select
from physdiffuser.core.problem import Problem
from physdiffuser.reduction.analysis import SharedAnalysis


def shows_noise(problem: Problem) -> bool:
    """Whether the analysis at the beginning of a search says that a table is noisy."""
    return SharedAnalysis(problem, []).first.noisy


def main() -> None:
    """Judge the tables and print the shares."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", type=int, default=80)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    laws = select(["dev"])
    said: dict[tuple[str, float], list[bool]] = defaultdict(list)
    for number in range(options.tables):
        rng = np.random.default_rng([options.seed, number])
        while True:
            law = laws[int(rng.integers(len(laws)))]
            law = with_constants(law, rng) if number % 2 else law
            if is_usable(law, options.seed):
                break
        rows = round(math.exp(rng.uniform(math.log(60), math.log(2000))))
        table = sample(law, rows=rows, seed=1000 * options.seed + number, dummy=int(rng.random() < 0.3))
        said["none", 0.0].append(shows_noise(Problem(table.inputs, table.clean, tuple(table.names))))
        for kind in NOISES:
            for level in LEVELS:
                target = noisy(table.clean, kind, level, rng)
                said[kind, level].append(shows_noise(Problem(table.inputs, target, tuple(table.names))))
    for (kind, level), answers in said.items():
        print(f"{kind} {level:g}: {100 * np.mean(answers):.0f} % of {len(answers)}")


if __name__ == "__main__":
    main()
