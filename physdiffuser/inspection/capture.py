"""Attention weights through hooks: asked for while a network runs, and at no other time.

A hook before each attention module asks it for its weights, a hook after it keeps them. Outside
`captured` no module has a hook, so the path that `solve` takes is not slowed by a single instruction.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from torch import Tensor, nn

from physdiffuser.models.attention import find_attention
from physdiffuser.models.network import LawModel


class Place(NamedTuple):
    """Where in the networks an attention module stands.

    Attributes
    ----------
    part
        "encoder", "denoiser" or "decoder".
    kind
        In the encoder "gather" (inducing points from rows), "spread" (rows from inducing points), "rows"
        (rows among themselves, where the variant cannot cross), "pooling" (memory vectors from rows) and
        "mixing" (memory among itself); elsewhere "self" and "cross".
    layer
        Counted from 0 within part and kind.
    """

    part: str
    kind: str
    layer: int


@dataclass(frozen=True)
class Heard:
    """One call of an attention module.

    Attributes
    ----------
    module
        The module itself.
    query, memory
        What it was called with, (batch, queries, width) and (batch, keys, width) or None.
    options
        Its other arguments: masks, coordinates, `causal`.
    output
        (batch, queries, width).
    weights
        (batch, heads, queries, keys): those that made `output`; None from a variant that has none to give.
    """

    module: nn.Module
    query: Tensor
    memory: Tensor | None
    options: dict[str, Any]
    output: Tensor
    weights: Tensor | None


@dataclass
class Capture:
    """Everything heard, by place, in the order of the calls."""

    calls: dict[Place, list[Heard]] = field(default_factory=dict)

    def last(self, place: Place) -> Heard:
        """The newest call at a place."""
        return self.calls[place][-1]

    def weights(self, part: str, kind: str) -> Tensor:
        """Weights of the newest call of every layer, (layers, batch, heads, queries, keys)."""
        import torch

        places = sorted(place for place in self.calls if place[:2] == (part, kind))
        found = [self.last(place).weights for place in places]
        return torch.stack([weights for weights in found if weights is not None])

    def has(self, part: str, kind: str) -> bool:
        """Whether weights of some layer were heard there."""
        return any(
            place[:2] == (part, kind) and calls[-1].weights is not None for place, calls in self.calls.items()
        )

    def clear(self) -> None:
        """Forget what was heard so far."""
        self.calls.clear()


def places(model: LawModel) -> Iterator[tuple[Place, nn.Module, str]]:
    """Every attention module of a model: where it stands, the module, and the name of its variant."""
    encoder = model.encoder
    variant = model.config.encoder.attention
    for layer, block in enumerate(encoder.blocks):
        if encoder.induced:
            yield Place("encoder", "gather", layer), block[0].attention, variant  # type: ignore[index]
            yield Place("encoder", "spread", layer), block[1].attention, variant  # type: ignore[index]
        else:
            yield Place("encoder", "rows", layer), _attention(block, "attention"), variant
    yield Place("encoder", "pooling", 0), _attention(encoder.pooling, "attention"), "standard"
    for layer, block in enumerate(encoder.mixing):
        yield Place("encoder", "mixing", layer), _attention(block, "attention"), "standard"
    for part, network, section in (
        ("denoiser", model.denoiser, model.config.diffusion),
        ("decoder", model.decoder, model.config.autoregressive),
    ):
        if network is not None and section is not None:
            for layer, block in enumerate(network.blocks):
                yield Place(part, "self", layer), _attention(block, "own"), section.attention
                yield Place(part, "cross", layer), _attention(block, "cross"), section.attention


def _attention(block: nn.Module, name: str) -> nn.Module:
    module = getattr(block, name)
    assert isinstance(module, nn.Module)
    return module


@contextmanager
def captured(model: LawModel) -> Iterator[Capture]:
    """Listen to every attention module of a model while in this context.

    Parameters
    ----------
    model
        In evaluation mode. Its outputs in the context equal those outside it up to rounding: modules that
        are asked for weights compute softmax and product apart, instead of in one fused kernel.
    """
    heard = Capture()
    handles = []
    try:
        for place, module, variant in places(model):
            if "weights" in find_attention(variant).supports:
                handles.append(module.register_forward_pre_hook(_ask, with_kwargs=True))
            handles.append(module.register_forward_hook(_Keep(heard, place), with_kwargs=True))
        yield heard
    finally:
        for handle in handles:
            handle.remove()


def _ask(
    module: nn.Module, arguments: tuple[Any, ...], options: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return arguments, {**options, "need_weights": True}


class _Keep:
    """A forward hook that keeps one module's calls."""

    def __init__(self, heard: Capture, place: Place) -> None:
        self.heard, self.place = heard, place

    def __call__(
        self, module: nn.Module, arguments: tuple[Any, ...], options: dict[str, Any], result: Any
    ) -> None:
        output, weights = result
        query = arguments[0]
        memory = arguments[1] if len(arguments) > 1 else options.get("memory")
        kept = {name: value for name, value in options.items() if name not in ("need_weights", "memory")}
        self.heard.calls.setdefault(self.place, []).append(
            Heard(
                module=module,
                query=query.detach(),
                memory=None if memory is None else memory.detach(),
                options=kept,
                output=output.detach(),
                weights=None if weights is None else weights.detach(),
            )
        )
