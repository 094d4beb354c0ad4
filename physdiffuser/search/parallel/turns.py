"""One turn of a generator as a list of events, with the archive as it was when the turn was granted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from physdiffuser.core.analysis import TableAnalysis
from physdiffuser.core.archive import Archive, Entry
from physdiffuser.core.candidate import Candidate
from physdiffuser.core.generator import Generator
from physdiffuser.core.problem import Budget, Problem
from physdiffuser.selection.description_length import DescriptionLength


@dataclass(frozen=True)
class View:
    """What a generator reads of an archive, as it was at one moment; see `Archive`."""

    front: tuple[Entry, ...]
    near: tuple[Entry, ...]
    is_solved: bool
    best_loss: float

    @classmethod
    def of(cls, archive: Archive) -> View:
        """The archive as it is now."""
        return cls(tuple(archive.front()), tuple(archive.near()), archive.is_solved, archive.best_loss)


@dataclass(frozen=True)
class TurnEnd:
    """The last event of a turn.

    Attributes
    ----------
    finished
        Whether the generator has nothing more to propose.
    error
        What it raised.
    faults
        Of the analyses that it asked for.
    """

    finished: bool
    error: Exception | None = None
    faults: tuple[str, ...] = ()


# A candidate, steps that were spent, or the end of the turn.
Event = Candidate | int | TurnEnd


class ViewedArchive:
    """An archive (`physdiffuser.core.archive.Archive`) that shows a view.

    Parameters
    ----------
    problem
        Of the search.
    analysis, faults
        Of the archive that is viewed, or others of the same problem.
    """

    def __init__(self, problem: Problem, analysis: TableAnalysis, faults: list[str]) -> None:
        self.problem, self.analysis, self.faults = problem, analysis, faults
        self._description_length = DescriptionLength(problem.all_rows.rows, problem.columns)
        self._view = View((), (), False, float("inf"))

    def show(self, view: View) -> None:
        """Show another view."""
        self._view = view

    def front(self) -> list[Entry]:
        """See `Archive`."""
        return list(self._view.front)

    def near(self) -> list[Entry]:
        """See `Archive`."""
        return list(self._view.near)

    def length(self, entry: Entry) -> float:
        """See `Archive`."""
        return self._description_length.total(entry.nats, entry.constants, entry.loss)

    @property
    def is_solved(self) -> bool:
        """See `Archive`."""
        return self._view.is_solved

    @property
    def best_loss(self) -> float:
        """See `Archive`."""
        return self._view.best_loss


class _NotedBudget(Budget):
    """A budget that notes what is spent."""

    note: Callable[[int], None]

    def spend(self, steps: int = 1) -> bool:
        self.note(steps)
        return super().spend(steps)


class Turns:
    """A generator's work on one problem, in turns of a fixed number of steps.

    Parameters
    ----------
    generator
        Not used before, and by nobody else.
    """

    def __init__(self, generator: Generator, archive: ViewedArchive, steps: int) -> None:
        self._generator, self._archive, self._steps = generator, archive, steps

    def run(
        self, view: View, note: Callable[[int], None], over: Callable[[], bool] = lambda: False
    ) -> Iterator[Candidate | TurnEnd]:
        """Candidates of the next turn and its end; `note` is called with steps when they are spent."""
        archive = self._archive
        archive.show(view)
        known = len(archive.faults)
        budget = _NotedBudget(self._steps, cancelled=over)
        budget.note = note
        error = None
        try:
            yield from self._generator.propose(archive.problem, archive, budget)
        except Exception as raised:
            error = raised
        finished = error is not None or not budget.exhausted
        yield TurnEnd(finished, error, tuple(archive.faults[known:]))


class LocalTurns:
    """Turns that are worked off in this process, each event when it is asked for."""

    def __init__(self, turns: Turns, cancelled: Callable[[], bool]) -> None:
        self._turns, self._cancelled = turns, cancelled
        self._views: list[View] = []
        self._noted: list[int] = []
        self._running: Iterator[Candidate | TurnEnd] | None = None
        self._next: Candidate | TurnEnd | None = None

    def grant(self, view: View) -> None:
        """Allow one more turn, with this view of the archive."""
        self._views.append(view)

    def next(self, budget: Budget) -> Event | None:
        """The next event; None if there is none before the time is over."""
        if self._next is None:
            if self._running is None:
                if not self._views:
                    return None
                self._running = self._turns.run(
                    self._views.pop(0),
                    self._noted.append,
                    lambda: budget.clock() >= budget.deadline or self._cancelled(),
                )
            self._next = next(self._running)
        if self._noted:
            return self._noted.pop(0)
        event, self._next = self._next, None
        if isinstance(event, TurnEnd):
            self._running = None
        return event
