"""What generators and the later stages read of the archive."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Protocol

from physdiffuser.arrays import FloatArray
from physdiffuser.core.analysis import TableAnalysis
from physdiffuser.core.candidate import Candidate
from physdiffuser.core.problem import Problem
from physdiffuser.expressions import Expression
from physdiffuser.fitting import losses

SAME_LOSS = 1e-6
# Losses that are zero up to rounding.
NOTHING_LEFT = 1e-18


@dataclass(frozen=True)
class Entry:
    """A candidate with its score on the problem's rows.

    Attributes
    ----------
    loss
        Weighted mean squared residual (or robust loss) divided by that of the constant model:
        0 is perfect, 1 is as good as a constant.
    nats
        What the formula takes to write down, its fitted constants left out.
    constants
        How many of them there are.
    search_loss
        The loss on the search's own rows, where `loss` is that on all.
    """

    candidate: Candidate
    complexity: int
    loss: float
    nats: float = 0.0
    constants: int = 0
    search_loss: float = 0.0


def relative_loss(problem: Problem, prediction: FloatArray) -> float:
    """Loss of a prediction relative to the best constant's; inf where it is not finite."""
    return losses.relative_loss(prediction, problem.target, problem.weights, problem.loss)


class Archive(Protocol):
    """The formulas found so far for one problem.

    Attributes
    ----------
    problem
        The problem that entries are scored on.
    analysis
        What the table shows before any formula is tried; shared by all generators of a run.
    faults
        Messages about shared analyses that failed, one for each.
    """

    problem: Problem
    analysis: TableAnalysis
    faults: list[str]

    def front(self) -> list[Entry]:
        """Entries that no other beats in all of complexity, form, constants and loss, simple ones first."""
        ...

    def near(self) -> list[Entry]:
        """Formulas with fitted constants whose description length is nearly minimal, best first."""
        ...

    def length(self, entry: Entry) -> float:
        """Description length of an entry in nats."""
        ...

    @property
    def is_solved(self) -> bool:
        """Whether a formula with few constants has no residuals beyond rounding."""
        ...

    @property
    def best_loss(self) -> float:
        """The smallest loss so far; inf when empty."""
        ...


def entries_to_vary(archive: Archive, seen: Container[Expression], within: float, most: int) -> list[Entry]:
    """Entries that a refiner has not seen, the shortest description first.

    Parameters
    ----------
    archive
        The formulas found so far.
    seen
        Formulas that are left out.
    within
        By how many nats more than the shortest their description may be longer.
    most
        How many there are at most.
    """
    entries = sorted(archive.front(), key=archive.length)
    if not entries:
        return []
    limit = archive.length(entries[0]) + within
    fresh = [entry for entry in entries if entry.candidate.expression not in seen]
    return [entry for entry in fresh if archive.length(entry) <= limit][:most]


def same_loss(one: float, other: float) -> bool:
    """Whether what is left over is as much; then two formulas are most likely one function."""
    return abs(one - other) <= SAME_LOSS * other
