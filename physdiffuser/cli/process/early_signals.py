"""Signals before a command takes over, and after it: the process ends at once, without a traceback."""

from __future__ import annotations

import os
import signal
from types import FrameType


def end_at_once_on_signals() -> bool:
    """Have Ctrl-C and SIGTERM end the process with 128 + signal, without a traceback.

    Returns False outside of the main thread, where Python does not allow it.
    """
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            # A signal that the caller ignores (a background job of a shell) stays ignored.
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, _leave)
    except ValueError:
        return False
    return True


def interrupt_on_signals() -> None:
    """Restore what `end_at_once_on_signals` replaced: Ctrl-C raises KeyboardInterrupt."""
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL)):
        if signal.getsignal(number) is _leave:
            signal.signal(number, handler)


def _leave(number: int, frame: FrameType | None) -> None:
    os._exit(128 + number)
