"""What the generators take from each part of the encoder: validation losses with a part made useless.

    python tools/ablate_encoder.py                              # the shipped weights
    python tools/ablate_encoder.py standard biased runs/train-small/model
    python tools/ablate_encoder.py --stream broad --laws 1024 --arms "as it is"

The arms: the weights as they are; the row attention with random weights; the rows that are read one by one
taken from another table, the summaries from the right one; and the other way round. Losses are in nats a
token, on synthetic laws that no run trains on; lower is better.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from physdiffuser.config import DataConfig, load_training_config
from physdiffuser.models.checkpoint import load_model
from physdiffuser.models.network import LawModel
from physdiffuser.models.shipped import find_weights, shipped
from physdiffuser.models.tokens.vocabulary import BOS
from physdiffuser.training.decontamination import Excluded
from physdiffuser.training.loop import VALIDATION
from physdiffuser.training.objectives import autoregressive_loss, diffusion_loss, draw_masks
from physdiffuser.training.stream import LawStream, benchmark_laws

_BATCH = 64
_FRESH = ("encoder.blocks", "encoder.points")


def randomised(weights: Path) -> LawModel:
    """The model with the row attention as it was before any training."""
    model = load_model(weights)
    torch.manual_seed(0)
    untrained = LawModel(model.config, model.vocabulary).state_dict()
    tensors = {
        name: untrained[name] if name.startswith(_FRESH) else tensor
        for name, tensor in model.state_dict().items()
    }
    model.load_state_dict(tensors, assign=True)
    return model


@torch.no_grad()
def losses(
    model: LawModel, stream: LawStream, laws: int, *, rows_of: int = 0, summaries_of: int = 0
) -> dict[str, float]:
    """Mean losses; rows or summaries may be those of the table so many places further in the batch."""
    sums: dict[str, float] = {}
    generator = torch.Generator()
    generator.manual_seed(VALIDATION)
    batches = max(1, laws // _BATCH)
    for number in range(batches):
        batch = stream.batch(number, _BATCH, VALIDATION)
        rows, used = torch.from_numpy(batch.rows), torch.from_numpy(batch.used)
        tokens, lengths = torch.from_numpy(batch.tokens), torch.from_numpy(batch.lengths)
        near, far = rows.roll(rows_of, 0)[:, : model.config.encoder.rows], rows.roll(summaries_of, 0)
        nowhere = torch.zeros(rows.shape[:2], dtype=torch.bool)
        memory, mask = model.encode(near, nowhere[:, : near.shape[1]], used, far, nowhere)
        found: dict[str, Tensor] = {}
        if model.decoder is not None:
            begin = model.vocabulary.ids[BOS]
            found["autoregressive"], found["exact"] = autoregressive_loss(
                model.decoder, tokens, lengths, memory, mask, begin
            )
        if model.denoiser is not None:
            drawn = draw_masks(*tokens.shape, generator)
            found["diffusion"] = diffusion_loss(model.denoiser, tokens, memory, mask, *drawn)
        for name, loss in found.items():
            sums[name] = sums.get(name, 0.0) + float(loss) / batches
    return {name: round(value, 4) for name, value in sums.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a JSON line for each model and arm."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("weights", nargs="*", default=list(shipped()), help="names or folders")
    parser.add_argument("--laws", type=int, default=256)
    parser.add_argument("--stream", help="recipe whose laws are drawn; the default settings without it")
    parser.add_argument("--arms", default="as it is,random attention,rows of another,summaries of another")
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(1)
    arms = chosen.arms.split(",")
    for source in chosen.weights:
        weights = find_weights(source) if source in shipped() else Path(source)
        model = load_model(weights)
        data = DataConfig(rows=(48, 256))
        if chosen.stream:
            data = load_training_config(chosen.stream).data
        excluded = Excluded(benchmark_laws())
        stream = LawStream(data, model.vocabulary, model.config.length, 0, excluded)
        for arm in arms:
            shown = randomised(weights) if arm == "random attention" else model
            rows_of, summaries_of = int(arm == "rows of another"), int(arm == "summaries of another")
            found = losses(shown, stream, chosen.laws, rows_of=rows_of, summaries_of=summaries_of)
            print(json.dumps({"weights": source, "arm": arm, "laws": chosen.laws, **found}), flush=True)


if __name__ == "__main__":
    main()
