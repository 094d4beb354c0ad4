"""Attention among learned slices of a set (Transolver), registered as the variant `physics-slice`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pluggy

from physdiffuser.specs import AttentionSpec

if TYPE_CHECKING:
    from torch import nn

hookimpl = pluggy.HookimplMarker("physdiffuser")


def build(width: int, heads: int, **options: Any) -> nn.Module:
    """Make the module; torch is imported only here."""
    from physdiffuser_attention_physics_slice.attention import PhysicsSliceAttention

    return PhysicsSliceAttention(width, heads, **options)


@hookimpl
def physdiffuser_attentions() -> list[AttentionSpec]:
    """The variant of this package."""
    return [
        AttentionSpec(
            name="physics-slice",
            build=build,
            options={"slices": 32, "content_projection": True, "point_temperature": False},
            supports=frozenset({"padding_mask", "weights"}),
        )
    ]
