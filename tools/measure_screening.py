"""How many pairs of formulas a second each search looks at, beside what the machine can do.

    OMP_NUM_THREADS=1 python tools/measure_screening.py [--entries 10000] [--repeats 5] [--device cuda]

* hash: exact lookups of `T(y) = A*(a + b*B)`, all B of a library answered by one query for each A;
* sums: the best `a + b*A + c*B` over all pairs, by a correlation matrix;
* products: the best `A*(a + b*B)` over all pairs, by three matrix products for each block of A;
* scaled sums: the best `D*(a + b*A + c*B)`, A among the 96 that alone say most;
* places: the best `A*(a + b*B)`, `b*A*B` and `A*B` in each place of a formula, all B that neighbours hold.

One thread, processor seconds, best of several. The share is of the single-precision matrix product measured
in the same run, counting only the multiplications and additions of the matrix products that the question
needs: 2 x 320 rows for a pair of sums, 6 x 320 for a product, 6 x 256 for a pair in a place.

With `--device cuda` the matrix products are the GPU's, and so is the one that they are held against; seconds
are then those of the wall, from before the first array is sent until the last find has been looked at.
`cpu-torch` does the same by torch on one thread. Exact lookups are no matrix products and are left out.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence

import numpy as np
from device_peaks import best_of, peaks

from physdiffuser.core.problem import Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.device import HOST, open_device
from physdiffuser.errors import UsageError
from physdiffuser.expressions import evaluate, parse
from physdiffuser.expressions.places import positions
from physdiffuser.generation.enumeration import clean, noisy
from physdiffuser.generation.enumeration.run import Run
from physdiffuser.generation.neighbours.replacements import ROWS, Replacements
from physdiffuser.library.expression_library import Library
from physdiffuser.transforms.output_transforms import OutputTransform

LAW, NAMES = "v*log(p/q) - g*t/(1 + p)", ("v", "p", "q", "g", "t")
NEARLY = "v*log(p/q) - g*t/(3/2 + p*sqrt(p)/2)"


def spend(pieces: Iterable[object]) -> None:
    """Do all the work of an iterator."""
    for _ in pieces:
        continue


def table(noise: float) -> Problem:
    """1,000 rows of a law of five columns."""
    random = np.random.default_rng(0)
    inputs = random.uniform(1.0, 5.0, (1_000, len(NAMES)))
    target = evaluate(parse(LAW, NAMES), inputs)
    return Problem(inputs, target + noise * random.normal(size=1_000), NAMES)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the rates."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--entries", type=int, default=10_000, help="of the library")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--device", choices=("cpu", "cuda", "cpu-torch"), default="cpu")
    chosen = parser.parse_args(arguments)
    try:
        device = open_device(chosen.device)
    except UsageError as error:
        parser.error(str(error))
    peak, bandwidth = peaks(chosen.repeats, device)
    where = "" if device is HOST else f"by torch on {device.describe()}, "
    print(
        f"{where}matrix product in single precision: {peak / 1e9:.0f} GFLOP/s; "
        f"copy: {bandwidth / 1e9:.0f} GB/s"
    )
    frame = Reduction.of_columns((), range(len(NAMES)))
    whole = OutputTransform(())
    print("| search | pairs | seconds | pairs a second | share of the matrix product |")
    print("|---|---|---|---|---|")

    def line(name: str, pairs: float, seconds: float, work: float) -> None:
        share = f"{100 * work / seconds / peak:.0f} %" if work else "-"
        print(f"| {name} | {pairs:.2g} | {seconds:.2f} | {pairs / seconds:.2g} | {share} |")

    if device is HOST:
        run = Run(table(0.0))
        features = frame.values(run.problem.inputs[run.clean_rows])
        *_, library = run.library("exact", frame, features, 12 * chosen.entries)
        assert isinstance(library, Library)
        target = run.problem.target[run.clean_rows]
        tried = chosen.entries

        def lookups() -> None:
            spend(clean.lookups(library, frame, target, (whole,), tried, run.tolerance))

        line(f"hash, {tried:,} A, {library.size:,} B", float(tried) * library.size, best_of(2, lookups), 0)
    run = Run(table(0.05))
    features = frame.values(run.problem.inputs[run.noisy_rows])
    *_, library = run.library("rows", frame, features, chosen.entries)
    assert isinstance(library, Library)
    ranked = np.argsort(library.costs, kind="stable")
    order = noisy.distinct(library, ranked, affine=True)[: chosen.entries]
    factors = noisy.distinct(library, ranked, affine=False)[: chosen.entries // 10]
    transformed = [(whole, *run.transformed(frame)[0][1:])]
    count, rows = len(order), noisy.PROBES

    def sums() -> None:
        spend(noisy.screen_sums(library, order, frame, transformed, noisy.TopK(), device))

    pairs = count * (count - 1) / 2
    line(f"sums, {count:,} entries", pairs, best_of(chosen.repeats, sums, device), 2 * rows * pairs)

    def products() -> None:
        spend(noisy.screen_products(library, order, frame, transformed, factors, noisy.TopK(), device))

    pairs = float(count) * len(factors)
    line(f"products, {len(factors):,} A", pairs, best_of(chosen.repeats, products, device), 6 * rows * pairs)
    some = factors[~library.functions[factors]][:40]

    def scaled() -> None:
        top_k = noisy.TopK()
        spend(noisy.screen_scaled_sums(library, order[:2_000], frame, transformed, some, top_k, device))

    pairs = float(len(some)) * min(noisy.SCALED_PAIRS, min(count, 2_000) ** 2)
    line(f"scaled sums, {len(some)} D", pairs, best_of(chosen.repeats, scaled, device), 2 * rows * pairs)
    nearly = parse(NEARLY, NAMES)
    residual = run.problem.target - evaluate(nearly, run.problem.inputs)
    replacements = Replacements(run.problem, device)

    def places() -> None:
        replacements.of(nearly, residual, most=24)

    stock, asked = replacements.stock, len(positions(nearly)) - 1
    pairs = float(asked) * (len(stock.factors) + 1) * len(stock.nats)
    name = f"places, {asked} with {len(stock.factors) + 1} A and {len(stock.nats):,} B each"
    line(name, pairs, best_of(chosen.repeats, places, device), 6 * ROWS * pairs)


if __name__ == "__main__":
    main()
