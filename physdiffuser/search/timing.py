"""The time limit of a run: how long the search may take so that everything after it still fits.

After the search the chosen formula gets its exact constants, is verified, and the report is written. On a
machine with other work all of this takes several times as long. `Pace` measures how many times, `TimeLimit`
reserves time for the later stages accordingly.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Share of the time limit, and at most so many seconds, reserved for the conclusion on any machine.
CONCLUSION_SHARE = 0.15
CONCLUSION_SECONDS = 4.0
# Seconds on an idle machine for the piece of work that the search ends with, and for the conclusion without
# the constants of the chosen formula: these are measured during the search, and other formulas get as much
# time again. The second figure is added if a network is asked to compare the formulas.
CONCLUDING = 0.5
COMPARING = 0.5
FOR_CONSTANTS = 2.0
# The report may end so many seconds after the time limit, or this share of a short one.
REPORT_OVERRUN = 0.25
REPORT_OVERRUN_SHARE = 0.1
# At most this share of the time limit is reserved.
MOST_RESERVED = 0.5
# The search gets so many seconds, or this share of a short time limit, however long reading has taken.
LEAST_SEARCH = 2.0
LEAST_SEARCH_SHARE = 0.2
# Shares of the time limit after which the constants of the best formula are determined on trial, and the
# share that one trial may take.
TRIALS = (0.3, 0.65)
TRIAL_SHARE = 0.05
# Processor seconds after which a measurement of the pace counts for half, and fewest that say anything.
MEMORY = 1.0
FEWEST = 0.02
MOST_SLOWDOWN = 30.0
# No program takes longer than this many seconds before its first statement.
LONGEST_START = 120.0

Clock = Callable[[], float]


class Pace:
    """How much longer computations take than on an idle machine.

    Parameters
    ----------
    clock
        Seconds of wall time.
    processor
        Seconds of processor time of the calling thread.
    """

    def __init__(self, clock: Clock = time.monotonic, processor: Clock = time.thread_time) -> None:
        self._clock, self._processor = clock, processor
        self._elapsed = self._used = 0.0

    def mark(self) -> tuple[float, float]:
        """Readings of both clocks, for `record`."""
        return self._clock(), self._processor()

    def record(self, mark: tuple[float, float]) -> float:
        """Measure the work since `mark`, in which this thread waited for nothing but a processor.

        Returns the processor seconds that it took.
        """
        elapsed, used = self._clock() - mark[0], self._processor() - mark[1]
        # Recent work counts for more: other programs come and go.
        kept = 1.0 / (1.0 + max(used, 0.0) / MEMORY)
        self._elapsed = kept * self._elapsed + max(elapsed, used)
        self._used = kept * self._used + used
        return used

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Measure the work inside the context; see `record`."""
        mark = self.mark()
        try:
            yield
        finally:
            self.record(mark)

    @property
    def slowdown(self) -> float:
        """Wall time over processor time of the work measured so far; 1 on an idle machine."""
        if self._used < FEWEST:
            return 1.0
        return min(max(self._elapsed / self._used, 1.0), MOST_SLOWDOWN)


class TimeLimit:
    """When a run has to end, and when its stages have to.

    Parameters
    ----------
    seconds
        The time limit; None for none.
    started
        Reading of the clock from which the limit counts.
    report
        Seconds that the caller needs after the conclusion on an idle machine, to write the report.
    clock, processor
        As for `Pace`.

    Attributes
    ----------
    pace
        Measured by the stages of the run.
    comparing
        Whether a network will be asked to compare the formulas at the end.
    """

    def __init__(
        self,
        seconds: float | None,
        started: float,
        report: float = 0.0,
        clock: Clock = time.monotonic,
        processor: Clock = time.thread_time,
    ) -> None:
        self.seconds = seconds
        self.pace = Pace(clock, processor)
        self.comparing = False
        self._clock = clock
        self._started, self._report = started, report
        self._end = float("inf") if seconds is None else started + seconds
        self._least_end = float("-inf")
        self._stop_by: float | None = None
        # Processor seconds of the last trial, and the trials to come.
        self._trial = 0.0
        self._trials = list(TRIALS) if seconds is not None else []
        self._tried: object = None

    @property
    def search_until(self) -> float:
        """Reading of the clock at which the search has to end."""
        if self.seconds is None:
            return self._end
        after = min(self._for_conclusion() + self._for_report(), MOST_RESERVED * self.seconds)
        return max(self._end - after, self._least_end)

    @property
    def slowdown(self) -> float:
        """See `Pace.slowdown`; 1 after `end_within`, when there is no time for anything more."""
        return self.pace.slowdown if self._stop_by is None else 1.0

    def end_within(self, seconds: float) -> None:
        """The user wants to stop: the solution has to be there this soon."""
        self._stop_by = self._clock() + seconds

    @property
    def conclude_by(self) -> float:
        """Reading of the clock at which the solution has to be there; called when the search has ended."""
        if self._stop_by is not None:
            return self._stop_by
        if self.seconds is None:
            return self._end
        return self._end - min(self._for_report(), MOST_RESERVED * self.seconds)

    def _for_conclusion(self) -> float:
        assert self.seconds is not None
        needed = CONCLUDING + FOR_CONSTANTS * self._trial + (COMPARING if self.comparing else 0.0)
        return max(min(CONCLUSION_SECONDS, CONCLUSION_SHARE * self.seconds), self.pace.slowdown * needed)

    def _for_report(self) -> float:
        assert self.seconds is not None
        allowed = min(REPORT_OVERRUN, REPORT_OVERRUN_SHARE * self.seconds)
        return max(0.0, self.pace.slowdown * self._report - allowed)

    def begin_search(self) -> float | None:
        """Ensure a short search; seconds used so far if these leave no time for a longer one, else None."""
        if self.seconds is None:
            return None
        now = self._clock()
        least = min(LEAST_SEARCH, LEAST_SEARCH_SHARE * self.seconds)
        short = self.search_until < now + least
        self._least_end = now + least
        return now - self._started if short and now - self._started > self.seconds / 2 else None

    def trial(self, subject: object, work: Callable[[Callable[[], bool]], object]) -> None:
        """At certain times measure work of the conclusion on trial; its result is not used.

        Parameters
        ----------
        subject
            What is worked on: the same is not tried twice.
        work
            Takes a function that says when to stop.
        """
        if not self._trials or self.seconds is None or subject is self._tried:
            return
        now = self._clock()
        if now < self._started + self._trials[0] * self.seconds:
            return
        while self._trials and now >= self._started + self._trials[0] * self.seconds:
            self._trials.pop(0)
        self._tried = subject
        stop = now + TRIAL_SHARE * self.seconds
        mark = self.pace.mark()
        work(lambda: self._clock() >= stop)
        self._trial = self.pace.record(mark)


def process_started() -> float:
    """Reading of `time.monotonic` at which this process was started.

    Where the system does not tell, the processor time used so far stands for the time since then.
    """
    now, used = time.monotonic(), time.process_time()
    try:
        with open("/proc/self/stat", "rb") as stream:
            ticks = float(stream.read().rpartition(b")")[2].split()[19])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        age = used
    # Some containers count from another moment.
    return now - (age if 0.0 <= age <= LONGEST_START else used)
