"""A run of training as a few small files, to be copied from a machine that is lent and back to another one.

A checkpoint holds weights, their moving average and moments in single precision. The compact state holds the
average in half precision and the moments in bfloat16, in files of at most 15 MiB. A run that goes on from it
has the average for its weights: it does not continue to the bit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from torch import Tensor

from physdiffuser.errors import FileError
from physdiffuser.io.atomic import write_text_atomic
from physdiffuser.models.checkpoint import read_tensors, write_tensors
from physdiffuser.models.checkpoint_files import read_json
from physdiffuser.training.checkpoints import Checkpoint, load_latest, save_checkpoint
from physdiffuser.training.restoring import CHECKPOINTS

LARGEST = 15 * 2**20
"""Bytes of a file."""
_DESCRIPTION = "state.json"
_SEPARATOR = "/"


def pack(run: Path, out: Path) -> list[Path]:
    """Write the compact state of a run's newest checkpoint; returns the files.

    Raises
    ------
    FileError
        If there is no intact checkpoint, or a file cannot be written.
    """
    found = load_latest(run / CHECKPOINTS)
    if found is None:
        raise FileError(f"no checkpoint in '{run}'")
    small = {f"average{_SEPARATOR}{name}": t.half() for name, t in found.tensors["average"].items()}
    for name, tensor in found.tensors["optimiser"].items():
        # Numbers of steps are no moments: they stay as they are.
        small[f"optimiser{_SEPARATOR}{name}"] = tensor.bfloat16() if tensor.dim() else tensor
    out.mkdir(parents=True, exist_ok=True)
    files: dict[str, str] = {}
    for number, part in enumerate(_parts(small)):
        name = f"state-{number}.safetensors"
        files[name] = write_tensors(out / name, part)
    text = json.dumps({"step": found.step, "state": found.state, "files": files}, indent=1)
    write_text_atomic(out / _DESCRIPTION, text + "\n")
    return [out / _DESCRIPTION, *(out / name for name in files)]


def unpack(state: Path, run: Path, keep: int = 2) -> int:
    """Write a checkpoint from a compact state, unless the run has a later one; returns the step.

    Raises
    ------
    FileError
        If the state is not complete.
    """
    described = read_json(state / _DESCRIPTION)
    try:
        step, kept, files = int(described["step"]), dict(described["state"]), dict(described["files"])
    except (KeyError, TypeError, ValueError) as error:
        raise FileError(f"'{state / _DESCRIPTION}' does not describe a state: {error}") from error
    groups: dict[str, dict[str, Tensor]] = {"average": {}, "optimiser": {}}
    for name, expected in files.items():
        for key, tensor in read_tensors(state / name, str(expected), state / _DESCRIPTION).items():
            group, _, parameter = key.partition(_SEPARATOR)
            groups[group][parameter] = tensor.float()
    weights = {name: tensor.clone() for name, tensor in groups["average"].items()}
    known = load_latest(run / CHECKPOINTS)
    if known is None or known.step < step:
        save_checkpoint(run / CHECKPOINTS, Checkpoint(step, {"weights": weights, **groups}, kept), keep)
    return step


def _parts(tensors: dict[str, Tensor]) -> Iterator[dict[str, Tensor]]:
    part: dict[str, Tensor] = {}
    size = 0
    for name, tensor in tensors.items():
        bytes_ = tensor.numel() * tensor.element_size()
        if part and size + bytes_ > LARGEST:
            yield part
            part, size = {}, 0
        part[name] = tensor
        size += bytes_
    if part:
        yield part
