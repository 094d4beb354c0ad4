"""Tables a second that the steps of a training configuration take, without the time to draw the tables.

    python tools/benchmark_training.py broad --laws runs/laws.npz --micro 1024,2048 --eager

A line of JSON for each size of the micro-batches; `--eager` also times the steps without CUDA graphs. The
operations of a table are counted in the first batch, forward and backward.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import torch
from torch.utils.flop_counter import FlopCounterMode

from physdiffuser.config import TrainingConfig, load_training_config
from physdiffuser.training.loop import Trainer
from physdiffuser.training.stream import Batch


def measured(trainer: Trainer, batches: Sequence[Batch], steps: int) -> dict[str, float]:
    """Seconds of the first round over the batches, in which shapes are captured, and of a later step."""

    def took(count: int) -> float:
        began = time.perf_counter()
        for number in range(count):
            found = trainer.train_step(batches[number % len(batches)])
        float(found["gradient"])
        return time.perf_counter() - began

    if trainer.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    first = took(len(batches))
    seconds = took(steps) / steps
    size = len(batches[0].lengths)
    found = {
        "first_round_seconds": round(first, 2),
        "step_seconds": round(seconds, 4),
        "tables_a_second": round(size / seconds),
    }
    if trainer.device.type == "cuda":
        found["peak_gibibytes"] = round(torch.cuda.max_memory_allocated() / 2**30, 1)
    return found


def operations(trainer: Trainer, batch: Batch) -> float:
    """Floating-point operations of a table in products of matrices, forward and backward."""
    graphs, trainer.graphs = trainer.graphs, None
    with FlopCounterMode(display=False) as counter:
        trainer.train_step(batch)
    trainer.graphs = graphs
    return counter.get_total_flops() / len(batch.lengths)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each arm."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("config")
    parser.add_argument("--laws", help="file of packed laws")
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--micro", default="1024")
    parser.add_argument("--batches", type=int, default=12)
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--eager", action="store_true")
    chosen = parser.parse_args(arguments)
    config = load_training_config(chosen.config)
    if chosen.laws:
        config = config.model_copy(update={"data": config.data.model_copy(update={"laws": chosen.laws})})
    batches: list[Batch] = []
    arms = [(int(size), True) for size in chosen.micro.split(",")]
    arms += [(arms[-1][0], False)] if chosen.eager else []
    for micro, graphs in arms:
        with tempfile.TemporaryDirectory() as folder:
            changes = {"out": str(Path(folder) / "run"), "batch": chosen.batch, "micro_batch": micro}
            trainer = Trainer(
                TrainingConfig.model_validate({**config.model_dump(), **changes, "graphs": graphs})
            )
            if not batches:
                began = time.perf_counter()
                batches = list(islice(trainer.stream.batches(0, chosen.batch), chosen.batches))
                drawn = chosen.batches * chosen.batch / (time.perf_counter() - began)
                print(json.dumps({"drawn_a_second": round(drawn)}), flush=True)
            found = measured(trainer, batches, chosen.steps)
            if micro == arms[0][0] and graphs:
                found["gigaflop_a_table"] = round(operations(trainer, batches[0]) / 1e9, 3)
            print(json.dumps({"micro": micro, "graphs": graphs, **found}), flush=True)
            del trainer
            if torch.cuda.is_available():
                torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
