"""Enumeration: libraries of small formulas, looked up in pairs."""

from __future__ import annotations

from physdiffuser.device import open_device
from physdiffuser.generation.enumeration.generator import EnumerationGenerator


def build(device: str = "auto") -> EnumerationGenerator:
    """A generator for one run."""
    return EnumerationGenerator(open_device(device))
