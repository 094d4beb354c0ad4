"""Enumeration: libraries of small formulas, looked up in pairs."""

from __future__ import annotations

from physdiffuser.generation.enumeration.generator import EnumerationGenerator


def build() -> EnumerationGenerator:
    """A generator for one run."""
    return EnumerationGenerator()
