"""The clock of one run, and the reports of better formulas to its caller."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from physdiffuser.core.archive import Entry
from physdiffuser.core.progress import Progress
from physdiffuser.data.dataset import Dataset
from physdiffuser.expressions import Expression, to_text
from physdiffuser.expressions.printing.latex import to_latex
from physdiffuser.search.archive import ParetoArchive
from physdiffuser.search.parallel.ahead import Workers
from physdiffuser.search.timing import TimeLimit

PROGRESS_INTERVAL = 0.1


@dataclass(frozen=True)
class RunControl:
    """The clock of one run, and what its caller wants to know and decide meanwhile.

    Attributes
    ----------
    limit
        When the stages of the run have to end.
    started
        Clock reading from which the time counts.
    cancelled
        Asked often whether to stop.
    on_progress
        Called with each better formula.
    workers
        Processes that work for the run; None where it works alone.
    """

    limit: TimeLimit
    started: float
    cancelled: Callable[[], bool] = lambda: False
    on_progress: Callable[[Progress], None] | None = None
    workers: Workers | None = None
    clock: Callable[[], float] = time.monotonic

    def over(self) -> bool:
        """Whether the search has to end, because of the time or of the caller."""
        return self.cancelled() or self.clock() >= self.limit.search_until

    def within(self, share: float) -> Callable[[], bool]:
        """Tells whether a share of the time is spent that is left for the search now, or the caller stops."""
        now = self.clock()
        end = now + share * max(self.limit.search_until - now, 0.0)
        return lambda: self.cancelled() or self.clock() >= end

    def report(self, formula: Expression, names: Sequence[str], **about: Any) -> None:
        """Tell the caller, if it wants to know, of a better formula; `about` are fields of `Progress`."""
        if self.on_progress is not None:
            best, latex = to_text(formula, names, digits=6), to_latex(formula, names, digits=6)
            elapsed = self.clock() - self.started
            self.on_progress(Progress(elapsed, self.limit.seconds, best, latex=latex, **about))


class Reporter:
    """Reports better formulas to the caller, at most every `PROGRESS_INTERVAL` seconds."""

    def __init__(self, dataset: Dataset, control: RunControl) -> None:
        self._dataset, self._control = dataset, control
        self._last = float("-inf")

    def __call__(self, archive: ParetoArchive, best: Entry) -> None:
        control, names = self._control, self._dataset.names
        now = control.clock()
        if control.on_progress is None or now < self._last + PROGRESS_INTERVAL:
            return
        self._last = now
        control.report(
            best.candidate.expression,
            names,
            loss=best.loss,
            complexity=best.complexity,
            generator=best.candidate.generator,
            front=tuple(to_text(entry.candidate.expression, names) for entry in archive.front()),
        )
