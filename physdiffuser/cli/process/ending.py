"""The end of the program's process, with the right exit code whatever plugins have left running."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time

from physdiffuser.cli.process import stdout

JOINING = 1.0
"""Seconds for threads that are no daemons to finish: Python itself would wait for them without a limit."""


def end_process(code: int) -> int:
    """The exit code, for `sys.exit`; ends the process at once where foreign threads still run.

    An interpreter that shuts down can crash in them (an import of torch) or wait for them for ever. Files are
    written in one step, and worker processes end with this one, so nothing else is left to clean up.
    """
    until = time.monotonic() + JOINING
    for thread in _foreign_threads():
        if not thread.daemon:
            thread.join(max(0.0, until - time.monotonic()))
    if not _foreign_threads():
        return code
    for file in (stdout.stream(), sys.stderr):
        # Output that could not be written has been an error before.
        with contextlib.suppress(Exception):
            file.flush()
    multiprocessing = sys.modules.get("multiprocessing")
    if multiprocessing is not None:
        for child in multiprocessing.active_children():
            child.kill()
    os._exit(code)


def _foreign_threads() -> list[threading.Thread]:
    """Threads that are not the program's own, and calls of plugins that were given up."""
    calls = sys.modules.get("physdiffuser.plugin_system.calls")
    running = [] if calls is None else calls.calls_running()
    others = [
        thread
        for thread in threading.enumerate()
        if thread is not threading.current_thread()
        and not thread.name.startswith("physdiffuser-")
        and not type(thread).__module__.startswith("tqdm.")
    ]
    return [*running, *others]
