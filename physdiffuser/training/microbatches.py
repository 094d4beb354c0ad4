"""Parts of a batch that pass through the networks at once, and their losses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from physdiffuser.config import TrainingConfig
from physdiffuser.models.network import LawModel
from physdiffuser.models.tokens.vocabulary import BOS
from physdiffuser.training.objectives import autoregressive_loss, diffusion_loss, draw_masks, memory_loss
from physdiffuser.training.processes import moved
from physdiffuser.training.stream import Batch

# Share of the micro-batches whose window is the whole length, so that the denoiser knows long windows.
_WHOLE = 0.1


@dataclass(frozen=True)
class MicroBatch:
    """Tables, laws and everything that is drawn at random for them.

    Attributes
    ----------
    rows
        (size, rows, 10) float16: nine places and the target.
    padding
        (size, rows), True where a row is padding.
    used
        (size, 9), True where a place holds a column.
    tokens
        (size, window) ids, filled up with end-of-sequence.
    lengths
        (size,) tokens of each law.
    dropped, hidden
        (size,), True where the generators are not shown the table, and the encoder not its summaries.
    masked, times
        (masks * size, window) and (masks * size,): see `draw_masks`.
    """

    rows: Tensor
    padding: Tensor
    used: Tensor
    tokens: Tensor
    lengths: Tensor
    dropped: Tensor
    hidden: Tensor
    masked: Tensor
    times: Tensor

    def to(self, device: torch.device) -> MicroBatch:
        """The same on a device."""
        return MicroBatch(*(moved(getattr(self, field.name), device) for field in fields(self)))


def split(
    batch: Batch, config: TrainingConfig, generator: torch.Generator, drop: float, hide: float
) -> Iterator[tuple[float, MicroBatch]]:
    """Micro-batches on the processor, each with its share of the batch.

    Parameters
    ----------
    config
        Their size, the masks of a law, and the steps between lengths of windows.
    generator
        Source of masks and dropped conditions.
    drop, hide
        Probability of hiding a table from the generators, and its summaries from the encoder.
    """
    total = len(batch.lengths)
    for start in range(0, total, config.micro_batch):
        chosen = slice(start, start + config.micro_batch)
        lengths = batch.lengths[chosen]
        # The window of the longest law in it and one more place.
        window = -(-(int(lengths.max()) + 1) // config.window_step) * config.window_step
        if window > config.model.length or float(torch.rand((), generator=generator)) < _WHOLE:
            window = config.model.length
        size = len(lengths)
        masked, times = draw_masks(size * config.masks, window, generator)
        yield (
            size / total,
            MicroBatch(
                rows=torch.from_numpy(batch.rows[chosen]),
                padding=torch.zeros(size, batch.rows.shape[1], dtype=torch.bool),
                used=torch.from_numpy(batch.used[chosen]),
                tokens=torch.from_numpy(batch.tokens[chosen, :window]),
                lengths=torch.from_numpy(lengths),
                dropped=torch.rand(size, generator=generator) < drop,
                hidden=torch.rand(size, generator=generator) < hide,
                masked=masked,
                times=times,
            ),
        )


def micro_losses(
    model: LawModel, config: TrainingConfig, micro: MicroBatch, teacher: LawModel | None, written: bool
) -> dict[str, Tensor]:
    """Losses of a micro-batch on the model's device.

    Parameters
    ----------
    teacher
        Networks whose memory is to be learned, or None.
    written
        Whether the losses of the generators are wanted.
    """
    near = config.model.encoder.rows
    shown = (micro.rows[:, :near], micro.padding[:, :near], micro.used, micro.rows, micro.padding)
    memory, mask = model.encode(*shown, micro.hidden)
    found: dict[str, Tensor] = {}
    if teacher is not None:
        with torch.no_grad():
            taught, _ = teacher.encode(*shown)
        found["memory"] = memory_loss(memory, taught, mask)
    memory, mask = model.without_condition(memory, mask, micro.dropped)
    tokens = micro.tokens
    if written and model.decoder is not None:
        begin = model.vocabulary.ids[BOS]
        found["autoregressive"], found["exact"] = autoregressive_loss(
            model.decoder, tokens, micro.lengths, memory, mask, begin
        )
    if written and model.denoiser is not None:
        tokens, memory, mask = (
            part.repeat_interleave(config.masks, dim=0) for part in (tokens, memory, mask)
        )
        found["diffusion"] = diffusion_loss(model.denoiser, tokens, memory, mask, micro.masked, micro.times)
    return found
