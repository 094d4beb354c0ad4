"""How long the learned generators take: loading, and writing 64 formulas for a table of 200 rows.

    python tools/benchmark_generators.py [--steps 20] [--repeat 3]

Prints processor seconds, and wall seconds in brackets, of the best of some repetitions, without the fitting
of constants. One thread.
"""

from __future__ import annotations

import argparse
import importlib
import time
from collections.abc import Callable, Sequence

import numpy as np

from physdiffuser.core.problem import Problem
from physdiffuser.search.archive import ParetoArchive


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Processor and wall seconds."""
    wall, used = time.perf_counter(), time.process_time()
    work()
    return time.process_time() - used, time.perf_counter() - wall


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the times."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=20, help="of diffusion")
    parser.add_argument("--repeat", type=int, default=3)
    chosen = parser.parse_args(arguments)
    print("import torch: {:.2f} s ({:.2f} s)".format(*timed(lambda: importlib.import_module("torch"))))
    import torch

    from physdiffuser.models.features.reading import Reader
    from physdiffuser.models.shipped import fast_bfloat16

    torch.set_num_threads(1)
    print(f"bfloat16 products: {'yes' if fast_bfloat16('cpu') else 'no, single precision is used'}")
    rng = np.random.default_rng(0)
    inputs = rng.uniform(1.0, 5.0, (200, 4))
    target = inputs[:, 0] * np.exp(-inputs[:, 1] / inputs[:, 2]) / inputs[:, 3] ** 2
    problem = Problem(inputs, target, ("a", "b", "c", "d"))
    archive, reader = ParetoArchive(problem), Reader(problem)
    sampling = {"diffusion": {"sampling": {"steps": chosen.steps, "windows": (32,)}}, "autoregressive": {}}
    for name, options in sampling.items():
        generator = importlib.import_module(f"physdiffuser.generation.{name}").build(device="cpu", **options)
        print("{}, reading the weights: {:.2f} s ({:.2f} s)".format(name, *timed(generator.model)))

        def write() -> None:
            for _ in generator.skeletons(problem, reader, archive, 0):  # noqa: B023
                pass

        best = min(timed(write) for _ in range(chosen.repeat))
        print("{}, 64 formulas: {:.2f} s ({:.2f} s)".format(name, *best))


if __name__ == "__main__":
    main()
