"""The learned diffusion generator: formulas unmasked place by place by a denoiser."""

from __future__ import annotations

from typing import Any

from physdiffuser.generation.diffusion.generator import DiffusionGenerator

__all__ = ["DiffusionGenerator", "build"]


def build(**options: Any) -> DiffusionGenerator:
    """A generator for one run; the options are those of `DiffusionGenerator`."""
    return DiffusionGenerator(**options)
