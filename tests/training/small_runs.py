"""Training runs of seconds that tests share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from physdiffuser.config import TrainingConfig, parse_training_config


def settings(out: Path, **changes: Any) -> dict[str, Any]:
    """A configuration small enough for tests."""
    return {
        "out": str(out),
        "steps": 4,
        "batch": 8,
        "micro_batch": 4,
        "device": "cpu",
        "checkpoint_every": 2,
        "log_every": 1,
        "validate_every": 2,
        "validation_laws": 4,
        "threads": 1,
        "data": {"rows": [16, 24]},
        "model": {
            "width": 16,
            "heads": 2,
            "length": 24,
            "encoder": {"rows": 16, "layers": 1, "inducing": 4, "mixing": 1},
            "diffusion": {"layers": 1},
            "autoregressive": {"layers": 1},
        },
        "optimiser": {"rate": 3e-3, "warmup": 2},
        **changes,
    }


def config(out: Path, **changes: Any) -> TrainingConfig:
    return parse_training_config(settings(out, **changes), "test")


def metrics(folder: Path, kind: str) -> list[dict[str, Any]]:
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    return [record for record in records if record["kind"] == kind]
