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
from dataclasses import dataclass


@dataclass(frozen=True)
class TimePolicy:
    """How the time limit is divided.

    Seconds are those of an idle machine (measured on the development laws).
    """

    finalize_share: float = 0.15
    finalize_seconds: float = 4.0
    """Share of the time limit, and at most so many seconds, reserved for finalizing on any machine."""
    last_step: float = 0.5
    comparing: float = 0.5
    """For the piece of work that the search ends with and for finalizing without the constants of the chosen
    formula; and what is added if a network is asked to compare the formulas."""
    constants_factor: float = 2.0
    """The constants of the best formula take as long as was measured during the search, times this: other
    formulas get as much time again."""
    report_overrun: float = 0.25
    report_overrun_share: float = 0.1
    """The report may end so many seconds after the time limit, or this share of a short one."""
    max_reserved: float = 0.5
    """At most this share of the time limit is reserved."""
    min_search: float = 2.0
    min_search_share: float = 0.2
    """The search gets so many seconds, or this share of a short time limit, however long reading has
    taken."""
    trials: tuple[float, ...] = (0.3, 0.65)
    trial_share: float = 0.05
    """Shares of the time limit after which the constants of the best formula are determined on trial, and the
    share that one trial may take."""
    memory: float = 1.0
    min_measured: float = 0.02
    max_slowdown: float = 30.0
    """Processor seconds after which a measurement of the pace counts for half, fewest that are used, and the
    largest slowdown that is assumed."""
    max_start: float = 120.0
    """No program takes longer than this many seconds before its first statement."""


POLICY = TimePolicy()


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
        kept = 1.0 / (1.0 + max(used, 0.0) / POLICY.memory)
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
        if self._used < POLICY.min_measured:
            return 1.0
        return min(max(self._elapsed / self._used, 1.0), POLICY.max_slowdown)


class TimeLimit:
    """When a run has to end, and when its stages have to.

    Parameters
    ----------
    seconds
        The time limit; None for none.
    started
        Reading of the clock from which the limit counts.
    report
        Seconds that the caller needs after finalization on an idle machine, to write the report.
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
        self._trials = list(POLICY.trials) if seconds is not None else []
        self._tried: object = None

    @property
    def search_until(self) -> float:
        """Reading of the clock at which the search has to end."""
        if self.seconds is None:
            return self._end
        after = min(self._for_finalizing() + self._for_report(), POLICY.max_reserved * self.seconds)
        return max(self._end - after, self._least_end)

    @property
    def slowdown(self) -> float:
        """See `Pace.slowdown`; 1 after `end_within`, when there is no time for anything more."""
        return self.pace.slowdown if self._stop_by is None else 1.0

    def end_within(self, seconds: float) -> None:
        """The user wants to stop: the solution has to be there this soon."""
        self._stop_by = self._clock() + seconds

    @property
    def finalize_by(self) -> float:
        """Reading of the clock at which the solution has to be there; called when the search has ended."""
        if self._stop_by is not None:
            return self._stop_by
        if self.seconds is None:
            return self._end
        return self._end - min(self._for_report(), POLICY.max_reserved * self.seconds)

    def _for_finalizing(self) -> float:
        assert self.seconds is not None
        comparing = POLICY.comparing if self.comparing else 0.0
        needed = POLICY.last_step + POLICY.constants_factor * self._trial + comparing
        usual = min(POLICY.finalize_seconds, POLICY.finalize_share * self.seconds)
        return max(usual, self.pace.slowdown * needed)

    def _for_report(self) -> float:
        assert self.seconds is not None
        allowed = min(POLICY.report_overrun, POLICY.report_overrun_share * self.seconds)
        return max(0.0, self.pace.slowdown * self._report - allowed)

    def begin_search(self) -> float | None:
        """Ensure a short search; seconds used so far if these leave no time for a longer one, else None."""
        if self.seconds is None:
            return None
        now = self._clock()
        least = min(POLICY.min_search, POLICY.min_search_share * self.seconds)
        short = self.search_until < now + least
        self._least_end = now + least
        return now - self._started if short and now - self._started > self.seconds / 2 else None

    def trial(self, subject: object, work: Callable[[Callable[[], bool]], object]) -> None:
        """At certain times measure work of finalization on trial; its result is not used.

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
        stop = now + POLICY.trial_share * self.seconds
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
    return now - (age if 0.0 <= age <= POLICY.max_start else used)
