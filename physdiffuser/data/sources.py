"""Opening what the user named: a path, a pipe or standard input, as a stream of bytes."""

from __future__ import annotations

import difflib
import errno
import io
import os
import stat
import sys
from pathlib import Path
from typing import Any, BinaryIO

from physdiffuser.data.display import visible
from physdiffuser.errors import FileError

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


def open_binary(source: str | os.PathLike[str]) -> io.BufferedReader[Any]:
    """Open a path, or standard input for ``-``.

    Raises
    ------
    FileError
        When it cannot be opened; says why and what was probably meant.
    """
    path = os.fspath(source)
    if path == STANDARD_INPUT:
        # A reader of its own, so that closing it leaves the program's standard input open. Under test
        # runners and embedding programs standard input may be any readable object.
        return io.BufferedReader(_Raw(sys.stdin.buffer), 1 << 16)
    try:
        return io.BufferedReader(io.FileIO(path), 1 << 16)
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


class _Raw(io.RawIOBase):
    """Adapts an object with only `read` to what a buffered reader needs."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)
