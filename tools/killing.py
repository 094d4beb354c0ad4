"""Processes that end with SIGKILL at a chosen operation on a file."""

from __future__ import annotations

import builtins
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

OPERATIONS = ("replace", "rename", "fsync", "unlink", "rmdir", "mkdir")


class _Stream:
    """A file that is open for writing: a counted write stops in its middle."""

    def __init__(self, stream: Any, count: Callable[[], bool]) -> None:
        self._stream, self._count = stream, count

    def write(self, data: Any) -> Any:
        if self._count():
            self._stream.write(data[: len(data) // 2])
            self._stream.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        return self._stream.write(data)

    def __enter__(self) -> _Stream:
        self._stream.__enter__()
        return self

    def __exit__(self, *exception: object) -> Any:
        return self._stream.__exit__(*exception)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def kill_at(number: int, inside: Path) -> Callable[[], int]:
    """Let this process end with SIGKILL at the operation of that number; returns what counts operations.

    Counted are writes to files below a folder, and before and after each of `OPERATIONS`.
    """
    done = 0

    def due() -> bool:
        nonlocal done
        done += 1
        return done == number

    def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            if due():
                os.kill(os.getpid(), signal.SIGKILL)
            found = function(*arguments, **options)
            if due():
                os.kill(os.getpid(), signal.SIGKILL)
            return found

        return call

    def opening(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
            stream = function(file, mode, *arguments, **options)
            below = isinstance(file, int) or os.path.abspath(file).startswith(str(inside))
            return _Stream(stream, due) if below and set(mode) & set("wax+") else stream

        return call

    for name in OPERATIONS:
        setattr(os, name, wrapped(getattr(os, name)))
    os.fdopen = opening(os.fdopen)
    builtins.open = opening(builtins.open)  # type: ignore[assignment]
    plain = Path.open

    def path_open(path: Path, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        stream = plain(path, mode, *arguments, **options)
        below = str(path.absolute()).startswith(str(inside))
        return _Stream(stream, due) if below and set(mode) & set("wax+") else stream

    Path.open = path_open  # type: ignore[method-assign]
    return lambda: done


def in_child(work: Callable[[], int], log: Path) -> int:
    """Start a forked process, with its output in a file; returns its number."""
    pid = os.fork()
    if pid:
        return pid
    os.setsid()
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    code = 99
    try:
        code = work()
    except BaseException as error:
        os.write(2, f"Traceback: {type(error).__name__}: {error}\n".encode())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def wait(pid: int) -> int:
    """Exit code of a process, negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
