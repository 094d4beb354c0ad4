"""How the time limit is shared: each stage ends early enough for those that follow it."""

from __future__ import annotations

import math
import time as clock
from collections.abc import Callable
from dataclasses import dataclass

ATTEMPTS = 0.8
"""Share of the time by which the best system is found and checked; the rest is for the report."""
FINAL_FIT = 0.9
"""... and by which its constants are fitted to all rows."""
SEARCHED, EXACT = 0.75, 0.9
"""Shares of an attempt by which the search ends, and by which constants are set to special values."""
CANDIDATES = 0.75
"""Share of the search in which candidates are chosen; in the rest systems of these are compared."""
FOUND = 0.8
"""Share of the time of one state in which candidates are found; then its trajectory chooses from them."""


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
