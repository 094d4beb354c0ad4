"""Stdout kept for the program's own output.

While it is reserved, descriptor 1 and `sys.stdout` lead to stderr, so that whatever a plugin, a library in C
or a process started by either writes there cannot get into a document. The program writes to a private copy
of the descriptor.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TextIO

_STDOUT, _STDERR = 1, 2


@dataclass
class _Reserved:
    """What is put back in the end."""

    original: Any
    private: TextIO
    descriptor: bool


_reserved: list[_Reserved] = []
_process_is_ours = [False]


def stream() -> TextIO:
    """Where output of the program goes."""
    return _reserved[0].private if _reserved else sys.stdout


def width() -> int:
    """Columns of the terminal that stdout is."""
    given = os.environ.get("COLUMNS", "")
    if given.isdigit() and int(given) > 0:
        return int(given)
    try:
        return os.get_terminal_size(stream().fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def own_process() -> None:
    """Say that the process ends with the program: what is reserved stays so to the end.

    A thread of a plugin may still run then, and buffers of C libraries are written at the very end.
    """
    _process_is_ours[0] = True


@contextlib.contextmanager
def reserved_stdout(*, restore: bool = False) -> Iterator[None]:
    """Reserve stdout while the block, or the decorated function, runs.

    Parameters
    ----------
    restore
        Put stdout back afterwards even if the process is the program's own.
    """
    if _reserved:
        yield
        return
    _reserve()
    try:
        yield
        _reserved[0].private.flush()
    finally:
        if restore or not _process_is_ours[0]:
            _restore()


def _reserve() -> None:
    original = sys.stdout
    private: TextIO = original
    # In a test or a notebook sys.stdout is something else, and descriptor 1 is not the program's.
    descriptor = original is not None and original is sys.__stdout__ and _fileno(original) == _STDOUT
    if descriptor and _fileno(sys.__stderr__) == _STDERR:
        original.flush()
        private = os.fdopen(
            os.dup(_STDOUT), "w", encoding=original.encoding, errors=original.errors, closefd=True
        )
        os.dup2(_STDERR, _STDOUT)
    else:
        descriptor = False
    _reserved.append(_Reserved(original, private, descriptor))
    sys.stdout = sys.stderr


def _restore() -> None:
    kept = _reserved.pop()
    sys.stdout = kept.original
    if not kept.descriptor:
        return
    # What was written meanwhile, from Python or from C, and lies in a buffer still, belongs to stderr.
    with contextlib.suppress(OSError, ValueError):
        kept.original.flush()
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).fflush(None)
    os.dup2(kept.private.fileno(), _STDOUT)
    # A failure to write was an error of the command already.
    with contextlib.suppress(OSError):
        kept.private.close()


def drop() -> None:
    """Discard all further output: nobody can read it, or it cannot be written."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream().fileno())
        os.close(nowhere)


def _fileno(file: Any) -> int | None:
    try:
        return int(file.fileno())
    except (OSError, ValueError, AttributeError):
        return None
