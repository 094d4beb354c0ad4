"""The command line: one command per file, heavy imports inside the commands."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from types import FrameType

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; see `physdiffuser.cli.entry.main`."""
    # Until a command takes over there is nothing to tidy up, and nothing to print.
    as_program = arguments is None and end_at_once_on_signals()
    try:
        from physdiffuser.cli.entry import main as run

        return run(arguments, _started() if as_program else None)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    finally:
        if as_program:
            # What remains is the end of the interpreter, which would print a traceback.
            end_at_once_on_signals()


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


def _started() -> float:
    from physdiffuser.search.timing import process_started

    return process_started()
