"""Train for some minutes on a machine that is lent, and leave a state that another machine can go on from.

    python tools/train_part.py broad --minutes 8.5 --out "$OUT"                          # the first part
    python tools/train_part.py broad --minutes 8.5 --out "$OUT" --state runs/state       # any later part
    python tools/train_part.py broad --minutes 8.5 --out "$OUT" --whole                  # all of a run

Writes `metrics.jsonl` and the compact state (`tools/compact_state.py`) into `--out`. A run whose folder is
still there goes on from its own checkpoints, to the bit. With `--whole` the number of steps is chosen so that
the cooldown ends when the minutes are over, by the speed between a fifth and a third of them, and the model
is left instead of the state.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from compact_state import pack, unpack

from physdiffuser.config import load_training_config
from physdiffuser.models.checkpoint_files import DESCRIPTION, read_json
from physdiffuser.training.loop import Trainer
from physdiffuser.training.restoring import CHECKPOINTS

_MEASURED = (0.2, 0.33)
"""Shares of the time between which the speed is measured."""
_USED = 0.985


def train_for(trainer: Trainer, minutes: float, whole: bool, name: str = "") -> float:
    """Train that long, printing losses; returns the seconds. See `--whole`."""
    began = time.perf_counter()
    marks: list[tuple[float, int]] = []

    def told(step: int, metrics: dict[str, float]) -> None:
        shown = ("memory", "autoregressive", "diffusion", "exact", "laws_per_second", "gradient")
        print(name, step, {key: round(metrics[key], 4) for key in shown if key in metrics}, flush=True)
        if not whole or len(marks) == 2:
            return
        past = (time.perf_counter() - began) / (60.0 * minutes)
        if past > _MEASURED[len(marks)]:
            marks.append((past, step))
            if len(marks) == 2:
                (before, first), (now, last) = marks
                steps = step + int((_USED - now) * (last - first) / (now - before))
                trainer.config = trainer.config.model_copy(update={"steps": steps})
                print(f"{name} {steps} steps in all", flush=True)

    trainer.run(told, minutes)
    return time.perf_counter() - began


def main(arguments: Sequence[str] | None = None) -> None:
    """Train and write the files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("config")
    parser.add_argument("--minutes", type=float, default=8.5)
    parser.add_argument("--state", type=Path, help="folder of a compact state to go on from")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--laws", help="file of packed laws, instead of the configuration's")
    parser.add_argument("--fresh", type=float, default=0.0, help="share of laws drawn beside the packed ones")
    parser.add_argument("--whole", action="store_true", help="end the run in these minutes")
    chosen = parser.parse_args(arguments)
    config = load_training_config(chosen.config)
    if chosen.laws:
        data = config.data.model_copy(update={"laws": chosen.laws, "fresh_laws": chosen.fresh})
        config = config.model_copy(update={"data": data})
    run = Path(config.out)
    if chosen.state is not None:
        print(f"state of step {unpack(chosen.state, run, config.keep)}", flush=True)
    trainer = Trainer(config, resume=(run / CHECKPOINTS).exists())
    first = trainer.step
    seconds = train_for(trainer, chosen.minutes, chosen.whole)
    if chosen.whole:
        # The newest step only: an earlier one stays in the folder of the run.
        description = read_json(run / "model" / DESCRIPTION)
        files = [Path(chosen.out, "model", name) for name in (DESCRIPTION, *description["files"])]
        for file in files:
            file.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(run / file.relative_to(chosen.out), file)
    else:
        files = pack(run, chosen.out)
    shutil.copy(run / "metrics.jsonl", chosen.out / "metrics.jsonl")
    tables = (trainer.step - first) * config.batch
    print(
        json.dumps(
            {
                "steps": [first, trainer.step],
                "seconds": round(seconds, 1),
                "tables_a_second": round(tables / seconds, 1),
                "MiB": {path.name: round(path.stat().st_size / 2**20, 2) for path in files},
            }
        )
    )


if __name__ == "__main__":
    main()
