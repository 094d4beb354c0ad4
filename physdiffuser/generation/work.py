"""Accounting of work: pieces of known nominal length, paid for in steps."""

from __future__ import annotations

from collections.abc import Iterator

from physdiffuser.search.candidate import Candidate
from physdiffuser.search.problem import Budget

# What a step stands for on the machine where the pieces were timed: seconds of one core.
STEP_SECONDS = 0.1

# A candidate, or the nominal seconds of a piece of work just done.
Work = Iterator[Candidate | float]


class Meter:
    """Passes candidates on, and pays for the pieces of work between them.

    Nominal lengths, not measured ones, so that equal step budgets do equal work.

    Parameters
    ----------
    work
        Candidates, and after each piece of work its nominal seconds.
    """

    def __init__(self, work: Work) -> None:
        self._work = work
        self._debt = 0.0

    def until(self, budget: Budget) -> Iterator[Candidate]:
        """Go on until the budget is spent; returns with budget left only when the work is done."""
        for item in self._work:
            if isinstance(item, Candidate):
                yield item
                continue
            self._debt += item
            steps = int(self._debt / STEP_SECONDS)
            self._debt -= steps * STEP_SECONDS
            if not budget.spend(steps):
                return
