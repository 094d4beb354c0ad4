"""Time and memory of `physdiffuser solve` on a large CSV file, reading included.

    python tools/measure_memory.py [--rows 1000000] [--columns 10] [--time 60]

A file is written to a temporary folder (20 bytes a number), and solved by a fresh process. Memory is the
largest proportional set size of the process and its children together (Linux only).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

BLOCK = 100_000


def write(path: Path, rows: int, columns: int) -> None:
    """A law of two columns, among others that it does not need."""
    random = np.random.default_rng(0)
    with path.open("w", encoding="utf-8") as stream:
        stream.write(",".join([*(f"x{number}" for number in range(1, columns)), "y"]) + "\n")
        for start in range(0, rows, BLOCK):
            inputs = random.uniform(1, 5, (min(BLOCK, rows - start), columns - 1))
            block = np.column_stack([inputs, inputs[:, 0] * np.sqrt(inputs[:, 1])])
            line = ",".join(["%.16e"] * columns) + "\n"
            stream.write("".join(line % tuple(row) for row in block.tolist()))


def tree(process: int) -> list[int]:
    """A process and all that it started."""
    found, new = [], [process]
    while new:
        found += new
        listed = [Path(f"/proc/{number}/task/{number}/children") for number in new]
        new = [int(word) for path in listed if path.exists() for word in path.read_text().split()]
    return found


def resident(process: int) -> int:
    """Bytes of a process, shared pages divided among those that share them; 0 once it has ended."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def main() -> None:
    """Print one line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--time", type=float, default=60.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        write(path, options.rows, options.columns)
        began = time.perf_counter()
        command = [sys.executable, "-m", "physdiffuser", "solve", str(path), "--time", str(options.time)]
        running = subprocess.Popen([*command, "--json", "--quiet"], stdout=subprocess.PIPE)
        peak = 0
        # The document is smaller than a pipe, so that nobody waits for somebody to read it.
        while running.poll() is None:
            peak = max(peak, sum(resident(process) for process in tree(running.pid)))
            time.sleep(0.05)
        seconds = time.perf_counter() - began
        assert running.stdout is not None
        best = json.load(running.stdout)["best"]["expression"]
        print(
            f"{options.rows:,} rows, {options.columns} columns, {path.stat().st_size / 1e6:,.0f} MB: "
            f"{peak / 1e6:,.0f} MB of memory, {seconds:.1f} s, {best} ({os.cpu_count()} CPUs)"
        )


if __name__ == "__main__":
    main()
