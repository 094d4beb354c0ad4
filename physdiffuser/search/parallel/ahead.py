"""Generators that may work ahead of the search.

Such a generator works in turns of its own. In each it sees the archive as it was when its turn before had
been used up, so the turn can be worked off elsewhere while other generators have theirs. Where that happens
changes nothing: what it proposes, and at which of its steps, depends on the problem and on those views alone.
With one process the turn is worked off when the search asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.archive import Archive
from physdiffuser.core.candidate import Candidate
from physdiffuser.core.generator import FormPrior, Generator
from physdiffuser.core.problem import Budget, Problem
from physdiffuser.expressions import Expression
from physdiffuser.search.parallel.turns import Event, LocalTurns, TurnEnd, Turns, View, ViewedArchive


class Source(Protocol):
    """Where the turns of one generator on one problem are worked off."""

    def grant(self, view: View) -> None:
        """Allow one more turn, with this view of the archive."""
        ...

    def next(self, budget: Budget) -> Event | None:
        """The next event; None if there is none before the time is over."""
        ...


class RemoteSource(Source, Protocol):
    """Turns that are worked off in another process.

    Attributes
    ----------
    warning
        What went wrong there, for the user.
    """

    warning: str | None

    def form_nats(self, formulas: Sequence[Expression]) -> FloatArray | None:
        """What the generator says of formulas (`FormPrior`); None if nobody can be asked any more."""
        ...


class Workers(Protocol):
    """Processes that work for a run."""

    def open(
        self,
        generator: Generator,
        problem: Problem,
        steps: int,
        cancelled: Callable[[], bool],
        *,
        apart: bool,
    ) -> RemoteSource | None:
        """Have turns of so many steps worked off by a worker.

        Parameters
        ----------
        generator, problem, steps
            See `Turns`.
        apart
            Whether the generator gets a worker of its own.

        Returns
        -------
        None if the generator cannot be given away.
        """
        ...


class AheadGenerator:
    """A generator that may work ahead of the search.

    Parameters
    ----------
    steps
        Of its turns: so far it may be ahead.
    workers
        Processes that may work for it; None to have everything done here.
    apart
        Whether it gets a process of its own.

    Attributes
    ----------
    warning
        What went wrong without costing the generator its place, for the user.
    """

    def __init__(
        self,
        inner: Generator,
        steps: int,
        cancelled: Callable[[], bool],
        workers: Workers | None = None,
        *,
        apart: bool = False,
    ) -> None:
        self.inner, self.name = inner, inner.name
        self._steps, self._cancelled, self._workers, self._apart = steps, cancelled, workers, apart
        self._source: Source | None = None
        self._remote: RemoteSource | None = None
        # Steps left of the turn in progress, and turns granted that have not ended.
        self._left, self._granted = steps, 0
        self._finished = False

    @property
    def waits(self) -> bool:
        """Whether its work is done elsewhere."""
        return self._remote is not None

    @property
    def warning(self) -> str | None:
        """See the class."""
        if self._remote is not None and self._remote.warning is not None:
            return self._remote.warning
        return getattr(self.inner, "warning", None)

    @property
    def package(self) -> str | None:
        """The plugin package that it is from."""
        return getattr(self.inner, "package", None)

    def begin(self, problem: Problem, archive: Archive) -> None:
        """Grant the first turn with the archive as it is now; later calls do nothing."""
        if self._source is not None:
            return
        if self._workers is not None:
            self._remote = self._workers.open(
                self.inner, problem, self._steps, self._cancelled, apart=self._apart
            )
        self._source = self._remote
        if self._source is None:
            seen = ViewedArchive(problem, archive.analysis, archive.faults)
            self._source = LocalTurns(Turns(self.inner, seen, self._steps), self._cancelled)
        self._grant(archive)

    def propose(self, problem: Problem, archive: Archive, budget: Budget) -> Iterator[Candidate]:
        """What the generator proposes in its turns; see `Generator.propose`."""
        self.begin(problem, archive)
        source = self._source
        assert source is not None
        while not self._finished:
            event = source.next(budget)
            if event is None:
                return
            if isinstance(event, Candidate):
                yield event
            elif isinstance(event, TurnEnd):
                self._end(event, archive)
            else:
                self._left -= event
                if self._left <= 0:
                    # The next turn is worked off while others have theirs.
                    self._grant(archive)
                if not budget.spend(event):
                    return

    def _grant(self, archive: Archive) -> None:
        assert self._source is not None
        self._left = self._steps
        self._granted += 1
        self._source.grant(View.of(archive))

    def _end(self, end: TurnEnd, archive: Archive) -> None:
        if self.waits:
            archive.faults.extend(fault for fault in end.faults if fault not in archive.faults)
        self._finished = end.finished
        if end.error is not None:
            raise end.error
        self._granted -= 1
        if not (end.finished or self._granted):
            self._grant(archive)  # the turn was ended early, by the clock


class AheadFormPrior(AheadGenerator):
    """The same for a generator that also knows how usual a form is (`FormPrior`)."""

    inner: Any

    def form_nats(self, problem: Problem, formulas: Sequence[Expression]) -> FloatArray:
        """See `FormPrior`."""
        said = None if self._remote is None else self._remote.form_nats(formulas)
        if said is not None:
            return said
        return np.asarray(self.inner.form_nats(problem, formulas), np.float64)


def ahead(
    generator: Generator,
    steps: int,
    cancelled: Callable[[], bool],
    workers: Workers | None = None,
    *,
    apart: bool = False,
) -> Generator:
    """The generator, working ahead of the search by up to so many steps; itself where these are 0."""
    if not steps:
        return generator
    kind = AheadFormPrior if isinstance(generator, FormPrior) else AheadGenerator
    return kind(generator, steps, cancelled, workers, apart=apart)
