"""Numbers that the evolution generator decides with."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class EvolutionPolicy:
    """What a generation tries, what the population keeps, and when it is reweighted.

    The values were chosen on the development laws with 0 and 1 % noise (`tools/measure_evolution.py`).
    """

    offspring: int = 192
    """Blind variations in a generation."""
    subtree_targets: int = 20
    """Places in a generation for which the best building block is looked up."""
    lookups: int = 16
    """Building blocks in a generation to which the best second one is looked up."""
    refinements: int = 16
    iterations: int = 6
    """Formulas in a generation whose constants are refined by Levenberg-Marquardt, and steps of each."""
    restarts: int = 1
    """Formulas in a generation whose constants are fitted from many starts."""
    probes: int = 2
    enrichments: int = 3
    """Formulas of the front in a generation of which every place is looked up, and places in such a formula
    where one more constant is tried."""
    blocks: int = 2500
    """Most building blocks."""
    width: int = 16
    """Kinds of formula kept at each complexity."""
    limit: int = 40
    """Most complex formulas kept, if the problem allows them."""
    decay: float = 20.0
    """Parents of complexity c are drawn with odds `exp(-c/decay)`."""
    screening_rows: int = 256
    """Rows on which formulas are compared; candidates are fitted on all rows of the problem."""
    max_columns: int = 12
    """Columns that are used. With more the search hardly finds a law, and the pairs of building blocks grow
    with the square."""
    improvement: float = 0.99
    """A formula becomes a candidate if its loss is at most this share of that of the last one."""
    seeds: int = 12
    """Formulas of the archive that a generation begins with."""
    first_reweightings: tuple[int, ...] = (1, 3, 6)
    reweighting_interval: int = 10
    """Generations in which rows get new weights, and the interval after the last of them."""
    price: float = 0.05
    """What a unit of complexity must lower the logarithm of the median residual by."""
    limit_interval: int = 5
    as_good: float = 1.05
    room: int = 12
    room_exact: int = 2
    """Each so many generations the population is limited to `room` more complexity than the simplest formula
    whose loss is at most `as_good` times the best; to `room_exact` more when that one is exact, because then
    only simpler ones are of interest."""


POLICY = EvolutionPolicy()
