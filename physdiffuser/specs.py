"""The frozen records that plugins return."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from physdiffuser.core.family import FamilySpec, everywhere
from physdiffuser.core.generator import GeneratorSpec
from physdiffuser.expressions.operators import OperatorSpec

if TYPE_CHECKING:
    from torch import nn

__all__ = [
    "ATTENTION_CAPABILITIES",
    "AttentionSpec",
    "FamilySpec",
    "GeneratorSpec",
    "OperatorSpec",
    "everywhere",
]

ATTENTION_CAPABILITIES = frozenset({"padding_mask", "cross", "causal", "weights", "coordinates", "cache"})


@dataclass(frozen=True)
class AttentionSpec:
    """An attention variant as a plugin registers it.

    Attributes
    ----------
    name
        What `--attention` and the configuration call it.
    build
        `build(width, heads, **options)` makes the module. Its call is
        `module(query, memory, *, padding_mask, causal, coordinates, need_weights, cache)` and
        returns `(output, weights or None)`; see `physdiffuser.models.attention`.
    options
        Default options, by name.
    supports
        What it can do, out of `ATTENTION_CAPABILITIES`.
    """

    name: str
    build: Callable[..., nn.Module]
    options: Mapping[str, Any] = field(default_factory=dict)
    supports: frozenset[str] = frozenset({"padding_mask"})

    def __post_init__(self) -> None:
        unknown = self.supports - ATTENTION_CAPABILITIES
        if unknown:
            raise ValueError(f"attention {self.name!r} declares unknown capabilities {sorted(unknown)}")
