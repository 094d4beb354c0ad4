"""Calls of plugin code in threads of their own, so that one that never returns can be left behind.

While such a call runs, what its thread prints goes to stderr; other threads keep their stdout.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

T = TypeVar("T")

THREAD_NAME = "physdiffuser-plugin"
EXIT_WAIT = 2.0
"""Seconds that a Python program waits at its end for calls that were given up: a thread inside native code,
such as an import of torch, can crash an interpreter that shuts down."""

_POLL = 0.05
_running: set[threading.Thread] = set()


class PluginWorker:
    """One daemon thread that runs calls, one at a time."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[Callable[[], Any] | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
        # A function of the module: the thread must not keep its owner alive.
        self._thread = threading.Thread(
            target=_serve, args=(self._calls, self._answers), name=THREAD_NAME, daemon=True
        )
        self._thread.start()

    def call(self, function: Callable[[], T], give_up: Callable[[float], bool]) -> T:
        """Run a call.

        Parameters
        ----------
        give_up
            Asked about twenty times a second, with the seconds since the start, whether to wait no longer.

        Returns
        -------
        What the call returns; an exception of the call is raised here, one that is no `Exception`
        (`SystemExit`, `KeyboardInterrupt`) as a RuntimeError.

        Raises
        ------
        TimeoutError
            If `give_up` answered True. The worker cannot be used afterwards.
        """
        started = time.monotonic()
        with _divert(self._thread):
            _running.add(self._thread)
            self._calls.put(function)
            try:
                while True:
                    try:
                        value, error = self._answers.get(timeout=_POLL)
                        break
                    except queue.Empty:
                        if give_up(time.monotonic() - started):
                            raise TimeoutError from None
            except BaseException:
                # Given up, or interrupted: the answer must not be taken for that of the next call.
                self.abandon()
                raise
        if error is None:
            return value  # type: ignore[no-any-return]
        if isinstance(error, Exception):
            raise error
        raise RuntimeError(f"it raised {type(error).__name__}({', '.join(map(repr, error.args))})") from error

    def cpu_seconds(self) -> float | None:
        """Processor time of the thread so far; None where the system does not tell."""
        if self._thread.ident is None or not hasattr(time, "pthread_getcpuclockid"):
            return None
        try:
            return time.clock_gettime(time.pthread_getcpuclockid(self._thread.ident))
        except OSError:
            return None

    def abandon(self) -> None:
        """Ask the thread to end at its next step of Python code; it is a daemon in any case.

        A thread in the middle of importing a library is left to finish: an import broken off would make the
        library unusable for the rest of the program.
        """
        self._calls.put(None)
        if self._thread.ident is not None and not _imports_library(self._thread.ident):
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(self._thread.ident), ctypes.py_object(SystemExit)
            )

    def close(self) -> None:
        """Let the thread end."""
        self._calls.put(None)


def _serve(
    calls: queue.SimpleQueue[Callable[[], Any] | None],
    answers: queue.SimpleQueue[tuple[Any, BaseException | None]],
) -> None:
    thread = threading.current_thread()
    try:
        while (call := calls.get()) is not None:
            try:
                answer: tuple[Any, BaseException | None] = (call(), None)
            except BaseException as error:  # SystemExit and the like, too: they end the call, not the program
                answer = (None, error)
            _running.discard(thread)
            answers.put(answer)
            del call, answer  # they hold the plugin's objects
    finally:
        _running.discard(thread)


def _imports_library(ident: int) -> bool:
    """Whether a thread that loads a plugin is at present importing another module."""
    frame = sys._current_frames().get(ident)
    modules = 0
    while frame is not None:
        modules += frame.f_code.co_name == "<module>"
        frame = frame.f_back
    return modules > 1


def calls_running() -> list[threading.Thread]:
    """Threads in which a call was given up and still runs."""
    return [thread for thread in tuple(_running) if thread.is_alive()]


def _wait_at_exit() -> None:
    until = time.monotonic() + EXIT_WAIT
    for thread in calls_running():
        thread.join(max(0.0, until - time.monotonic()))


atexit.register(_wait_at_exit)


class _StdoutByThread:
    """Stands in for `sys.stdout` while calls run: stderr for their threads, the original for all others."""

    def __init__(self) -> None:
        self._original: Any = None
        self._threads: list[int | None] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stderr if threading.get_ident() in self._threads else self._original, name)


_lock = threading.Lock()

# One object for the life of the process. `print` holds no reference of its own to `sys.stdout` (before
# CPython 3.14), so an object that is freed while a plugin's thread prints to it crashes the interpreter.
_STAND_IN: Final = _StdoutByThread()


@contextlib.contextmanager
def _divert(thread: threading.Thread) -> Iterator[None]:
    """Send what a thread prints to stderr. Calls may overlap: the last to end restores `sys.stdout`."""
    if sys.stdout is None:
        yield
        return
    with _lock:
        # A plugin may have kept the object and put it back itself.
        if not _STAND_IN._threads and sys.stdout is not _STAND_IN:
            _STAND_IN._original = sys.stdout
            sys.stdout = _STAND_IN
        _STAND_IN._threads.append(thread.ident)
    try:
        yield
    finally:
        with _lock:
            _STAND_IN._threads.remove(thread.ident)
            if not _STAND_IN._threads:
                sys.stdout = _STAND_IN._original
