"""How often a law is claimed for tables in which the columns explain nothing.

    python tools/measure_pure_noise.py --tables 200 --seed 1 --steps 20

Every table has 8 to 1,000 rows, one to five columns (uniform or log-normal) and a target that is independent
of them: normal, Student's t with three degrees of freedom, exponential, or a constant with small errors. A
law is claimed if the chosen formula has a column in it. Prints the claims, and how many are *verified*.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np

KINDS = ("normal", "student", "exponential", "offset")


def one(number: int, seed: int, steps: int) -> tuple[int, str, str, str, bool]:
    """Solve one table: rows, kind of noise, formula, verdict, and whether a law is claimed."""
    from physdiffuser.data.arrays import dataset_from_arrays
    from physdiffuser.expressions.tree import variables
    from physdiffuser.pipeline import solve_dataset

    rng = np.random.default_rng([seed, number])
    rows, columns = round(np.exp(rng.uniform(np.log(8), np.log(1000)))), int(rng.integers(1, 6))
    shape = (rows, columns)
    inputs = rng.uniform(1, 5, shape) if rng.random() < 0.5 else np.exp(rng.standard_normal(shape))
    kind = str(rng.choice(KINDS))
    target = {
        "normal": rng.standard_normal(rows),
        "student": rng.standard_t(3, rows),
        "exponential": rng.exponential(size=rows),
        "offset": 10 + 0.1 * rng.standard_normal(rows),
    }[kind]
    names = [f"x{column + 1}" for column in range(columns)]
    dataset = dataset_from_arrays(inputs, target, names=names, target_name="y")
    best = solve_dataset(dataset, steps=steps).best
    if best is None:
        return rows, kind, "", "", False
    return rows, kind, best.text, best.verdict, bool(variables(best.expression))


def main() -> None:
    """Solve the tables and print the claims."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.jobs, mp_context=context) as pool:
        work = partial(one, seed=options.seed, steps=options.steps)
        results = list(pool.map(work, range(options.tables)))
    claims = [result for result in results if result[-1]]
    for rows, kind, text, verdict, _ in claims:
        print(f"{rows} rows, {kind}: {text} ({verdict})")
    verified = sum(verdict == "verified" for *_, verdict, _ in claims)
    print(f"{len(claims)} of {len(results)} tables have a law, {verified} of them verified")


if __name__ == "__main__":
    main()
