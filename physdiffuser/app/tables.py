"""The tables that the page works on: what was opened with the program, dropped or pasted.

A table is known to the browser by a random name. No path, and no part of one, comes from there.
"""

from __future__ import annotations

import os
import re
import secrets
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from physdiffuser.app.settings import Reading, Settings
from physdiffuser.data.dataset import Dataset
from physdiffuser.data.limits import MAX_PIPED
from physdiffuser.data.loading import load_dataset
from physdiffuser.data.readers.formats import read_table
from physdiffuser.data.table import Table
from physdiffuser.errors import FileError, UsageError
from physdiffuser.io.display import visible

READING_SECONDS = 60.0
_KEPT = 4


class TooLargeError(UsageError):
    """A table of more bytes than are accepted."""


@dataclass(frozen=True)
class TableFile:
    """A table on disk, and the name that the user gave it."""

    path: Path
    name: str


class Tables:
    """All tables of this server.

    Parameters
    ----------
    folder
        Where tables that arrive are kept.
    limit
        Most bytes of one of them: as many as the reader takes from a pipe.
    """

    def __init__(self, folder: Path, limit: int = MAX_PIPED) -> None:
        self._folder = folder
        self.limit = limit
        self._known: dict[str, TableFile] = {}

    def add(self, path: Path, name: str | None = None) -> str:
        """Make a table known; returns the name by which the page asks for it."""
        for known, table in self._known.items():
            if table.path == path:
                return known
        identifier = secrets.token_hex(8)
        self._known[identifier] = TableFile(path, name or path.name)
        return identifier

    def get(self, identifier: str) -> TableFile:
        """A table.

        Raises
        ------
        UsageError
            If there is none of that name.
        """
        found = self._known.get(identifier)
        if found is None:
            raise UsageError("this table is not open any more: load it again")
        return found

    async def receive(self, stream: AsyncIterator[bytes], name: str) -> str:
        """Keep a table that arrives in pieces.

        Raises
        ------
        TooLargeError
            If it has more bytes than the limit.
        FileError
            If it cannot be written.
        """
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            handle, written = tempfile.mkstemp(prefix=".arriving-", dir=self._folder)
        except OSError as error:
            raise _unwritable(self._folder, error) from error
        try:
            await self._write(handle, stream)
            path = self._folder / f"{secrets.token_hex(4)}-{slug(name)}"
            os.replace(written, path)
        except OSError as error:
            raise _unwritable(self._folder, error) from error
        finally:
            Path(written).unlink(missing_ok=True)
        return self.add(path, visible(name, 200))

    async def _write(self, handle: int, stream: AsyncIterator[bytes]) -> None:
        size = 0
        with os.fdopen(handle, "wb") as file:
            async for piece in stream:
                size += len(piece)
                if size > self.limit:
                    raise TooLargeError(f"the table has more than {self.limit:,} bytes")
                file.write(piece)


def slug(name: str) -> str:
    """A harmless file name that resembles the given one."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", name.replace("\\", "/").rsplit("/", 1)[-1])
    return re.sub(r"\.{2,}", ".", stem).strip("-.")[:60] or "table"


def whole_table(path: Path, reading: Reading) -> Table:
    """All columns of a table, also of text."""
    return read_table(path, seconds=READING_SECONDS, **reading.model_dump())


@lru_cache(_KEPT)
def _dataset(path: Path, stamp: tuple[int, int], settings: str) -> Dataset:
    read = Settings.model_validate_json(settings)
    return load_dataset(
        path,
        target=read.target,
        inputs=read.inputs,
        weights=read.weights,
        errors=read.errors,
        groups=read.groups,
        seconds=READING_SECONDS,
        **read.reading.model_dump(),
    )


def dataset_of(path: Path, settings: Settings) -> Dataset:
    """The table as the search sees it; the last few are kept.

    Raises
    ------
    PhysdiffuserError
        As `load_dataset`.
    """
    try:
        stat = path.stat()
    except OSError as error:
        raise FileError(f"cannot read '{visible(str(path), 300)}': {error.strerror}") from error
    key = settings.model_dump_json(include={"reading", "target", "inputs", "groups", "weights", "errors"})
    return _dataset(path, (stat.st_mtime_ns, stat.st_size), key)


def _unwritable(folder: Path, error: OSError) -> FileError:
    return FileError(f"cannot write to '{visible(str(folder), 300)}': {error.strerror}. Choose --runs DIR.")
