"""The result file: one JSON object per line, appended in one write each, one run at a time.

A line carries everything about its problem (task, settings, answer, verdicts, versions), so a file can
be cut, joined and read by anything. A process killed while it writes leaves at most one line that is no
JSON; reading reports it by number, going on with the file removes it, and its problem is run again.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from benchmarks_feynman.tasks import TASK_FIELDS, task_key
from physdiffuser.errors import DataError, FileError, UsageError
from physdiffuser.io.output_folder import free_names

SCHEMA = 1
MAX_BYTES = 1_000_000_000
MAX_LINE = 10_000_000
"""Most bytes of a result file and of a line in it; a result takes a few thousand."""
_BEGINNING = b'{"schema": '
Result = dict[str, Any]


@dataclass
class ResultLines:
    """What a result file holds.

    Attributes
    ----------
    results
        One per readable line, in order; of lines with the same key only the one that `finished` last.
    problems
        One message per line that is no result, with its number.
    """

    results: list[Result] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def keys(self) -> set[str]:
        """Keys of the tasks that have a result."""
        return {task_key(result) for result in self.results}


def parse_lines(lines: Iterable[bytes], name: str) -> ResultLines:
    """Read result lines; lines that are no results become messages."""
    found: dict[str, Result] = {}
    problems = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        reason = ""
        try:
            result = json.loads(line)
        except (ValueError, RecursionError):
            reason = "not JSON (cut off while it was written?)"
        else:
            if not isinstance(result, dict):
                reason = "not a JSON object"
            elif result.get("schema") != SCHEMA:
                reason = f"schema {result.get('schema')!a}, this version reads {SCHEMA}"
            elif missing := [entry for entry in (*TASK_FIELDS, "status") if entry not in result]:
                reason = f"no entry {missing[0]!a}"
        if reason:
            problems.append(f"{name}, line {number}: {reason}; a problem without a result is run again")
        else:
            key = task_key(result)
            older = found.get(key)
            # Files of several machines may be joined in any order: the clock decides, then the place.
            if older is None or str(result.get("finished", "")) >= str(older.get("finished", "")):
                found.pop(key, None)
                found[key] = result
    return ResultLines(list(found.values()), problems)


def read_results(path: Path) -> ResultLines:
    """Read a result file.

    Raises
    ------
    FileError
        If it cannot be read, or is no regular file, which may never end.
    DataError
        If it is too large for a result file.
    """
    _check_regular(path)
    try:
        with path.open("rb") as stream:
            return parse_lines(_limited(stream, path), str(path))
    except OSError as error:
        raise FileError(f"cannot read the results {str(path)!a}: {error.strerror}") from error


def _check_regular(path: Path) -> None:
    if path.exists() and not path.is_file():
        raise FileError(f"{str(path)!a} is a folder, a device or a pipe: name a regular file with --results")


def _limited(stream: BinaryIO, path: Path) -> Iterator[bytes]:
    """The lines of a result file; it may grow while it is read.

    Raises
    ------
    DataError
        If it is larger than any result file.
    """
    total = 0
    while line := stream.readline(MAX_LINE + 1):
        total += len(line)
        if len(line) > MAX_LINE or total > MAX_BYTES:
            what = f"a line of more than {MAX_LINE:,}" if len(line) > MAX_LINE else f"more than {MAX_BYTES:,}"
            raise DataError(f"{str(path)!a} has {what} bytes: this is no result file of 'evaluate'")
        yield line


def fresh_path() -> Path:
    """A name under `runs` that no file has yet: results are kept where no file is named, too."""
    paths = map(Path("runs").joinpath, free_names(f"evaluate-{time.strftime('%Y-%m-%dT%H-%M-%S')}", ".jsonl"))
    return next(path for path in paths if not path.exists())


class ResultFile:
    """A result file open for appending, locked for the time it is open.

    Parameters
    ----------
    path
        The file; created with its folder when missing.
    resume
        Whether results already in it are kept and skipped. Without it a file that holds anything is
        refused, so that no run is lost or mixed up by accident.

    Raises
    ------
    FileError
        If another run holds the file, or it cannot be opened.
    UsageError
        If it holds results and `resume` was not asked for.
    """

    def __init__(self, path: Path, *, resume: bool) -> None:
        self.path = path
        self._made = not path.exists()
        _check_regular(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._stream: BinaryIO = path.open("a+b", buffering=0)
        except OSError as error:
            raise FileError(
                f"cannot open the results {str(path)!a}: {error.strerror}; choose another --results"
            ) from error
        try:
            _lock(self._stream, path)
            self._stream.seek(0)
            with path.open("rb") as stream:
                lines = list(_limited(stream, path))
            if any(line.strip() for line in lines) and not resume:
                raise UsageError(
                    f"{str(path)!a} holds results already: add --resume to go on with them, "
                    "or name another file with --results"
                )
        except BaseException:
            self._stream.close()
            raise
        self.existing = parse_lines(lines, str(path))
        self._torn = bool(lines) and not lines[-1].endswith(b"\n")

    def append(self, result: Result) -> None:
        """Add one line; on the disk when this returns.

        Raises
        ------
        FileError
            If it cannot be written (disk full).
        """
        self._repair()
        text = json.dumps(result, allow_nan=False, ensure_ascii=True)
        line = (b"\n" if self._torn else b"") + text.encode("ascii") + b"\n"
        try:
            written = self._stream.write(line)
            os.fsync(self._stream.fileno())
        except OSError as error:
            self._torn = True
            raise FileError(f"cannot write to {str(self.path)!a}: {error.strerror}") from error
        if written != len(line):
            self._torn = True
            raise FileError(f"cannot write to {str(self.path)!a}: the disk is full")
        self._torn = False
        self.existing.results.append(result)

    def _repair(self) -> None:
        """Remove an incomplete last line, which a killed process or a full disk left.

        Only the beginning of a result is removed; a file that is something else keeps all its lines.
        """
        if not self._torn:
            return
        size = os.fstat(self._stream.fileno()).st_size
        self._stream.seek(max(0, size - MAX_LINE))
        tail = self._stream.read().rpartition(b"\n")[2]
        shorter = min(len(tail), len(_BEGINNING))
        if tail[:shorter] == _BEGINNING[:shorter] and not parse_lines([tail], "").results:
            os.ftruncate(self._stream.fileno(), size - len(tail))
            self._torn = False

    def __enter__(self) -> ResultFile:
        self._repair()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._made and os.fstat(self._stream.fileno()).st_size == 0:
            with contextlib.suppress(OSError):  # nothing was run: no file is left that says otherwise
                self.path.unlink()
        # Closing gives the lock back; a process that dies gives it back as well.
        self._stream.close()


def _lock(stream: BinaryIO, path: Path) -> None:
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        def lock() -> None:
            stream.seek(0x7FFF0000)
            msvcrt.locking(stream.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    else:

        def lock() -> None:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)

    try:
        lock()
    except OSError as error:
        raise FileError(
            f"another run is writing to {str(path)!a}; wait for it, or name another file with --results"
        ) from error


@contextlib.contextmanager
def open_results(path: Path | None, *, resume: bool) -> Iterator[ResultFile | None]:
    """The result file, or None where no path is given."""
    if path is None:
        yield None
        return
    with ResultFile(path, resume=resume) as results:
        yield results
