"""The learned autoregressive generator: formulas written token by token by a decoder."""

from __future__ import annotations

from typing import Any

from physdiffuser.generation.autoregressive.generator import AutoregressiveGenerator

__all__ = ["AutoregressiveGenerator", "build"]


def build(**options: Any) -> AutoregressiveGenerator:
    """A generator for one run; the options are those of `AutoregressiveGenerator`."""
    return AutoregressiveGenerator(**options)
