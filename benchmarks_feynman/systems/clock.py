"""The clock by which a peer's time is counted."""

from __future__ import annotations

import time


class Clock:
    """Seconds since it was made: of the processor where one core is given, of the wall where there are more.

    On an idle machine they are the same for one core. On a busy one, processor time gives a peer what the
    idle machine would have given it.

    Parameters
    ----------
    cores
        Cores that the peer may use.
    """

    def __init__(self, cores: int) -> None:
        self._now = time.process_time if cores == 1 else time.perf_counter
        self._started = self._now()
        self._wall = time.perf_counter()

    def seconds(self) -> float:
        """What the time limit is compared with."""
        return self._now() - self._started

    def wall_seconds(self) -> float:
        """Wall time."""
        return time.perf_counter() - self._wall
