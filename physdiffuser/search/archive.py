"""The Pareto archive: the most accurate formula at each complexity and number of fitted constants."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from physdiffuser.core.analysis import TableAnalysis
from physdiffuser.core.archive import NOTHING_LEFT, Entry, same_loss
from physdiffuser.core.candidate import Candidate
from physdiffuser.core.formula_fits import loss_of, refitted
from physdiffuser.core.problem import Problem
from physdiffuser.expressions import Expression, complexity
from physdiffuser.expressions.tree import fitted_constants
from physdiffuser.reduction.analysis import SharedAnalysis
from physdiffuser.selection.cancellation import cancels
from physdiffuser.selection.description_length import DescriptionLength


@dataclass(frozen=True)
class ArchivePolicy:
    """Which formulas off the front are remembered, and when all rows of a table are asked.

    Set on development laws (docs/search.md).
    """

    near: float = 10.0
    max_near: int = 40
    """Formulas off the front whose description is nearly as short are remembered, since exact constants may
    yet make one of them the shortest: so many nats longer at most, and so many of them."""
    undecided: float = 12.0
    refitted: float = 100.0
    """Where the table has many more rows than the search uses, all of them decide what its own rows do not by
    so many nats; constants are fitted again to all where so many nats are lacking."""
    same_form: float = 0.5
    """A form that takes this much less to write down is worth showing beside a simpler formula that fits
    better."""
    few_constants: int = 6
    """With more constants, a formula may fit exactly because it follows any smooth law so closely."""


POLICY = ArchivePolicy()


class ParetoArchive:
    """The best entry for each complexity and number of fitted constants, kept for one problem.

    Constants count apart: `a**1.5` is as complex as `a**1.49985`, which always fits a little better, and
    must not be lost to it.

    Attributes
    ----------
    analysis
        What the table shows before any formula is tried; shared by all generators of a run.
    faults
        Messages about shared analyses that failed, one for each.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._best: dict[tuple[int, int], Entry] = {}
        self._near: dict[Expression, tuple[float, Entry]] = {}
        self._shortest = float("inf")
        self._competitors: tuple[Entry, ...] | None = None
        self.description_length = DescriptionLength(problem.all_rows.rows, problem.columns)
        self.faults: list[str] = []
        self.analysis: TableAnalysis = SharedAnalysis(problem, self.faults)
        self.offered = 0
        # Length of the candidate offered last, as far as it was worked out.
        self.latest = float("inf")
        # Whether the candidate offered last was refused because its terms cancel.
        self.cancelled = False
        # Formulas that violate a constraint have an archive of their own.
        self.violating: ParetoArchive | None = None

    def _violating(self) -> ParetoArchive:
        if self.violating is None:
            self.violating = ParetoArchive(replace(self.problem, rules=None))
        return self.violating

    def offer(self, candidate: Candidate) -> bool:
        """Score a candidate; True if it is now on the Pareto front."""
        self.offered += 1
        self.latest = float("inf")
        self.cancelled = False
        cost = complexity(candidate.expression)
        if cost > self.problem.max_complexity or not self.problem.admits(candidate.expression):
            return False
        loss = loss_of(candidate.expression, self.problem)
        if not np.isfinite(loss):
            return False
        constants = fitted_constants(candidate.expression)
        # What its form takes costs more to find out than the loss did, and would change nothing.
        hopeless = self.description_length.total(0.0, constants, loss) > self._shortest + POLICY.near
        simpler = [
            kept for kept in self._best.values() if kept.complexity <= cost and kept.constants <= constants
        ]
        if hopeless and self.problem.full_problem is None and any(kept.loss <= loss for kept in simpler):
            return False
        nats = self.description_length.formula_nats(candidate.expression)
        seen = loss
        if self.problem.full_problem is not None and loss > NOTHING_LEFT:
            clearly = loss * np.exp(-2 * POLICY.undecided / self.problem.rows)
            if any(kept.nats <= nats and kept.search_loss <= clearly for kept in simpler):
                return False
            candidate, loss = self._judged(candidate, self.problem.full_problem, nats)
            if not np.isfinite(loss):
                return False
        entry = Entry(candidate, cost, loss, nats, constants, seen)
        length = self.length(entry)
        remembered = constants and length < self._shortest + POLICY.near
        # Of two that differ in their exact numbers alone (`T**4`, `T**3.75`) the shorter description.
        known = self._best.get((cost, constants))
        stored = (known is None or self.length(known) > length) and not any(
            _beats(kept, entry) for kept in simpler
        )
        if constants and (remembered or stored):
            self.cancelled = cancels(candidate.expression, self.problem.inputs, loss)
            if self.cancelled:
                return False
        if (remembered or stored) and not self.problem.satisfies(candidate.expression):
            self._violating().offer(candidate)
            return False
        self.latest = length
        if remembered:
            self._remember(entry, length)
        if stored:
            self._best[cost, constants] = entry
            self._shortest = min(self._shortest, length)
        return stored

    def _judged(self, candidate: Candidate, whole: Problem, nats: float) -> tuple[Candidate, float]:
        """The loss on all rows, with the constants fitted to them where that may matter."""
        expression = candidate.expression
        loss = loss_of(expression, whole)
        constants = fitted_constants(expression)
        length = self.description_length.total(nats, constants, loss)
        if not constants or length > self._shortest + POLICY.refitted:
            return candidate, loss
        new = refitted(expression, whole)
        fitted = loss_of(new, whole)
        return (replace(candidate, expression=new), fitted) if fitted < loss else (candidate, loss)

    def _remember(self, entry: Entry, length: float) -> None:
        self._near[entry.candidate.expression] = (length, entry)
        if len(self._near) > 2 * POLICY.max_near:
            ranked = sorted(self._near.items(), key=lambda item: item[1][0])
            self._near = dict(ranked[: POLICY.max_near])

    def near(self) -> list[Entry]:
        """Formulas with fitted constants that describe the rows in nearly as few nats, best first."""
        ranked = sorted(self._near.values(), key=lambda item: item[0])
        return [entry for length, entry in ranked[: POLICY.max_near] if length < self._shortest + POLICY.near]

    def note_competitors(self) -> None:
        """Remember what is known now: formulas that are found later do not count as `competitors`."""
        self._competitors = self._known()

    @property
    def competitors(self) -> tuple[Entry, ...]:
        """Formulas of the front and near it, as `note_competitors` was last called; else all that are known.

        The longer a search, the more formulas it finds that describe the rows nearly as well. What they say
        against a law must not depend on how long the search went on after it had been found.
        """
        return self._known() if self._competitors is None else self._competitors

    def _known(self) -> tuple[Entry, ...]:
        entries = (*self.front(), *self.near())
        return tuple({entry.candidate.expression: entry for entry in entries}.values())

    @property
    def shortest(self) -> float:
        """Nats of the shortest description by a formula that satisfies the constraints; inf without any."""
        return self._shortest

    def length(self, entry: Entry) -> float:
        """Nats to describe the rows by an entry."""
        return self.description_length.total(entry.nats, entry.constants, entry.loss)

    def front(self) -> list[Entry]:
        """Entries that no other beats in all of complexity, form, constants and loss, simple ones first."""
        if not self._best and self.violating is not None:
            return self.violating.front()
        front: list[Entry] = []
        for _, entry in sorted(self._best.items(), key=lambda item: item[0]):
            if not any(_beats(other, entry) for other in front):
                front.append(entry)
        return front

    @property
    def is_solved(self) -> bool:
        """Whether a formula with few constants fits exactly."""
        return any(
            kept.loss < NOTHING_LEFT and kept.constants <= POLICY.few_constants
            for kept in self._best.values()
        )

    @property
    def best_loss(self) -> float:
        """The smallest loss so far; inf when empty."""
        return min((entry.loss for entry in self._best.values()), default=float("inf"))


def _beats(other: Entry, entry: Entry) -> bool:
    """Whether the other is as good in all that counts.

    Where both leave the same over they are the same function, and the simpler way to write it will do.
    """
    return (
        other.constants <= entry.constants
        and other.complexity <= entry.complexity
        and (
            (other.loss <= entry.loss and other.nats <= entry.nats + POLICY.same_form)
            or same_loss(other.loss, entry.loss)
        )
    )
