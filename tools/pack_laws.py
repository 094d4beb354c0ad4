"""Draw and check the laws of a training configuration beforehand.

    python tools/pack_laws.py broad --laws 2000000 --processes 2 --out runs/laws.npz

A configuration with `laws: runs/laws.npz` under `data` then only draws numbers for them.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from pathlib import Path

import numpy as np

from physdiffuser.config import load_training_config
from physdiffuser.models.tokens.vocabulary import Vocabulary
from physdiffuser.training.decontamination import Excluded
from physdiffuser.training.packed_laws import PackedLaws
from physdiffuser.training.stream import LawStream, benchmark_laws

_PART = 20_000


def packed(name: str, seed: int, count: int) -> PackedLaws:
    """So many laws of a configuration."""
    config = load_training_config(name)
    data = config.data.model_copy(update={"laws": None})
    stream = LawStream(data, Vocabulary(), config.model.length, config.seed, Excluded(benchmark_laws()))
    return PackedLaws.of(islice(stream.laws(random.Random(seed)), count))


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("config")
    parser.add_argument("--laws", type=int, default=1_000_000)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    chosen = parser.parse_args(arguments)
    counts = [min(_PART, chosen.laws - start) for start in range(0, chosen.laws, _PART)]
    seeds = [chosen.seed * 1_000_003 + number for number in range(len(counts))]
    with ProcessPoolExecutor(chosen.processes) as pool:
        parts = list(pool.map(packed, [chosen.config] * len(counts), seeds, counts))
    tokens = np.concatenate([part.tokens for part in parts])
    free = np.concatenate([part.free for part in parts])
    whole = PackedLaws(tokens, np.zeros(0, np.int64), free)
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    whole.write(chosen.out)
    print(f"{len(free)} laws, {chosen.out.stat().st_size / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
