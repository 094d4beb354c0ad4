"""Curves of a training run.

python tools/plot_training.py runs/train-small/metrics.jsonl docs/training/small.png
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from matplotlib.figure import Figure

NAMES = ("autoregressive", "diffusion")


def main() -> None:
    """Read the metrics and write the plot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("metrics", type=Path)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--batch", type=int, default=128, help="tables a step, over all processes")
    chosen = parser.parse_args()
    lines = chosen.metrics.read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    figure = Figure(figsize=(6.4, 3.8), layout="constrained")
    axes = figure.add_subplot()
    for colour, name in enumerate(NAMES):
        train = [(r["step"] * chosen.batch, r[name]) for r in records if r["kind"] == "train" and name in r]
        held = [
            (r["step"] * chosen.batch, r[name]) for r in records if r["kind"] == "validation" and name in r
        ]
        if train:
            axes.plot(*zip(*train, strict=True), color=f"C{colour}", alpha=0.25, linewidth=0.8)
        if held:
            axes.plot(*zip(*held, strict=True), color=f"C{colour}", marker="o", label=f"{name}, validation")
    axes.set_xlabel("tables seen")
    axes.set_ylabel("loss, nats a token")
    axes.set_ylim(0, 3)
    axes.grid(alpha=0.3)
    axes.legend()
    chosen.picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(chosen.picture, dpi=120)


if __name__ == "__main__":
    main()
