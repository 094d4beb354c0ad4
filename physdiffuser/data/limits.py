"""Limits on reading a table: seconds, bytes and cells.

A reader without them never ends on a pipe that never ends, and a small file may claim a table that no
memory holds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from physdiffuser.errors import DataError, FileError

MAX_CELLS = 1 << 30
"""Most numbers in a table, whatever the memory of the machine."""

MAX_BYTES = 1 << 36
"""Most bytes of text (decompressed) that are read: cells of ordinary length fill the memory before."""

MAX_PIPED = 1 << 32
"""Most bytes of a workbook or a Parquet file that comes through a pipe, which has to be kept in memory."""

MAX_RATIO = 200
"""Most bytes from one compressed byte. Tables of measurements reach 3 to 20; a constant reaches 1,000."""

MIN_SECONDS = 10.0
"""Reading may always take this long: a short time limit is meant for the search, and machines may be busy."""

_LONGEST_WAIT = 1e6  # seconds; operating systems take no larger number
_BYTES_PER_CELL = 16  # in the reader and, for a moment, in the dataset that is made of it


@dataclass
class ReadLimits:
    """How long reading may take; asked between blocks, rows or batches.

    Attributes
    ----------
    seconds
        Most seconds, from the time the object is made; None for no limit.
    clock
        A monotonic clock.
    """

    seconds: float | None = None
    clock: Callable[[], float] = time.monotonic
    started: float = field(init=False)

    def __post_init__(self) -> None:
        self.started = self.clock()

    def remaining(self) -> float | None:
        """Seconds that are left, not negative; None without a limit."""
        if self.seconds is None:
            return None
        return min(_LONGEST_WAIT, max(0.0, self.started + self.seconds - self.clock()))

    def check(self, source: str) -> None:
        """Raise when the time is used up.

        Raises
        ------
        DataError
            Says how to go on.
        """
        if self.remaining() == 0.0:
            raise DataError(
                f"{source}: reading the table was stopped after {self.seconds:g} s, the time limit. "
                "Give more time with --time, or fewer rows; a Parquet file is read faster than text."
            )

    def no_data(self, source: str) -> FileError:
        """The error for a pipe from which nothing comes."""
        return FileError(
            f"{source}: the end of the table did not arrive within {self.seconds:g} s, the time limit. "
            "Check the program that writes to the pipe, or give more time with --time."
        )


def reading_seconds(time: float | None) -> float | None:
    """How long reading may take in a run of `time` seconds: all of it, but at least `MIN_SECONDS`."""
    return None if time is None else max(MIN_SECONDS, time)


def check_cells(rows: int, columns: int, source: str) -> None:
    """Refuse a table with more cells than can be kept in memory.

    Raises
    ------
    DataError
        When there are too many.
    """
    most = most_cells()
    if rows * columns > most:
        raise DataError(
            f"{source}: more than {most:,} numbers do not fit into the memory of this machine. "
            "Choose columns with --inputs, or give fewer rows."
        )


def most_cells() -> int:
    """How many numbers a table may have on this machine."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not POSIX
        return MAX_CELLS
    return min(MAX_CELLS, memory // _BYTES_PER_CELL) if memory > 0 else MAX_CELLS
