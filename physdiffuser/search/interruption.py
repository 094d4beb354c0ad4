"""Stopping a search from Python: Ctrl-C, a callback, or another thread."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import FrameType

STOPPED = "stopped by Ctrl-C before the search was finished; this is the best so far"


@dataclass
class StopRequest:
    """Whether somebody wants the search to end.

    Attributes
    ----------
    cancelled
        Asked as well.
    requested
        Set by `request`.
    interrupted
        Whether it was Ctrl-C.
    """

    cancelled: Callable[[], bool] = lambda: False
    requested: threading.Event = field(default_factory=threading.Event)
    interrupted: bool = False

    def request(self) -> None:
        """End the search soon; may be called in any thread."""
        self.requested.set()

    def __call__(self) -> bool:
        return self.requested.is_set() or self.cancelled()


@contextlib.contextmanager
def interruptible(stop: StopRequest) -> Iterator[None]:
    """Let the first Ctrl-C end the search with what it has; the second one raises `KeyboardInterrupt`.

    Only in the main thread, and only where Ctrl-C would raise `KeyboardInterrupt` (in a script, at the
    prompt, in a notebook): a handler that somebody else has installed stays.
    """
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield
        return

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.interrupted:
            signal.default_int_handler(number, frame)
        stop.interrupted = True
        stop.request()

    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
