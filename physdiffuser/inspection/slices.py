"""Inside physics-slice attention: who is in which slice, what slices weigh, attend to and cost."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from physdiffuser_attention_physics_slice.attention import PhysicsSliceAttention

from physdiffuser.arrays import FloatArray
from physdiffuser.inspection.capture import Heard
from physdiffuser.inspection.networks import quiet_networks
from physdiffuser.inspection.session import Showing

COST_ROWS = (64, 256, 1024, 4096)
_MIN_SECONDS = 0.05


@dataclass(frozen=True)
class Slices:
    """One layer's slices of one table.

    Attributes
    ----------
    assignment
        (heads, rows, slices): weights of each row over the slices.
    masses
        (heads, slices): share of all rows in each slice.
    attention
        (heads, slices, slices): weights among the slices, receiving slice first.
    """

    assignment: FloatArray
    masses: FloatArray
    attention: FloatArray

    @property
    def most_selective_head(self) -> int:
        """The head whose assignment differs most between rows."""
        return int(self.assignment.std(axis=1).mean(axis=1).argmax())


def slices_of(heard: Heard) -> Slices | None:
    """What one call did, or None if its module is no physics-slice attention.

    The weights among the slices are formed inside a fused kernel, so they are made once more here from
    the same vectors; put together, the three parts give the module's output.
    """
    module = heard.module
    if not isinstance(module, PhysicsSliceAttention) or heard.weights is None:
        return None
    with quiet_networks():
        weights = heard.weights[0].float()
        vectors = heard.query[:1]
        content = vectors if module.content is None else module.content(vectors)
        rows, head = content.shape[1], module.width // module.heads
        # (1, rows, width) -> (heads, rows, head width); the batch of one is taken up by the view
        split = content.view(rows, module.heads, head).transpose(0, 1)
        mass = weights.sum(dim=1)
        tokens = (weights.transpose(1, 2) @ split.float()) / (mass.unsqueeze(-1) + 1e-6)
        logits = module.query(tokens) @ module.key(tokens).transpose(1, 2) / math.sqrt(head)
        among = logits.softmax(dim=-1)
    shares = mass / mass.sum(dim=-1, keepdim=True)
    return Slices(*(part.double().numpy() for part in (weights, shares, among)))


def cost(layers: Mapping[str, Heard], rows: Sequence[int]) -> dict[str, list[float]]:
    """Seconds of one forward pass of these layers and of standard attention of their size, by number of rows.

    CPU seconds of one thread, the smallest of several passes. Vectors are those that the first layer was
    shown, repeated; all layers are of the same width.
    """
    from physdiffuser_attention_standard.attention import StandardAttention

    heard = next(iter(layers.values()))
    width, heads = heard.query.shape[-1], int(getattr(heard.module, "heads", 1))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        standard = StandardAttention(width, heads).eval()
    timed = {name: one.module for name, one in layers.items()} | {"standard": standard}
    found: dict[str, list[float]] = {name: [] for name in timed}
    with quiet_networks():
        for count in rows:
            repeats = -(-count // heard.query.shape[1])
            vectors = heard.query[:1].repeat(1, repeats, 1)[:, :count]
            for name, module in timed.items():
                found[name].append(_seconds(module, vectors))
    return found


def _seconds(module: torch.nn.Module, vectors: torch.Tensor) -> float:
    module(vectors)
    best, spent = math.inf, 0.0
    while spent < _MIN_SECONDS:
        began = time.process_time()
        module(vectors)
        taken = time.process_time() - began
        best, spent = min(best, taken), spent + max(taken, 1e-5)
    return best


def layers_of(showing: Showing) -> list[Slices]:
    """Slices of every layer of the encoder; empty where its attention has none."""
    found = map(slices_of, showing.calls_among_rows)
    return [one for one in found if one is not None]
