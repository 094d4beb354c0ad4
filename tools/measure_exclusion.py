"""How much of the stream of training laws is refused because it holds benchmark laws.

    python tools/measure_exclusion.py --laws 15000

For each kind of law: the share that is an excluded law as it is written, signs aside, the further share whose
constant placeholders can take values that make it one, and the microseconds that each check takes a law.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Sequence

from physdiffuser.expressions import to_prefix
from physdiffuser.training.decontamination import Excluded
from physdiffuser.training.handbook import HandbookSampler
from physdiffuser.training.laboratory import LaboratorySampler
from physdiffuser.training.laws import LawSampler
from physdiffuser.training.stream import CHECK_FROM, benchmark_laws, target_skeleton


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--laws", type=int, default=15_000, help="laws of each kind")
    parser.add_argument("--seed", type=int, default=7)
    chosen = parser.parse_args(arguments)
    excluded = Excluded(benchmark_laws())
    print("| laws | as written | for some values of placeholders | µs | µs |\n|---|---|---|---|---|")
    samplers: tuple[type[LawSampler | LaboratorySampler | HandbookSampler], ...]
    samplers = (LawSampler, LaboratorySampler, HandbookSampler)
    for name, sampler in zip(("textbook", "laboratory", "handbook"), samplers, strict=True):
        draws = sampler(random.Random(chosen.seed))
        written = instances = 0
        seconds = [0.0, 0.0]
        for _ in range(chosen.laws):
            drawn = draws.sample()
            if drawn is None:
                continue
            law = target_skeleton(drawn)
            began = time.process_time()
            refused = len(to_prefix(law)) >= CHECK_FROM and excluded.contains_as_written(law)
            between = time.process_time()
            written += refused
            instances += excluded.contains_instance(law) and not refused
            seconds[0] += between - began
            seconds[1] += time.process_time() - between
        shares = " | ".join(f"{100 * count / chosen.laws:.2f} %" for count in (written, instances))
        times = " | ".join(f"{1e6 * part / chosen.laws:.0f}" for part in seconds)
        print(f"| {name} | {shares} | {times} |")


if __name__ == "__main__":
    main()
