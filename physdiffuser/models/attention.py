"""What an attention module is, and how one is found by name.

An attention variant is a plugin: `AttentionSpec.build(width, heads, **options)` makes an `nn.Module`
that is called as

    output, weights = module(query, memory, padding_mask=..., causal=..., coordinates=...,
                             need_weights=..., cache=...)

* `query`: (batch, queries, width); `memory`: (batch, keys, width), or None for self-attention.
* `padding_mask`: (batch, keys) bool, True where a key is padding and must have no influence.
* `causal`: position i attends to positions up to i only.
* `coordinates`: (batch, keys, columns + 1), the values of the rows themselves, target last.
* `need_weights`: also return the weights, (batch, heads, queries, keys).
* `cache`: a `KeyValueCache` that the module appends its keys and values to.

What a variant cannot do it does not declare in `supports`, and is never asked for: `require` refuses it
with the reason when the network is built.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from physdiffuser.arrays import CHECK_ARRAYS, checked
from physdiffuser.errors import UsageError

if TYPE_CHECKING or CHECK_ARRAYS:
    from jaxtyping import Float, Int

if TYPE_CHECKING:
    from physdiffuser.specs import AttentionSpec

REASONS = {
    "causal": "it mixes all positions, so a position would see what it must predict",
    "cross": "it lets a set attend to itself only, not to another sequence",
    "padding_mask": "padded rows would change the result",
    "weights": "it does not return attention weights",
    "cache": "it cannot reuse the keys of earlier positions",
    "coordinates": "it does not use the values of the rows",
}


@dataclass
class KeyValueCache:
    """Keys and values of the positions already decoded, each (batch, heads, positions, head width)."""

    keys: Tensor | None = None
    values: Tensor | None = None
    fixed: bool = False

    @checked
    def extend(
        self, keys: Float[Tensor, "batch heads new head"], values: Float[Tensor, "batch heads new head"]
    ) -> tuple[Float[Tensor, "batch heads length head"], Float[Tensor, "batch heads length head"]]:
        """Append new positions; returns all of them."""
        if self.keys is not None and self.values is not None:
            keys = torch.cat((self.keys, keys), dim=2)
            values = torch.cat((self.values, values), dim=2)
        self.keys, self.values = keys, values
        return keys, values

    @checked
    def select(self, rows: Int[Tensor, " kept"]) -> None:
        """Keep the given batch rows, in that order (beam search reorders its hypotheses)."""
        if self.keys is not None and self.values is not None:
            self.keys, self.values = self.keys[rows], self.values[rows]


def require(spec: AttentionSpec, capabilities: Iterable[str], purpose: str) -> None:
    """Refuse a variant that cannot do what a network needs.

    Raises
    ------
    UsageError
        Naming the variant, the missing capability and why it matters.
    """
    for capability in capabilities:
        if capability not in spec.supports:
            raise UsageError(
                f"attention {spec.name!r} cannot be used for {purpose}: {REASONS[capability]} "
                f"(it does not declare {capability!r}); choose another variant, for example 'standard'"
            )


def find_attention(name: str) -> AttentionSpec:
    """The attention variant of that name, among all installed plugins.

    Raises
    ------
    PluginError
        If no installed package provides it, or the package that does fails to import.
    """
    from physdiffuser.plugin_system.manager import load_plugins

    return load_plugins().attention(name)


def build_attention(spec: AttentionSpec, width: int, heads: int, options: dict[str, Any]) -> nn.Module:
    """Build a variant with its default options and those given.

    Raises
    ------
    UsageError
        If an option is not one of the variant's.
    """
    unknown = set(options) - set(spec.options)
    if unknown:
        raise UsageError(
            f"attention {spec.name!r} has no option {', '.join(map(repr, sorted(unknown)))}; "
            f"it knows {', '.join(sorted(spec.options)) or 'none'}"
        )
    return spec.build(width, heads, **{**spec.options, **options})
