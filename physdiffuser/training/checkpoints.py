"""Training checkpoints: all or nothing, even if the process is killed in the middle of writing one.

A checkpoint is a folder `step-00000123`. It is written under a temporary name and renamed when complete.
It holds the weights, their moving average and the optimiser's moments in full precision; the stream of data
and every random draw are functions of the seed and the step, so the step is their whole state. Every file
has a SHA-256 sum, the description included. When the newest checkpoint is damaged, the one before it is used.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from physdiffuser.config import ModelConfig
from physdiffuser.errors import FileError
from physdiffuser.io.atomic import write_text_atomic
from physdiffuser.models.checkpoint import read_tensors, save_model, sha256, write_tensors
from physdiffuser.models.checkpoint_files import read_json
from physdiffuser.models.tokens.vocabulary import Vocabulary

_NAME = re.compile(r"step-(\d{8})")
_STATE = "state.json"
_SUM = "sum"
_KEYS_WITHOUT_SUM = {"step", "files", "config", "seconds"}
"""All keys of a description from before descriptions had a sum of their own."""
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
    damaged
        One message for each newer checkpoint that could not be read.
    """

    step: int
    tensors: dict[str, dict[str, Tensor]]
    state: dict[str, Any]
    damaged: tuple[str, ...] = ()


def save_checkpoint(folder: Path, checkpoint: Checkpoint, keep: int) -> Path:
    """Write a checkpoint and remove the oldest beyond `keep`.

    An intact checkpoint of the same step is kept as it is. A damaged one, and those of later steps (training
    went back to an earlier one because they are damaged), are renamed to `.step-00000123.damaged`.

    Raises
    ------
    FileError
        If it cannot be written; older checkpoints are untouched then.
    """
    final = folder / f"step-{checkpoint.step:08d}"
    temporary = _temporary(final)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for leftover in folder.glob(".step-*.tmp"):
            shutil.rmtree(leftover)
        if final.exists():
            if _is_intact(final):
                return final
            _set_aside(final)
        temporary.mkdir()
        sums = {
            group: write_tensors(temporary / f"{group}.safetensors", tensors)
            for group, tensors in checkpoint.tensors.items()
        }
        state = {"step": checkpoint.step, "files": sums, **checkpoint.state}
        text = json.dumps({_SUM: _sum_of(state), **state}, indent=2)
        write_text_atomic(temporary / _STATE, text + "\n")
        os.rename(temporary, final)
        found = _checkpoints(folder)
        for later in (path for path in found if path.name > final.name):
            _set_aside(later)
    except OSError as error:
        shutil.rmtree(temporary, ignore_errors=True)
        raise FileError(f"cannot write the checkpoint '{final}': {error.strerror or error}") from error
    for old in [path for path in found if path.name <= final.name][:-keep]:
        _discard(old)
    return final


def save_model_of_step(
    folder: Path,
    step: int,
    config: ModelConfig,
    vocabulary: Vocabulary,
    tensors: Mapping[str, Tensor],
    notes: Mapping[str, Any],
) -> None:
    """Write the model of a step so that the folder holds a complete model at any moment.

    The tensors of each step have a folder of their own, and the description is replaced in one step. The
    tensors of the step before stay for a process that is reading them.
    """
    inside = f"step-{step:08d}"
    save_model(folder, config, vocabulary, tensors, notes, inside)
    others = [path for path in _checkpoints(folder) if path.name != inside]
    for old in [path for path in others if path.name > inside] + others[:-1]:
        shutil.rmtree(old, ignore_errors=True)


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.tmp")


def _set_aside(path: Path) -> None:
    aside = path.with_name(f".{path.name}.damaged")
    shutil.rmtree(aside, ignore_errors=True)
    os.rename(path, aside)


def _discard(path: Path) -> None:
    """Remove a checkpoint: renamed first, so that a half-removed one is not taken for a damaged one."""
    try:
        os.rename(path, _temporary(path))
    except OSError:
        return
    shutil.rmtree(_temporary(path), ignore_errors=True)


def _checkpoints(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if _NAME.fullmatch(path.name))


def newest_step(folder: Path) -> int | None:
    """Step of the newest checkpoint by its name, damaged or not; None if there is none."""
    found = _checkpoints(folder)
    return int(found[-1].name.removeprefix("step-")) if found else None


def load_latest(folder: Path) -> Checkpoint | None:
    """The newest intact checkpoint, or None if there is none at all.

    Raises
    ------
    FileError
        If every checkpoint is damaged; the message names the damaged file of each.
    """
    damaged: list[str] = []
    for path in reversed(_checkpoints(folder)):
        try:
            return replace(_read(path), damaged=tuple(damaged))
        except FileError as error:
            damaged.append(str(error))
    if damaged:
        raise FileError(
            f"every checkpoint in '{folder}' is damaged: {'; '.join(damaged)}. "
            "Restore one of them, or start afresh with another 'out'"
        )
    return None


def _read(path: Path) -> Checkpoint:
    description = path / _STATE
    state = read_json(description)
    expected = state.pop(_SUM, None)
    if expected != _sum_of(state) if expected is not None else set(state) != _KEYS_WITHOUT_SUM:
        raise FileError(f"'{description}' is damaged: its content does not have the SHA-256 sum stored in it")
    try:
        step = int(state.pop("step"))
        files = state.pop("files")
        sums = {group: str(files[group]) for group in GROUPS}
    except (KeyError, TypeError, ValueError) as error:
        raise FileError(f"'{description}' does not describe a checkpoint: {error}") from error
    if path.name != f"step-{step:08d}":
        raise FileError(f"'{description}' describes step {step}, which is not the step in the folder's name")
    tensors = {
        group: read_tensors(path / f"{group}.safetensors", sums[group], description) for group in GROUPS
    }
    return Checkpoint(step, tensors, state)


def _is_intact(path: Path) -> bool:
    try:
        _read(path)
    except FileError:
        return False
    return True


def _sum_of(state: Mapping[str, Any]) -> str:
    return sha256(json.dumps(state, sort_keys=True).encode("ascii"))


def differences(before: object, now: object, name: str = "") -> Iterator[tuple[str, object, object]]:
    """Dotted name, value before and value now of each entry that differs between two configurations."""
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for key in sorted({*before, *now}):
            yield from differences(before.get(key), now.get(key), f"{name}.{key}" if name else str(key))
    elif before != now:
        yield name, before, now
