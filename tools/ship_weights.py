"""Put trained weights into the package, next to those that ship.

    python tools/ship_weights.py runs/train-biased/model biased
    python tools/ship_weights.py runs/slices-4/model physics-slice/slices-4 --blocks-of physics-slice

Files that another variant ships already (generators that an encoder was taught to serve) are not copied
but named. With `--blocks-of` the encoder's file of a variant that ships is named too, and only the tensors
that differ from it are written.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from physdiffuser.io.atomic import write_bytes_atomic, write_text_atomic
from physdiffuser.models.checkpoint import load_model, read_tensors, sha256, write_tensors
from physdiffuser.models.checkpoint_files import BLOCKS, DESCRIPTION, read_json
from physdiffuser.models.shipped import weights_folder

ENCODER = "encoder.safetensors"


def ship(model: Path, name: str, base: str | None = None) -> list[str]:
    """Copy a model; returns the names of its files as the description has them.

    Parameters
    ----------
    model
        Folder of the weights.
    name
        Of the variant: a folder below that of the weights that ship.
    base
        Variant that ships, whose encoder this one shares tensors with.
    """
    load_model(model)  # whole, and of a form that this version reads
    others = {
        sha256(path.read_bytes()): path
        for path in sorted(weights_folder().glob("*/*.safetensors"))
        if path.parent.name != name
    }
    target = weights_folder() / name
    target.mkdir(parents=True, exist_ok=True)
    description = json.loads((model / DESCRIPTION).read_text(encoding="utf-8"))
    files: dict[str, str] = {}
    for file, total in description["files"].items():
        if total in others:
            files[Path(os.path.relpath(others[total], target)).as_posix()] = total
        elif base is not None and Path(file).name == ENCODER:
            files |= _blocks(read_tensors(model / file, total), target, base)
        else:
            own = Path(file).name
            write_bytes_atomic(target / own, (model / file).read_bytes())
            files[own] = total
    description["files"] = files
    write_text_atomic(target / DESCRIPTION, json.dumps(description, indent=2) + "\n")
    load_model(target)
    return list(files)


def _blocks(here: dict[str, Tensor], target: Path, base: str) -> dict[str, str]:
    """Write what differs from the encoder of another variant; the files that together are the encoder."""
    file = ENCODER
    shared = weights_folder() / base
    total = str(read_json(shared / DESCRIPTION)["files"][file])
    there = read_tensors(shared / file, total)
    differing = {
        name: tensor
        for name, tensor in here.items()
        if name not in there or not torch.equal(tensor, there[name])
    }
    own = f"{BLOCKS}.safetensors"
    return {
        Path(os.path.relpath(shared / file, target)).as_posix(): total,
        own: write_tensors(target / own, differing),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Ship one model."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", type=Path, help="folder `model` of a run")
    parser.add_argument("name", help="of the attention variant, and of a folder below it")
    parser.add_argument("--blocks-of", metavar="NAME", help="write only what differs from that encoder")
    chosen = parser.parse_args(arguments)
    for file in ship(chosen.model, chosen.name, chosen.blocks_of):
        print(file)


if __name__ == "__main__":
    main()
