"""Accounting of work: pieces of known nominal length, paid for in steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from physdiffuser.core.archive import Archive
from physdiffuser.core.candidate import Candidate
from physdiffuser.core.problem import Budget, Problem

# What a step stands for on the machine where the pieces were timed: seconds of one core.
STEP_SECONDS = 0.1

# A candidate, or the nominal seconds of a piece of work just done.
Work = Iterator[Candidate | float]


class MeteredGenerator(ABC):
    """A generator whose whole run is one iterator, cut into turns by the budget.

    Pieces of work are paid for by nominal lengths, not measured ones, so that equal step budgets do
    equal work. `run` yields candidates, and after each piece of work its nominal seconds.
    """

    name: str

    def __init__(self) -> None:
        self._work: Work | None = None
        self._debt = 0.0
        self._failure: Exception | None = None

    @abstractmethod
    def run(self, problem: Problem, archive: Archive) -> Work:
        """Everything the generator would do without a budget."""

    def propose(self, problem: Problem, archive: Archive, budget: Budget) -> Iterator[Candidate]:
        """Go on where the last turn ended until the budget is spent; see `Generator.propose`.

        A run that raised an exception is over: each later turn raises the same exception. Its iterator is
        exhausted, and would otherwise pass for a run that has come to its end.
        """
        if self._failure is not None:
            raise self._failure
        if self._work is None:
            self._work = self._recorded(self.run(problem, archive))
        for item in self._work:
            if isinstance(item, Candidate):
                yield item
                continue
            self._debt += item
            steps = int(self._debt / STEP_SECONDS)
            self._debt -= steps * STEP_SECONDS
            if not budget.spend(steps):
                return

    def _recorded(self, work: Work) -> Work:
        try:
            yield from work
        except Exception as error:
            self._failure = error
            raise
