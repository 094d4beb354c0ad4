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
from collections.abc import Generator, Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import TypeVar

import numpy as np
from device_peaks import best_of, peaks

from physdiffuser.core.problem import Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.device import HOST, open_device
from physdiffuser.errors import UsageError
from physdiffuser.expressions import evaluate, parse
from physdiffuser.expressions.tree import positions
from physdiffuser.generation.enumeration.context import PROBES, Context, TransformedTarget
from physdiffuser.generation.enumeration.exact import ExactTable
from physdiffuser.generation.enumeration.registry import Size
from physdiffuser.generation.enumeration.screening import TopK, by_cost, screening_table
from physdiffuser.generation.enumeration.stages.exact_pairs import pairs as exact_pairs
from physdiffuser.generation.enumeration.stages.products import screen_products, screen_singles
from physdiffuser.generation.enumeration.stages.scaled_sums import SCALED_PAIRS, screen_scaled_sums
from physdiffuser.generation.enumeration.stages.sums import screen_sums
from physdiffuser.generation.neighbours.replacements import ROWS, Replacements
from physdiffuser.transforms.transform import OutputTransform

Result = TypeVar("Result")
LAW, NAMES = "v*log(p/q) - g*t/(1 + p)", ("v", "p", "q", "g", "t")
NEARLY = "v*log(p/q) - g*t/(3/2 + p*sqrt(p)/2)"


def spend(pieces: Iterable[object]) -> None:
    """Do all the work of an iterator."""
    for _ in pieces:
        continue


def returned(work: Generator[float, None, Result]) -> Result:
    """Do all the work of a generator; what it returns."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: Result = end.value
            return result


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
    reduction = Reduction.of_columns((), range(len(NAMES)))
    whole = OutputTransform(())
    print("| search | pairs | seconds | pairs a second | share of the matrix product |")
    print("|---|---|---|---|---|")

    def line(name: str, pairs: float, seconds: float, work: float) -> None:
        share = f"{100 * work / seconds / peak:.0f} %" if work else "-"
        print(f"| {name} | {pairs:.2g} | {seconds:.2f} | {pairs / seconds:.2g} | {share} |")

    if device is HOST:
        context = Context(table(0.0))
        inputs = context.problem.inputs[context.exact_rows]
        features = reduction.values(inputs)
        exact_library = returned(context.library("exact", reduction, features, 12 * chosen.entries))
        target = context.problem.target[context.exact_rows]
        tried = chosen.entries

        def lookups() -> None:
            exact = ExactTable(exact_library, reduction, target, context.tolerance)
            spend(exact_pairs(exact, (whole,), tried))

        size = exact_library.size
        line(f"hash, {tried:,} A, {size:,} B", float(tried) * size, best_of(2, lookups), 0)
    problem = table(0.05)
    screening = returned(screening_table(Context(problem, device), Size(chosen.entries), reduction))
    only = TransformedTarget(whole, *screening.transformed[0][1:])
    screening = replace(screening, transformed=[only])
    factors = by_cost(screening.library, affine=False)[: chosen.entries // 10]
    count, rows = len(screening.order), PROBES

    def sums() -> None:
        spend(screen_sums(screening, TopK()))

    pairs = count * (count - 1) / 2
    line(f"sums, {count:,} entries", pairs, best_of(chosen.repeats, sums, device), 2 * rows * pairs)

    def products() -> None:
        top_k = TopK()
        spend(chain(screen_singles(screening, top_k), screen_products(screening, factors, top_k)))

    pairs = float(count) * len(factors)
    line(f"products, {len(factors):,} A", pairs, best_of(chosen.repeats, products, device), 6 * rows * pairs)
    some = factors[~screening.library.functions[factors]][:40]
    fewer = replace(screening, order=screening.order[:2_000])

    def scaled() -> None:
        spend(screen_scaled_sums(fewer, some, TopK()))

    pairs = float(len(some)) * min(SCALED_PAIRS, min(count, 2_000) ** 2)
    line(f"scaled sums, {len(some)} D", pairs, best_of(chosen.repeats, scaled, device), 2 * rows * pairs)
    nearly = parse(NEARLY, NAMES)
    residual = problem.target - evaluate(nearly, problem.inputs)
    replacements = Replacements(problem, device)

    def places() -> None:
        replacements.of(nearly, residual, most=24)

    blocks, asked = replacements.building_blocks, len(positions(nearly)) - 1
    pairs = float(asked) * (len(blocks.factors) + 1) * len(blocks.nats)
    name = f"places, {asked} with {len(blocks.factors) + 1} A and {len(blocks.nats):,} B each"
    line(name, pairs, best_of(chosen.repeats, places, device), 6 * ROWS * pairs)


if __name__ == "__main__":
    main()
