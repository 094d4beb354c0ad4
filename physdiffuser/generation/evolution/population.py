"""The population: the best formula of each kind at each complexity (MAP-Elites).

Mouret & Clune, "Illuminating search spaces by mapping elites", 2015; with a physicist's descriptors as
in QDSR (Bruneton 2025): complexity, the functions used and the variables used. Parents are drawn evenly over
complexities, so that crowded sizes gain nothing from being crowded (the aim of PySR's
frequency-aware parsimony), and within one by tournament.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from physdiffuser.expressions import Expression, Number
from physdiffuser.expressions.tree import add, mul


@dataclass(slots=True)
class Individual:
    """A formula with its fit.

    Attributes
    ----------
    expression
        In scaled columns, without the outer scale and offset.
    complexity
        Of `expression`.
    kind
        See `trees.profile`.
    loss, factor, offset
        See `scoring.Scores`.
    key
        Equal for formulas that are affine functions of each other.
    source
        The variation that made it.
    fitted
        Whether its constants have been refined.
    simplified
        Whether its simpler neighbours have been tried.
    probed
        Whether every place in it has been asked what the data want there.
    """

    expression: Expression
    complexity: int
    kind: str
    loss: float
    factor: float
    offset: float
    key: bytes
    source: str
    fitted: bool = False
    simplified: bool = False
    probed: bool = False

    @property
    def full_complexity(self) -> int:
        """Complexity with the outer scale and offset."""
        return self.complexity + 2 * (self.factor != 1.0) + 2 * (self.offset != 0.0)

    def whole(self) -> Expression:
        """`offset + factor*expression`."""
        whole = self.expression
        if self.factor != 1.0:
            whole = mul(Number(self.factor), whole)
        return whole if self.offset == 0.0 else add(Number(self.offset), whole)


class Elites:
    """A grid of complexity by kind, with a limit on the kinds kept at each complexity.

    Parameters
    ----------
    limit
        Largest complexity kept.
    decay
        The odds of a complexity to be drawn fall by a factor e over so many units.
    """

    def __init__(self, limit: int, width: int, decay: float = np.inf) -> None:
        self.limit = limit
        self.decay = decay
        self.width = width
        self._shelves: dict[int, dict[str, Individual]] = {}
        self._ordered: dict[int, list[Individual]] = {}

    def add(self, individual: Individual) -> bool:
        """Keep an individual if it is the best of its kind, or a new kind not worse than the rest."""
        cost = individual.complexity
        if cost > self.limit or not np.isfinite(individual.loss):
            return False
        shelf = self._shelves.setdefault(cost, {})
        known = shelf.get(individual.kind)
        if known is not None:
            if known.loss <= individual.loss:
                return False
        elif len(shelf) >= self.width:
            worst = max(shelf.values(), key=lambda other: other.loss)
            if worst.loss <= individual.loss:
                return False
            del shelf[worst.kind]
        shelf[individual.kind] = individual
        self._ordered.pop(cost, None)
        return True

    def __len__(self) -> int:
        return sum(len(shelf) for shelf in self._shelves.values())

    def shelf(self, cost: int) -> list[Individual]:
        """Individuals of one complexity, best first."""
        ordered = self._ordered.get(cost)
        if ordered is None:
            shelf = self._shelves.get(cost, {})
            ordered = self._ordered[cost] = sorted(shelf.values(), key=lambda one: one.loss)
        return ordered

    def draw(self, rng: np.random.Generator, count: int, size: int = 3) -> list[Individual]:
        """Parents: a complexity at random, then the best of `size` of that complexity."""
        costs = sorted(cost for cost, shelf in self._shelves.items() if shelf)
        odds = np.exp(-np.array(costs) / self.decay)
        chosen = rng.choice(len(costs), count, p=odds / odds.sum())
        ranks = rng.random((count, size)).min(axis=1)
        drawn: list[Individual] = []
        for position, rank in zip(chosen.tolist(), ranks.tolist(), strict=True):
            ordered = self.shelf(costs[position])
            drawn.append(ordered[int(rank * len(ordered))])
        return drawn

    def front(self) -> list[Individual]:
        """Individuals that none of at most the same full complexity beats, from simple to complex."""
        best: dict[int, Individual] = {}
        for cost in self._shelves:
            for individual in self.shelf(cost)[:3]:
                full = individual.full_complexity
                if full not in best or individual.loss < best[full].loss:
                    best[full] = individual
        front: list[Individual] = []
        for full in sorted(best):
            if not front or best[full].loss < front[-1].loss:
                front.append(best[full])
        return front

    def rescore(self, individuals: list[Individual]) -> None:
        """Start over with the given individuals."""
        self._shelves.clear()
        self._ordered.clear()
        for individual in individuals:
            self.add(individual)

    def restrict(self, limit: int) -> None:
        """Drop what is more complex than a new limit."""
        self.limit = limit
        for cost in [cost for cost in self._shelves if cost > limit]:
            del self._shelves[cost]
            self._ordered.pop(cost, None)

    def everyone(self) -> list[Individual]:
        """All individuals, from simple to complex, best first."""
        return [one for cost in sorted(self._shelves) for one in self.shelf(cost)]
