"""The Pareto archive: the most accurate formula at each complexity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from physdiffuser.expressions import Expression, complexity, evaluate
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
    if not np.isfinite(prediction).all():
        return float("inf")
    centre = (
        problem.target.mean()
        if problem.weights is None
        else np.average(problem.target, weights=problem.weights)
    )
    return _loss(problem, problem.target - prediction) / max(_loss(problem, problem.target - centre), 1e-300)


def _loss(problem: Problem, residual: FloatArray) -> float:
    # Scaled before squaring: targets of 1e-300 or 1e300 must neither vanish nor overflow.
    scale = float(np.abs(residual).max(initial=0.0))
    if scale == 0.0 or not np.isfinite(scale):
        return scale
    unit = residual / scale
    if problem.loss == "huber":
        width = 1.345 * 1.4826 * float(np.median(np.abs(unit))) or 1.0
        size = np.abs(unit)
        unit_loss = np.where(size <= width, unit * unit, 2 * width * size - width * width)
    else:
        unit_loss = unit * unit
    mean = unit_loss.mean() if problem.weights is None else np.average(unit_loss, weights=problem.weights)
    return float(mean) * scale * scale if scale < 1e150 else float("inf")


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
        if cost > self.problem.max_complexity or not self._balances(candidate.expression):
            return False
        loss = relative_loss(self.problem, evaluate(candidate.expression, self.problem.inputs))
        if not np.isfinite(loss):
            return False
        if any(kept.loss <= loss for size, kept in self._best.items() if size <= cost):
            return False
        self._best[cost] = Entry(candidate, cost, loss)
        return True

    def _balances(self, expression: Expression) -> bool:
        units, target_unit = self.problem.units, self.problem.target_unit
        if units is None or target_unit is None:
            return True
        from physdiffuser.expressions.dimensions import balances

        return balances(expression, units, target_unit)

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
