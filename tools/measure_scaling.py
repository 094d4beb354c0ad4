"""How the time to the law grows with the rows, the columns and the size of the law.

    OMP_NUM_THREADS=1 python tools/measure_scaling.py [--what rows,columns,size] [--noise 0,0.01] [--time 60]

Tables are drawn from one law, `m*c**2/sqrt(1 - v**2/c**2)`, with more rows, or with more columns that the
law does not need; and from sums of one to six products of two columns each, the law growing with every term.
Seconds are of the wall, from the arrays in memory to the answer; one thread where OMP_NUM_THREADS says so.
`yes` where the answer agrees with the law on 1,000 fresh rows: to 1e-9 without noise, to a tenth of the
noise with it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from physdiffuser.data import dataset_from_arrays
from physdiffuser.expressions import Expression, complexity, evaluate, parse
from physdiffuser.pipeline import solve_dataset

LAW, RANGES = "m*c**2/sqrt(1 - v**2/c**2)", {"m": (1.0, 5.0), "c": (3.0, 10.0), "v": (1.0, 2.0)}
ROWS = (30, 100, 1_000, 10_000, 100_000, 1_000_000)
COLUMNS = (3, 5, 10, 20, 50)
TERMS = (1, 2, 3, 4, 5, 6)


def draw(ranges: dict[str, tuple[float, float]], rows: int, idle: int, seed: int) -> npt.NDArray[np.float64]:
    """Rows of the law's columns and of some that it does not need."""
    random = np.random.default_rng(seed)
    every = [*ranges.values(), *[(1.0, 5.0)] * idle]
    return np.stack([random.uniform(low, high, rows) for low, high in every], axis=1)


def measure(
    law: str, ranges: dict[str, tuple[float, float]], rows: int, idle: int, noise: float, limit: float
) -> tuple[float, bool, Expression]:
    """Seconds, whether the law was found, and the law."""
    names = (*ranges, *(f"idle{number}" for number in range(idle)))
    tree = parse(law, names)
    inputs = draw(ranges, rows, idle, 0)
    clean = evaluate(tree, inputs)
    size = noise * float(np.sqrt(np.mean(clean**2)))
    target = clean + size * np.random.default_rng(1).normal(size=rows)
    dataset = dataset_from_arrays(inputs, target, names=names, target_name="y")
    start = time.perf_counter()
    solution = solve_dataset(dataset, time=limit)
    seconds = time.perf_counter() - start
    if solution.best is None:
        return seconds, False, tree
    fresh = draw(ranges, 1_000, idle, 2)
    wanted = evaluate(tree, fresh)
    with np.errstate(all="ignore"):
        off = np.abs(evaluate(solution.best.expression, fresh) - wanted)
    found = off.max() < 1e-9 * np.abs(wanted).max() if noise == 0 else np.sqrt(np.mean(off**2)) < 0.1 * size
    return seconds, bool(found), tree


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--what", default="rows,columns,size")
    parser.add_argument("--noise", default="0,0.01")
    parser.add_argument("--time", type=float, default=60.0)
    chosen = parser.parse_args(arguments)
    noises = [float(text) for text in chosen.noise.split(",")]
    head = "".join(f" noise {noise:g}: seconds | found |" for noise in noises)
    for what in chosen.what.split(","):
        print(f"\n| {what} |{head}\n|---|{'---|---|' * len(noises)}", flush=True)
        for number in {"rows": ROWS, "columns": COLUMNS, "size": TERMS}[what]:
            law, ranges, rows, idle = LAW, RANGES, 1_000, 0
            if what == "rows":
                rows = number
            elif what == "columns":
                idle = number - len(RANGES)
            else:
                pairs = [(f"a{term}", f"b{term}") for term in range(number)]
                law = " + ".join(f"{left}*{right}" for left, right in pairs)
                ranges = {name: (1.0, 5.0) for pair in pairs for name in pair}
            cells, label = "", f"{number:,}"
            for noise in noises:
                seconds, found, tree = measure(law, ranges, rows, idle, noise, chosen.time)
                cells += f" {seconds:.2f} | {'yes' if found else 'no'} |"
                if what == "size":
                    label = f"{number} of 2 columns, complexity {complexity(tree)}"
            print(f"| {label} |{cells}", flush=True)


if __name__ == "__main__":
    main()
