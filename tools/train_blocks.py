"""Train the encoder's blocks of the attention variants for a model whose other parts stay as they are.

    python tools/train_blocks.py runs/train-broad/model --laws runs/laws.npz --minutes 0.5 --out runs/blocks

Every encoder is first taught: its blocks begin afresh and learn to give the memory that the model's own
encoder gives. Those that are for `solve` are then trained on laws for as long. Encoders are trained at the
same time, in a process each. `standard` blocks begun afresh are for comparison. Prints the losses of
validation of each.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from train_part import train_for

from physdiffuser.config import TrainingConfig, load_training_config
from physdiffuser.models.checkpoint_files import DESCRIPTION, read_json
from physdiffuser.models.network import LawModel
from physdiffuser.models.tokens.vocabulary import Vocabulary
from physdiffuser.training.loop import Trainer

ENCODERS: dict[str, tuple[str, dict[str, Any], bool]] = {
    "standard": ("standard", {}, True),
    "physics-slice": ("physics-slice", {}, True),
    "biased": ("biased", {}, True),
    "slices-4": ("physics-slice", {"slices": 4}, False),
    "slices-8": ("physics-slice", {"slices": 8}, False),
    "slices-16": ("physics-slice", {"slices": 16}, False),
    "gated": ("biased", {"gate_column": -1}, False),
}
"""Attention, its options, and whether the blocks are trained on laws."""
_BLOCKS = ("encoder.blocks", "encoder.points")


def configuration(model: Path, name: str, out: Path, laws: str, taught: bool) -> TrainingConfig:
    """How an encoder is taught, or trained on laws from the taught one."""
    attention, options, _ = ENCODERS[name]
    settings = load_training_config("broad").model_dump()
    settings["model"] = read_json(model / DESCRIPTION)["config"]
    settings["model"]["encoder"] |= {"attention": attention, "options": options}
    network = LawModel(TrainingConfig.model_validate(settings).model, Vocabulary())
    settings |= {
        "out": str(out / ("taught" if taught else "laws") / name),
        "steps": 1_000_000,
        "batch": 512,
        "micro_batch": 512,
        "device": "auto",
        "graphs": False,
        "seed": 51 if taught else 61,
        "drop_condition": 0.0,
        "hide_summaries": 0.0 if taught else 0.3,
        "validation_laws": 2048,
        "validate_every": 1_000_000,
        "checkpoint_every": 1_000_000,
        "start_from": str(model if taught else out / "taught" / name / "model"),
        "teacher": str(model) if taught else None,
        "fresh": _BLOCKS if taught else (),
        "frozen": tuple(part for part, _ in network.named_parameters() if not part.startswith(_BLOCKS)),
    }
    settings["data"] |= {"rows": (20, 512), "laws": laws, "workers": 2}
    rate = 3e-3 if taught else 2e-3
    settings["optimiser"] |= {"rate": rate, "warmup": 20, "cooldown": 0.5, "final": 0.02, "ema": 0.98}
    return TrainingConfig.model_validate(settings)


def train(model: Path, name: str, out: Path, laws: str, minutes: float) -> None:
    """Teach one encoder, and train it on laws if it is for `solve`."""
    for taught in (True, False):
        if taught or ENCODERS[name][2]:
            trainer = Trainer(configuration(model, name, out, laws, taught))
            train_for(trainer, minutes, whole=True, name=name)
            kind = "taught" if taught else "laws"
            found = {key: round(value, 4) for key, value in trainer.validate().items()}
            tables = trainer.step * trainer.config.batch
            print(json.dumps({"encoder": name, "trained": kind, "tables": tables, **found}), flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Train all encoders at once, or one."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--minutes", type=float, default=0.5, help="of each of the two trainings")
    parser.add_argument("--laws", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", choices=list(ENCODERS))
    chosen = parser.parse_args(arguments)
    if chosen.only:
        train(chosen.model, chosen.only, chosen.out, chosen.laws, chosen.minutes)
        return
    given = sys.argv[1:] if arguments is None else arguments
    running = [subprocess.Popen([sys.executable, __file__, *given, "--only", name]) for name in ENCODERS]
    failed = [name for name, process in zip(ENCODERS, running, strict=True) if process.wait()]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
