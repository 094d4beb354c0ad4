"""Neighbours: small changes of what other generators have found, those that the data ask for first."""

from __future__ import annotations

from physdiffuser.generation.neighbours.generator import NeighbourGenerator


def build() -> NeighbourGenerator:
    """A generator for one run."""
    return NeighbourGenerator()
