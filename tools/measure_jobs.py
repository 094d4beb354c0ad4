"""How much faster a run is with several processes: the same laws with one job and with more, in turn.

    OMP_NUM_THREADS=1 python tools/measure_jobs.py --every 6
    OMP_NUM_THREADS=1 python tools/measure_jobs.py --suite dev --every 40 --noise 0.1 --jobs 1,2,4

Each run is a process of its own, cold, and ends when the law is settled or after `--steps` steps: all do
the same work. Besides the seconds of the wall, which say little while other programs work, the table has
the seconds of the processor: of the run's own process, which are what a machine with enough idle cores
waits for, and of its workers. The ratio of the first column of one job to that of several is the speed-up
on idle cores, waits for workers left out.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks_feynman.export import table_csv
from benchmarks_feynman.sampling import sample
from benchmarks_feynman.suites import Law, select


def one(table: Path, target: str, jobs: int, steps: int) -> dict[str, Any]:
    """A run in this process."""
    from physdiffuser import solve

    started = time.perf_counter()
    solution = solve(str(table), target=target, jobs=jobs, steps=steps)
    wall = time.perf_counter() - started
    own, children = (
        use.ru_utime + use.ru_stime
        for use in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )
    law = None if solution.best is None else solution.best.text
    return {"wall": wall, "own": own, "workers": children, "law": law}


def measure(law: Law, options: argparse.Namespace) -> list[dict[str, Any]]:
    """The runs of one law, with each number of jobs."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        path.write_text(table_csv(sample(law, rows=options.rows, noise=options.noise)), encoding="utf-8")
        for jobs in options.jobs:
            command = [
                sys.executable,
                __file__,
                "--one",
                str(path),
                law.output,
                str(jobs),
                str(options.steps),
            ]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            found.append(json.loads(done.stdout.splitlines()[-1]))
    return found


def main() -> None:
    """Measure and print a table."""
    if sys.argv[1:2] == ["--one"]:
        table, target, jobs, steps = sys.argv[2:]
        print(json.dumps(one(Path(table), target, int(jobs), int(steps))))
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--suite", default="fsred")
    parser.add_argument("--every", type=int, default=1, help="take every so many laws")
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--noise", type=float, default=0.01)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--jobs", type=lambda text: [int(part) for part in text.split(",")], default=[1, 2])
    options = parser.parse_args()
    heads = " | ".join(f"{jobs} jobs: own s | workers s | wall s" for jobs in options.jobs)
    print(f"| law | {heads} |\n|---|{'---|' * 3 * len(options.jobs)}")
    rows = []
    for law in select([options.suite])[:: options.every]:
        runs = measure(law, options)
        rows.append(runs)
        cells = " | ".join(f"{run['own']:.1f} | {run['workers']:.1f} | {run['wall']:.1f}" for run in runs)
        print(f"| {law.id} | {cells} |", flush=True)
    for place, jobs in enumerate(options.jobs):
        own = [runs[place]["own"] for runs in rows]
        ratios = [runs[0]["own"] / runs[place]["own"] for runs in rows]
        walls = [runs[0]["wall"] / runs[place]["wall"] for runs in rows]
        whole = sum(runs[0]["own"] for runs in rows) / sum(own)
        print(
            f"{jobs} jobs: own process median {statistics.median(own):.2f} s, sum {sum(own):.1f} s; speed-up "
            f"median {statistics.median(ratios):.2f}, of the sum {whole:.2f}, "
            f"of the wall {statistics.median(walls):.2f}"
        )


if __name__ == "__main__":
    main()
