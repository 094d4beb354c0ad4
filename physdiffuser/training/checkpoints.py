"""Training checkpoints: all or nothing, even if the process is killed in the middle of writing one.

A checkpoint is a folder `step-00000123`. It is written under a temporary name and renamed when complete.
It holds the weights, their moving average and the optimiser's moments in full precision; the stream of data
and every random draw are functions of the seed and the step, so the step is their whole state.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from physdiffuser.errors import FileError
from physdiffuser.models.checkpoint import read_tensors, write_tensors
from physdiffuser.models.checkpoint_files import read_json
from physdiffuser.report.atomic import write_text_atomic

_NAME = re.compile(r"step-(\d{8})")
_STATE = "state.json"
GROUPS = ("weights", "average", "optimiser")


@dataclass(frozen=True)
class Checkpoint:
    """What is needed to go on.

    Attributes
    ----------
    step
        Optimiser steps done.
    tensors
        Tensors by group (`GROUPS`) and name.
    state
        Everything else, as JSON.
    """

    step: int
    tensors: dict[str, dict[str, Tensor]]
    state: dict[str, Any]


def save_checkpoint(folder: Path, checkpoint: Checkpoint, keep: int) -> Path:
    """Write a checkpoint and remove the oldest beyond `keep`.

    Raises
    ------
    FileError
        If it cannot be written; older checkpoints are untouched then.
    """
    final = folder / f"step-{checkpoint.step:08d}"
    temporary = folder / f".{final.name}.tmp"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        sums = {
            group: write_tensors(temporary / f"{group}.safetensors", tensors)
            for group, tensors in checkpoint.tensors.items()
        }
        state = {"step": checkpoint.step, "files": sums, **checkpoint.state}
        write_text_atomic(temporary / _STATE, json.dumps(state, indent=2) + "\n")
        if final.exists():
            shutil.rmtree(final)
        os.rename(temporary, final)
    except OSError as error:
        raise FileError(f"cannot write the checkpoint '{final}': {error.strerror or error}") from error
    for old in _checkpoints(folder)[:-keep]:
        shutil.rmtree(old, ignore_errors=True)
    return final


def _checkpoints(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if _NAME.fullmatch(path.name))


def load_latest(folder: Path) -> Checkpoint | None:
    """The newest complete checkpoint, or None if there is none.

    Raises
    ------
    FileError
        If the newest one is damaged.
    """
    found = _checkpoints(folder)
    if not found:
        return None
    state = read_json(found[-1] / _STATE)
    try:
        step = int(state.pop("step"))
        sums = {group: str(state["files"][group]) for group in GROUPS}
    except (KeyError, TypeError, ValueError) as error:
        raise FileError(f"'{found[-1] / _STATE}' does not describe a checkpoint: {error}") from error
    del state["files"]
    tensors = {group: read_tensors(found[-1] / f"{group}.safetensors", sums[group]) for group in GROUPS}
    return Checkpoint(step, tensors, state)
