"""Attention with a physical bias on its logits, registered as the variant `biased`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pluggy

from physdiffuser.specs import AttentionSpec

if TYPE_CHECKING:
    from torch import nn

hookimpl = pluggy.HookimplMarker("physdiffuser")


def build(width: int, heads: int, **options: Any) -> nn.Module:
    """Make the module; torch is imported only here."""
    from physdiffuser_attention_biased.attention import BiasedAttention

    return BiasedAttention(width, heads, **options)


@hookimpl
def physdiffuser_attentions() -> list[AttentionSpec]:
    """The variant of this package."""
    return [
        AttentionSpec(
            name="biased",
            build=build,
            options={
                "form": "barrier",
                "height_column": -1,
                "gate_column": None,
                "columns": 10,
                "hidden": 16,
                "initial_strength": 0.5,
            },
            supports=frozenset({"padding_mask", "weights", "coordinates"}),
        )
    ]
