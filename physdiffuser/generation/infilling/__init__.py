"""The learned refiner: parts of the best formulas written anew by the denoiser."""

from __future__ import annotations

from typing import Any

from physdiffuser.generation.infilling.generator import InfillingGenerator

__all__ = ["InfillingGenerator", "build"]


def build(**options: Any) -> InfillingGenerator:
    """A generator for one run; the options are those of `InfillingGenerator`."""
    return InfillingGenerator(**options)
