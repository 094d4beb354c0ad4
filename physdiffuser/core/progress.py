"""How far a search has come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """How far a search has come.

    Attributes
    ----------
    elapsed, budget
        Seconds since the start, and in all (None when only steps limit the run).
    best, loss, complexity, generator
        The best formula so far, as text, and where it came from.
    front
        Formulas of the Pareto front, simple ones first.
    latex
        The best formula as LaTeX; empty in runs whose units were changed.
    groups
        Of a table with groups: for each formula of the front the constants of each group, by their names.
    functions
        With a template: the best forms of its functions, `f = 2*t + x`.
    """

    elapsed: float
    budget: float | None
    best: str
    loss: float
    complexity: int
    generator: str
    front: tuple[str, ...] = ()
    latex: str = ""
    groups: tuple[Mapping[str, Mapping[str, float]], ...] = ()
    functions: tuple[str, ...] = ()
