"""The complexity of answers relative to that of the true laws, from results of `evaluate`.

    python tools/measure_complexity.py docs/results/suites.jsonl

Prints, by suite and noise, the mean and the median of the ratio over all answers and over those that are the
law, and how many answers are more complex than the law.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections import defaultdict
from pathlib import Path


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", type=Path, nargs="+", help="files that evaluate --results wrote")
    options = parser.parse_args()
    ratios: dict[tuple[str, float], list[tuple[float, bool]]] = defaultdict(list)
    for path in options.results:
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if row["complexity"]:
                ratio = row["complexity"] / row["truth_complexity"]
                ratios[row["suite"], row["noise"]].append((ratio, bool(row["recovered"])))
    print(
        "| suite | noise | answers | mean ratio | median | more complex | recovered | mean ratio of these |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for (suite, noise), pairs in sorted(ratios.items()):
        every = [ratio for ratio, _ in pairs]
        right = [ratio for ratio, recovered in pairs if recovered]
        cells = (
            len(every),
            f"{statistics.mean(every):.3f}",
            f"{statistics.median(every):.3f}",
            sum(ratio > 1 for ratio in every),
            len(right),
            f"{statistics.mean(right):.3f}" if right else "-",
        )
        print(f"| {suite} | {noise:g} | " + " | ".join(map(str, cells)) + " |")


if __name__ == "__main__":
    main()
