"""The log of a training run: one JSON object a line in `metrics.jsonl`, each step once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from physdiffuser.errors import FileError, UsageError
from physdiffuser.io.atomic import write_bytes_atomic

METRICS = "metrics.jsonl"


def append_row(folder: Path, record: Mapping[str, Any]) -> None:
    """Add one line to the log of a run; the folder is made if it does not exist."""
    folder.mkdir(parents=True, exist_ok=True)
    line = json.dumps(record) + "\n"
    # Unbuffered: the line is one write, so a killed process leaves at most its last line incomplete.
    with (folder / METRICS).open("ab", buffering=0) as stream:
        stream.write(line.encode("ascii"))


def has_rows(folder: Path) -> bool:
    """Whether the folder holds a log that is not empty."""
    path = folder / METRICS
    return path.is_file() and path.stat().st_size > 0


def keep_rows_until(folder: Path, step: int) -> None:
    """Drop the rows of steps after `step`, and lines that are incomplete, in one atomic write.

    A run that was killed has logged steps after its last checkpoint. They are done again, and logged again.

    Raises
    ------
    FileError
        If the log cannot be read or written.
    """
    path = folder / METRICS
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return
    except OSError as error:
        raise FileError(f"cannot read '{path}': {error.strerror or error}") from error
    kept = b"".join(line + b"\n" for line in content.split(b"\n") if _is_row_until(line, step))
    if kept != content:
        write_bytes_atomic(path, kept)


def _is_row_until(line: bytes, step: int) -> bool:
    try:
        record = json.loads(line)
        return int(record["step"]) <= step
    except (ValueError, TypeError, KeyError, RecursionError):
        return False


def open_board(folder: Path, first: int) -> Any:
    """A TensorBoard writer; what an earlier process logged from the step `first` on is hidden.

    Raises
    ------
    UsageError
        If tensorboard is not installed.
    """
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise UsageError(
            "tensorboard: true needs the package tensorboard; install 'physdiffuser[tensorboard]'"
        ) from error
    return SummaryWriter(str(folder), purge_step=first if first > 1 else None)
