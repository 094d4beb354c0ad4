"""Ctrl-C and SIGTERM: the first asks for the best so far, the second ends the process.

Signals arrive at a small thread of their own, which works while the main thread is inside a long call
of a library. If the main thread does not come back in time, the thread prints what is known and ends
the process, so that the promise of one second holds whatever the main thread is doing.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType

GRACE = 0.75
"""Seconds the search gets to come back with its result."""

GRACE_VARIABLE = "PHYSDIFFUSER_STOP_SECONDS"
"""Sets another number of seconds: a program that stops a search may want its checks more than its haste."""

MIN_GRACE = 0.25
"""The same at least, on a machine where this thread itself has to wait for a processor."""

_TURNS = 4.0
"""Turns at a processor, and at the interpreter's lock, that printing and ending may take."""

_PROBE = 0.02
_REPEAT = 0.05
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopping:
    """Watches for signals while the `with` block runs.

    Parameters
    ----------
    emergency
        Prints the best so far; called in the watching thread with the signal's number, once, when the
        main thread has not come back within `grace` seconds. The process ends after it.
    grace
        Seconds; by default those of the environment variable, or `GRACE`.
    """

    def __init__(self, emergency: Callable[[int], None], grace: float | None = None) -> None:
        self.signal_number: int | None = None
        self._emergency = emergency
        self._grace = _default_grace() if grace is None else grace
        self._claim = threading.Lock()
        self._reported = False
        self._last = float("-inf")
        self._too_late_at: float | None = None
        self._previous: dict[int, object] = {}

    def cancelled(self) -> bool:
        """Whether the user asked to stop."""
        return self.signal_number is not None

    @property
    def exit_code(self) -> int:
        """128 + signal; 0 when none came."""
        return 0 if self.signal_number is None else 128 + self.signal_number

    def begin_report(self) -> None:
        """The main thread prints the result now; nobody else does. Blocks for ever if it is too late."""
        self._claim.acquire()

    def end_report(self) -> None:
        """Everything is printed and saved; from now on the first signal ends the process."""
        self._reported = True

    def leave_if_stopped(self) -> None:
        """End the process if a signal came: the end of the interpreter would add to the response time."""
        if self.signal_number is not None:
            self._leave()

    def __enter__(self) -> Stopping:
        global _active
        self._reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)
        self._previous = {number: signal.signal(number, _do_nothing) for number in _SIGNALS}
        self._previous_fd = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        _active = True
        threading.Thread(target=self._watch, name="physdiffuser-signals", daemon=True).start()
        return self

    def __exit__(self, *exception: object) -> None:
        global _active
        if self.signal_number is not None:
            return  # the process is ending; a further signal still ends it at once, without a traceback
        _active = False
        signal.set_wakeup_fd(self._previous_fd)
        for number, handler in self._previous.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        self._writer.close()  # ends the thread

    def _watch(self) -> None:
        with self._reader:
            while True:
                # One thread does it all: each change of threads costs time on a busy machine.
                at = self._too_late_at
                self._reader.settimeout(None if at is None else max(at - time.monotonic(), 1e-3))
                try:
                    data = self._reader.recv(64)
                except TimeoutError:
                    self._too_late_at = None
                    self._too_late()
                    continue
                if not data:
                    return
                for number in data:
                    if number in _SIGNALS:
                        self._arrived(number)

    def _arrived(self, number: int) -> None:
        now = time.monotonic()
        # Some launchers pass on the signal that the terminal has sent already: one press is one.
        repeat = now - self._last < _REPEAT
        self._last = now
        if self.signal_number is None:
            self.signal_number = number
            if self._reported:
                self._leave()
            self._too_late_at = now + shortened(self._grace, _lag())
        elif not repeat:
            self._leave()

    def _too_late(self) -> None:
        if not self._claim.acquire(blocking=False):
            return  # the main thread has come back and is printing
        try:
            self._emergency(int(self.signal_number or 0))
        finally:
            self._leave()

    def _leave(self) -> None:
        """End at once. Files are written in one step, so there is nothing to tidy but children."""
        multiprocessing = sys.modules.get("multiprocessing")
        if multiprocessing is not None:
            for child in multiprocessing.active_children():
                child.kill()
        os._exit(self.exit_code)


def _default_grace() -> float:
    try:
        return max(GRACE, float(os.environ.get(GRACE_VARIABLE, GRACE)))
    except ValueError:
        return GRACE


def shortened(grace: float, lag: float) -> float:
    """Seconds the search gets, if the thread that prints afterwards waits `lag` seconds for each turn."""
    return max(min(MIN_GRACE, grace), grace - _TURNS * lag)


def _lag() -> float:
    """Seconds that this thread waits for its turn after a sleep."""
    begun = time.monotonic()
    time.sleep(_PROBE)
    return time.monotonic() - begun - _PROBE


_active = False


def _do_nothing(number: int, frame: FrameType | None) -> None:
    """A handler must exist for the number to reach the watching thread."""


def _in_child() -> None:
    """A forked worker shares the socket: its signals would count as the user's."""
    if _active:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
