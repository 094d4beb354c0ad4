"""How the time limit is shared: each stage ends early enough for those that follow it."""

from __future__ import annotations

import math
import time as clock
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class SchedulePolicy:
    """Shares of the time by which parts of a run end.

    Set by hand on the development systems.
    """

    attempts: float = 0.75
    reconsidered: float = 0.85
    final_fit: float = 0.9
    """By which the best system is found and checked, by which all rows have chosen between it and those
    nearly as good, and by which its constants are fitted to all rows; the rest is for the report."""
    searched: float = 0.75
    exact: float = 0.9
    """Of an attempt: by which the search ends, and by which constants are set to special values."""
    candidates: float = 0.75
    """Of the search: in which candidates are chosen; in the rest systems of these are compared."""
    found: float = 0.8
    """Of the time of one state: in which candidates are found; then its trajectory chooses from them."""


POLICY = SchedulePolicy()


@dataclass(frozen=True)
class Period:
    """A part of the run.

    Attributes
    ----------
    begin, end
        Of the clock `time.monotonic`; the end is infinite without a time limit.
    """

    begin: float
    end: float = math.inf

    def part(self, share: float) -> Period:
        """From now until a share of the period is over."""
        if not math.isfinite(self.end):
            return self
        now = clock.monotonic()
        return Period(now, max(self.begin + share * (self.end - self.begin), now))

    def of_rest(self, share: float) -> Period:
        """From now, a share of what is left of the period."""
        now = clock.monotonic()
        return Period(now, now + share * max(self.end - now, 0.0))

    def share(self, number: int, count: int) -> Period:
        """One of several equal parts; it ends when it should, however early the ones before it were done."""
        if not math.isfinite(self.end):
            return self
        length = (self.end - self.begin) / count
        return Period(self.begin + number * length, self.begin + (number + 1) * length)

    @property
    def left(self) -> float | None:
        """Seconds; None without a limit."""
        return max(self.end - clock.monotonic(), 0.0) if math.isfinite(self.end) else None

    def is_over(self) -> bool:
        """Whether the end has passed."""
        return clock.monotonic() > self.end


Stop = Callable[[], bool]
"""Asked now and then whether to end with what there is."""


def never() -> bool:
    """Whether to end: no."""
    return False
