"""Train for some minutes on a machine that is lent, and leave a state that another machine can go on from.

    python tools/train_part.py broad --minutes 8.5 --out "$OUT"                          # the first part
    python tools/train_part.py broad --minutes 8.5 --out "$OUT" --state runs/state       # any later part

Writes the compact state (`tools/compact_state.py`) and `metrics.jsonl` into `--out`. A run whose
folder is still there goes on from its own checkpoints, to the bit.
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
from physdiffuser.training.loop import Trainer
from physdiffuser.training.restoring import CHECKPOINTS


def main(arguments: Sequence[str] | None = None) -> None:
    """Train and write the files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("config")
    parser.add_argument("--minutes", type=float, default=8.5)
    parser.add_argument("--state", type=Path, help="folder of a compact state to go on from")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--laws", help="file of packed laws, instead of the configuration's")
    parser.add_argument("--compiled", action="store_true")
    chosen = parser.parse_args(arguments)
    config = load_training_config(chosen.config)
    if chosen.laws:
        config = config.model_copy(update={"data": config.data.model_copy(update={"laws": chosen.laws})})
    config = config.model_copy(update={"compiled": config.compiled or chosen.compiled})
    run = Path(config.out)
    if chosen.state is not None:
        print(f"state of step {unpack(chosen.state, run, config.keep)}", flush=True)
    began = time.perf_counter()
    trainer = Trainer(config, resume=(run / CHECKPOINTS).exists())
    first = trainer.step

    def told(step: int, metrics: dict[str, float]) -> None:
        shown = ("autoregressive", "diffusion", "laws_per_second", "gradient")
        print(step, {name: round(metrics[name], 4) for name in shown if name in metrics}, flush=True)

    trainer.run(told, chosen.minutes)
    seconds = time.perf_counter() - began
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
