"""Time and memory of the attention variants over the number of rows, with slopes and a plot.

    python tools/benchmark_attention.py --largest 1000000 --out docs/attention

writes `attention.csv` and `attention.png` into the folder. A variant whose estimated memory or time exceeds
the limits at some size is not run there; its line ends before.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
VARIANTS = ("standard", "physics-slice")
WIDTH, HEADS = 64, 4


def measure(variant: str, rows: int, threads: int) -> tuple[float, float]:
    """Seconds of one forward pass (the best of three) and the peak growth of memory in MiB.

    Runs in a process of its own, because a process's peak memory never falls.
    """
    command = [sys.executable, __file__, "--one", variant, "--largest", str(rows), "--threads", str(threads)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, memory = json.loads(done.stdout.splitlines()[-1])
    return float(seconds), float(memory)


def one(variant: str, rows: int, threads: int) -> None:
    """Measure in this process and print the result as JSON."""
    import resource

    import torch

    from physdiffuser.models.attention import build_attention, find_attention

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    module = build_attention(find_attention(variant), WIDTH, HEADS, {}).eval()
    vectors = torch.randn(1, rows, WIDTH)
    with torch.inference_mode():
        module(vectors[:, :100])
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        best = float("inf")
        for _ in range(3):
            began = time.perf_counter()
            module(vectors)
            best = min(best, time.perf_counter() - began)
            if best > 10.0:
                break
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps([best, (after - before) / 1024]))


def slope(points: Sequence[tuple[int, float]]) -> float:
    """Exponent of the growth over the larger half of the sizes, by least squares in logarithms."""
    import numpy as np

    chosen = points[len(points) // 2 - 1 :]
    rows, values = np.log([rows for rows, _ in chosen]), np.log([max(value, 1e-9) for _, value in chosen])
    return float(np.polyfit(rows, values, 1)[0])


def main() -> None:
    """Measure all variants and write the table and the plot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=1_000_000)
    parser.add_argument("--limit", type=float, default=60.0, help="longest expected seconds of one pass")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("docs/attention"))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one:
        one(chosen.one, chosen.largest, chosen.threads)
        return
    results: dict[str, list[tuple[int, float, float]]] = {}
    for variant in VARIANTS:
        results[variant] = []
        for rows in SIZES:
            if rows > chosen.largest:
                break
            measured = results[variant]
            if measured and measured[-1][1] * (rows / measured[-1][0]) ** 2 > chosen.limit:
                # Quadratic growth is the worst case; a linear variant is let through by its own slope.
                times = [(size, seconds) for size, seconds, _ in measured]
                if len(times) < 3 or measured[-1][1] * (rows / times[-1][0]) ** slope(times) > chosen.limit:
                    break
            measured.append((rows, *measure(variant, rows, chosen.threads)))
            print(variant, *measured[-1], flush=True)
    chosen.out.mkdir(parents=True, exist_ok=True)
    with (chosen.out / "attention.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(("variant", "rows", "seconds", "mebibytes"))
        for variant, measured in results.items():
            writer.writerows(
                (variant, rows, f"{seconds:.5g}", f"{memory:.5g}") for rows, seconds, memory in measured
            )
    plot(results, chosen.out / "attention.png")


def plot(results: dict[str, list[tuple[int, float, float]]], path: Path) -> None:
    """Two panels, time and memory, on logarithmic axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    for place, (index, label) in enumerate(((1, "seconds a forward pass"), (2, "peak memory, MiB"))):
        axes = figure.add_subplot(1, 2, place + 1)
        for variant, measured in results.items():
            points = [(row[0], float(row[index])) for row in measured if float(row[index]) > 0]
            if len(points) < 2:
                continue
            exponent = slope(points)
            axes.loglog(*zip(*points, strict=True), marker="o", label=f"{variant} (N^{exponent:.2f})")
        axes.set_xlabel("rows N")
        axes.set_ylabel(label)
        axes.grid(alpha=0.3)
        axes.legend()
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
