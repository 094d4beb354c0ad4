"""Sparse regression: laws that are a sum, or a ratio of sums, of a few library terms."""

from __future__ import annotations

from physdiffuser.generation.sparse.generator import SparseGenerator


def build() -> SparseGenerator:
    """A generator for one run."""
    return SparseGenerator()
