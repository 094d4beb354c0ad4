"""Scaled dot-product multi-head attention (Vaswani et al., 2017), registered as the variant `standard`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pluggy

from physdiffuser.specs import AttentionSpec

if TYPE_CHECKING:
    from torch import nn

hookimpl = pluggy.HookimplMarker("physdiffuser")


def build(width: int, heads: int, **options: Any) -> nn.Module:
    """Make the module; torch is imported only here."""
    from physdiffuser_attention_standard.attention import StandardAttention

    return StandardAttention(width, heads, **options)


@hookimpl
def physdiffuser_attentions() -> list[AttentionSpec]:
    """The variant of this package."""
    return [
        AttentionSpec(
            name="standard",
            build=build,
            options={"positions": "none", "max_positions": 512},
            supports=frozenset({"padding_mask", "cross", "causal", "weights", "cache"}),
        )
    ]
