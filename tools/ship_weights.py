"""Put trained weights into the package, next to those that ship.

    python tools/ship_weights.py runs/train-biased/model biased

Files that another variant ships already (generators that an encoder was taught to serve) are not copied
but named.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from physdiffuser.models.checkpoint import load_model, sha256
from physdiffuser.models.checkpoint_files import DESCRIPTION
from physdiffuser.models.shipped import weights_folder
from physdiffuser.report.atomic import write_bytes_atomic, write_text_atomic


def ship(model: Path, name: str) -> list[str]:
    """Copy a model; returns the names of its files as the description has them."""
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
            files[f"../{others[total].parent.name}/{others[total].name}"] = total
        else:
            write_bytes_atomic(target / file, (model / file).read_bytes())
            files[file] = total
    description["files"] = files
    write_text_atomic(target / DESCRIPTION, json.dumps(description, indent=2) + "\n")
    load_model(target)
    return list(files)


def main(arguments: Sequence[str] | None = None) -> None:
    """Ship one model."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", type=Path, help="folder `model` of a run")
    parser.add_argument("name", help="of the attention variant")
    chosen = parser.parse_args(arguments)
    for file in ship(chosen.model, chosen.name):
        print(file)


if __name__ == "__main__":
    main()
