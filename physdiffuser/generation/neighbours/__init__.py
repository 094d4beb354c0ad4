"""Neighbours: small changes of what other generators have found, those that the residuals suggest first."""

from __future__ import annotations

from physdiffuser.device import open_device
from physdiffuser.generation.neighbours.generator import NeighbourGenerator


def build(device: str = "auto") -> NeighbourGenerator:
    """A generator for one run."""
    return NeighbourGenerator(open_device(device))
