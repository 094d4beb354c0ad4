"""Numbers that the evolution generator decides with."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class EvolutionPolicy:
    """What a generation tries, what the population keeps, and when it is reweighted.

    The values were chosen on the development laws with 0 and 1 % noise (`tools/measure_evolution.py`).

    Attributes
    ----------
    offspring
        Blind variations in a generation.
    subtree_targets
        Places in a generation for which the best building block is looked up.
    lookups
        Building blocks in a generation to which the best second one is looked up.
    refinements, iterations
        Formulas in a generation whose constants are refined by Levenberg-Marquardt, and steps of each.
    restarts
        Formulas in a generation whose constants are fitted from many starts.
    probes, enrichments
        Formulas of the front in a generation of which every place is looked up, and places in such a formula
        where one more constant is tried.
    blocks
        Most building blocks.
    width
        Kinds of formula kept at each complexity.
    limit
        Most complex formulas kept, if the problem allows them.
    decay
        Parents of complexity c are drawn with odds `exp(-c/decay)`.
    screening_rows
        Rows on which formulas are compared; candidates are fitted on all rows of the problem.
    max_columns
        Columns that are used. With more the search hardly finds a law, and the pairs of building blocks
        grow with the square.
    improvement
        A formula becomes a candidate if its loss is at most this share of that of the last one.
    seeds
        Formulas of the archive that a generation begins with.
    first_reweightings, reweighting_interval
        Generations in which rows get new weights, and the interval after the last of them.
    price
        What a unit of complexity must lower the logarithm of the median residual by.
    limit_interval, as_good, room, room_exact
        Each so many generations the population is limited to `room` more complexity than the simplest formula
        whose loss is at most `as_good` times the best; to `room_exact` more when that one is exact, because
        then only simpler ones are of interest.
    """

    offspring: int = 192
    subtree_targets: int = 20
    lookups: int = 16
    refinements: int = 16
    iterations: int = 6
    restarts: int = 1
    probes: int = 2
    enrichments: int = 3
    blocks: int = 2500
    width: int = 16
    limit: int = 40
    decay: float = 20.0
    screening_rows: int = 256
    max_columns: int = 12
    improvement: float = 0.99
    seeds: int = 12
    first_reweightings: tuple[int, ...] = (1, 3, 6)
    reweighting_interval: int = 10
    price: float = 0.05
    limit_interval: int = 5
    as_good: float = 1.05
    room: int = 12
    room_exact: int = 2


POLICY = EvolutionPolicy()
