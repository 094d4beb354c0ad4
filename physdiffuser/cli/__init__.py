"""The command line: one command per file, heavy imports inside the commands."""

from __future__ import annotations

import signal
from collections.abc import Sequence

from physdiffuser.cli.process.early_signals import end_at_once_on_signals

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


def _started() -> float:
    from physdiffuser.search.timing import process_started

    return process_started()
