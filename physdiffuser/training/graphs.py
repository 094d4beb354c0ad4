"""Gradients on a GPU without the time that a processor takes to start its kernels.

A step of networks of this size is some thousand small kernels, and the GPU waits for each to be started.
Here the losses and their gradient are captured once for each shape of a micro-batch, as a CUDA graph, and
replayed. The networks are copies in bfloat16, so that no number is converted on the way; weights, sums of
gradients and moments stay in single precision. Rows are filled up to powers of two, so that there are few
shapes.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from physdiffuser.models.network import LawModel
from physdiffuser.training.microbatches import MicroBatch
from physdiffuser.training.objectives import objective

Losses = Callable[[LawModel, MicroBatch], dict[str, Tensor]]

MIN_ROWS = 32
_BY_ROWS = ("rows", "padding")
# Passes before a capture, in which libraries choose their kernels and ask for memory.
_PASSES = 2


def filled_up(rows: int) -> int:
    """The power of two that so many rows are filled up to."""
    return max(MIN_ROWS, 1 << (rows - 1).bit_length())


def room_for(micro: MicroBatch, device: torch.device) -> MicroBatch:
    """Zeros on a device with room for a micro-batch, its rows filled up."""
    rows = filled_up(micro.rows.shape[1])
    made = {}
    for field in fields(micro):
        tensor: Tensor = getattr(micro, field.name)
        shape = list(tensor.shape)
        if field.name in _BY_ROWS:
            shape[1] = rows
        made[field.name] = torch.zeros(shape, dtype=tensor.dtype, device=device)
    return MicroBatch(**made)


def write(micro: MicroBatch, room: MicroBatch) -> None:
    """Write a micro-batch into the room for it; rows that it does not have are padding."""
    pinned = room.rows.is_cuda
    for field in fields(micro):
        tensor, there = getattr(micro, field.name), getattr(room, field.name)
        part = there[:, : tensor.shape[1]] if field.name in _BY_ROWS else there
        part.copy_(tensor.pin_memory() if pinned else tensor, non_blocking=True)
    room.padding[:, micro.rows.shape[1] :] = True


@dataclass(frozen=True)
class _Capture:
    """Losses and gradient of one shape.

    Attributes
    ----------
    inputs
        Where a micro-batch is written before a replay.
    losses
        Where its losses stand afterwards.
    replay
        Computes them, and the gradient.
    """

    inputs: MicroBatch
    losses: dict[str, Tensor]
    replay: Callable[[], None]


class GraphedGradients:
    """Sums the gradients of micro-batches.

    Parameters
    ----------
    model
        The networks in single precision, on a GPU; on a processor nothing is captured, the rest is the same.
    losses
        Losses of a micro-batch by its networks; their sum without `exact` is differentiated.
    """

    def __init__(self, model: LawModel, losses: Losses) -> None:
        self.losses = losses
        self.copy = copy.deepcopy(model).bfloat16()
        self.device = next(model.parameters()).device
        pairs = list(zip(model.parameters(), self.copy.parameters(), strict=True))
        self.weights = [weight.detach() for weight, _ in pairs]
        self.copies = [copied.detach() for _, copied in pairs]
        self.learning = [weight for weight, _ in pairs if weight.requires_grad]
        size = sum(weight.numel() for weight in self.learning)
        self.gradient = torch.zeros(size, dtype=torch.bfloat16, device=self.device)
        self.sums = torch.zeros(size, device=self.device)
        self.views = self._views(self.sums)
        copied = [copied for weight, copied in pairs if weight.requires_grad]
        for parameter, view in zip(copied, self._views(self.gradient), strict=True):
            parameter.grad = view
        self.captures: dict[tuple[int, ...], _Capture] = {}
        self.pool = torch.cuda.graph_pool_handle() if self.device.type == "cuda" else None

    def _views(self, flat: Tensor) -> list[Tensor]:
        pieces = torch.split(flat, [weight.numel() for weight in self.learning])
        return [piece.view_as(weight) for piece, weight in zip(pieces, self.learning, strict=True)]

    def begin(self) -> None:
        """Start the sums of a step: the copies get the weights as they are now."""
        torch._foreach_copy_(self.copies, self.weights)
        self.sums.zero_()
        for weight, view in zip(self.learning, self.views, strict=True):
            weight.grad = view

    def add(self, micro: MicroBatch, share: float) -> dict[str, Tensor]:
        """Add a micro-batch's gradient, times its share, to that of the weights; returns its losses."""
        # The other shapes follow from these: the masks of a law are the same number throughout a run.
        shape = (filled_up(micro.rows.shape[1]), *micro.tokens.shape)
        capture = self.captures.get(shape)
        if capture is None:
            capture = self.captures[shape] = self._captured(micro)
        write(micro, capture.inputs)
        capture.replay()
        self.sums.add_(self.gradient, alpha=share)
        return {name: loss.clone() for name, loss in capture.losses.items()}

    def _pass(self, inputs: MicroBatch) -> dict[str, Tensor]:
        self.gradient.zero_()
        found = self.losses(self.copy, inputs)
        objective(found).backward()  # type: ignore[no-untyped-call]
        return {name: loss.detach() for name, loss in found.items()}

    def _captured(self, micro: MicroBatch) -> _Capture:
        inputs = room_for(micro, self.device)
        write(micro, inputs)
        if self.device.type != "cuda":
            kept: dict[str, Tensor] = {}
            return _Capture(inputs, kept, lambda: kept.update(self._pass(inputs)))
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(_PASSES):
                self._pass(inputs)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.pool, capture_error_mode="thread_local"):
            losses = self._pass(inputs)
        return _Capture(inputs, losses, graph.replay)
