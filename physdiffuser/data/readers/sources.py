"""Opening what the user named: a path, a pipe or standard input, as a stream of bytes."""

from __future__ import annotations

import difflib
import errno
import io
import os
import select
import stat
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from physdiffuser.data.limits import ReadLimits
from physdiffuser.errors import FileError
from physdiffuser.io.display import visible

STANDARD_INPUT = "-"

_REASONS = {
    errno.ENOENT: "there is no such file",
    errno.ENOTDIR: "a part of the path is not a folder",
    errno.EISDIR: "this is a folder",
    errno.EACCES: "reading it is not permitted",
    errno.EPERM: "reading it is not permitted",
    errno.ELOOP: "its symbolic links form a loop",
    errno.ENAMETOOLONG: "the name is too long",
}
_FIXES = {
    errno.EISDIR: "Name the table inside it.",
    errno.EACCES: "Change its permissions (chmod +r) or copy it.",
    errno.ELOOP: "Name the file itself.",
}


def source_name(source: str | os.PathLike[str]) -> str:
    """Return what messages call the source."""
    text = os.fspath(source)
    return "<stdin>" if text == STANDARD_INPUT else visible(text, 200)


def open_binary(source: str | os.PathLike[str], limits: ReadLimits | None = None) -> io.BufferedReader[Any]:
    """Open a path, or standard input for ``-``.

    Parameters
    ----------
    limits
        Checked at every read; a pipe is not waited for any longer.

    Raises
    ------
    FileError
        When it cannot be opened; says why and what was probably meant.
    """
    path = os.fspath(source)
    limits = limits or ReadLimits()
    if path == STANDARD_INPUT:
        # A reader of its own, so that closing it leaves the program's standard input open. Under test
        # runners and embedding programs standard input may be any readable object.
        return io.BufferedReader(_Raw(sys.stdin.buffer, limits), 1 << 16)
    try:
        return io.BufferedReader(_open_file(path, limits), 1 << 16)
    except FileError:
        raise
    except OSError as error:
        raise file_error(path, error) from error
    except ValueError as error:  # a NUL character in the path
        raise FileError(f"{visible(path)}: no file can have this name ({error}).") from error


def file_error(source: str | os.PathLike[str], error: OSError) -> FileError:
    """Return the user's version of an operating system error."""
    code = error.errno or 0
    reason = _REASONS.get(code, error.strerror or str(error))
    fix = _FIXES.get(code) or (_suggest(os.fspath(source)) if code == errno.ENOENT else "")
    return FileError(f"{source_name(source)}: cannot be read: {reason}. {fix}".rstrip())


def byte_size(stream: io.BufferedReader[Any]) -> int | None:
    """Return the number of bytes behind the stream when it is a regular file."""
    try:
        status = os.fstat(stream.fileno())
    except (OSError, io.UnsupportedOperation):
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _suggest(path: str) -> str:
    if "://" in path:
        return "Addresses are not fetched: download the file first."
    folder, name = os.path.split(path)
    try:
        neighbours = os.listdir(folder or ".")
    except OSError:
        return f"There is no folder '{visible(folder)}'."
    close = difflib.get_close_matches(name, neighbours, n=1)
    return f"Did you mean '{visible(str(Path(folder, close[0])))}'?" if close else ""


class _File(io.RawIOBase):
    """A file that is not read beyond the limits."""

    def __init__(self, path: str, limits: ReadLimits) -> None:
        self._file = io.FileIO(path)
        self._name = source_name(path)
        self._limits = limits

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._file.seekable()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def fileno(self) -> int:
        return self._file.fileno()

    def readinto(self, buffer: Any) -> int | None:
        _wait(self.fileno(), self._limits, self._name)
        return self._file.readinto(buffer)

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


class _Raw(io.RawIOBase):
    """Adapts an object with only `read` to what a buffered reader needs."""

    def __init__(self, stream: BinaryIO, limits: ReadLimits) -> None:
        self._limits = limits
        # Not `read`, which would wait until the whole buffer is full.
        self._read: Callable[[int], bytes] = getattr(stream, "read1", stream.read)
        try:
            self._handle = stream.fileno()
        except (AttributeError, OSError):
            self._handle = -1

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        _wait(self._handle, self._limits, source_name(STANDARD_INPUT))
        data = self._read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _open_file(path: str, limits: ReadLimits) -> _File:
    """Open a path; a named pipe that no program opens for writing is waited for within the limits only."""
    seconds = limits.remaining()
    try:
        pipe = seconds is not None and stat.S_ISFIFO(os.stat(path).st_mode)
    except (OSError, ValueError):
        pipe = False  # opening says it better
    if not pipe:
        return _File(path, limits)
    found: list[_File | OSError] = []

    def wait() -> None:
        try:
            found.append(_File(path, limits))
        except OSError as error:
            found.append(error)

    opener = threading.Thread(target=wait, name="physdiffuser-opening", daemon=True)
    opener.start()
    opener.join(seconds)
    if not found:
        raise limits.no_data(source_name(path))
    if isinstance(found[0], OSError):
        raise found[0]
    return found[0]


def _wait(handle: int, limits: ReadLimits, name: str) -> None:
    """Wait until there is something to read, as long as the limits allow."""
    seconds = limits.remaining()
    if seconds is None:
        return
    limits.check(name)
    if handle < 0 or not hasattr(select, "poll"):  # Windows cannot wait for a pipe
        return
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    if not poll.poll(seconds * 1000):
        raise limits.no_data(name)
