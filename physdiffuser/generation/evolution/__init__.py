"""Evolution: populations of formulas, varied blindly and towards the target of each subtree."""

from __future__ import annotations

from typing import Any

from physdiffuser.generation.evolution.generator import EvolutionGenerator
from physdiffuser.generation.evolution.mutation import Mutation

__all__ = ["EvolutionGenerator", "Mutation", "build"]


def build(**options: Any) -> EvolutionGenerator:
    """A generator for one run; the options are those of `EvolutionGenerator`."""
    return EvolutionGenerator(**options)
