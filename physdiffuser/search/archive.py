"""The Pareto archive: the most accurate formula at each complexity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from physdiffuser.expressions import complexity, evaluate
from physdiffuser.fitting import losses
from physdiffuser.search.candidate import Candidate
from physdiffuser.search.problem import Problem

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Entry:
    """A candidate with its score on the problem's rows.

    Attributes
    ----------
    loss
        Weighted mean squared residual (or Huber loss) divided by that of the constant model:
        0 is perfect, 1 is as good as a constant.
    """

    candidate: Candidate
    complexity: int
    loss: float


def relative_loss(problem: Problem, prediction: FloatArray) -> float:
    """Loss of a prediction relative to the best constant's; inf where it is not finite."""
    return losses.relative_loss(prediction, problem.target, problem.weights, problem.loss)


class ParetoArchive:
    """The best entry at each complexity, kept for one problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._best: dict[int, Entry] = {}
        self.offered = 0

    def offer(self, candidate: Candidate) -> bool:
        """Score a candidate; True if it is now on the Pareto front."""
        self.offered += 1
        cost = complexity(candidate.expression)
        if cost > self.problem.max_complexity or not self.problem.allows(candidate.expression):
            return False
        loss = relative_loss(self.problem, evaluate(candidate.expression, self.problem.inputs))
        if not np.isfinite(loss):
            return False
        if any(kept.loss <= loss for size, kept in self._best.items() if size <= cost):
            return False
        self._best[cost] = Entry(candidate, cost, loss)
        return True

    def front(self) -> list[Entry]:
        """Entries that no simpler one beats, from simple to complex."""
        front: list[Entry] = []
        for cost in sorted(self._best):
            entry = self._best[cost]
            if not front or entry.loss < front[-1].loss:
                front.append(entry)
        return front

    @property
    def best_loss(self) -> float:
        """The smallest loss so far; inf when empty."""
        return min((entry.loss for entry in self._best.values()), default=float("inf"))
