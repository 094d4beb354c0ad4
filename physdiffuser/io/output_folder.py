"""Where output goes: names that are free, and errors at once where it cannot be written."""

from __future__ import annotations

import contextlib
import itertools
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from physdiffuser.errors import FileError
from physdiffuser.io.display import visible


def check_writable(folder: Path, option: str = "--out") -> None:
    """Check that files can be written to a folder, which may not exist yet.

    Removes what it made, the folders included.

    Raises
    ------
    FileError
        If files cannot be written there.
    """
    made: list[Path] = []
    try:
        made = make_missing(folder)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise refused(folder, error, option) from error
    finally:
        remove_empty(made)


def check_writable_file(path: Path) -> None:
    """Check that a file can be written: its folder must exist, and it must not be a folder itself.

    Raises
    ------
    FileError
        If it cannot be written.
    """
    shown = visible(str(path), 300)
    folder = Path(os.path.realpath(path)).parent
    if path.is_dir():
        raise FileError(f"cannot write '{shown}': it is a folder. Name a file with --out.")
    if not folder.is_dir():
        raise FileError(f"cannot write '{shown}': its folder does not exist. Create it, or change --out.")
    check_writable(folder, "--out")


def free_names(stem: str, ending: str = "") -> Iterator[str]:
    """`stem`, `stem-2`, `stem-3`, ...: the first that does not exist yet is to be taken."""
    yield f"{stem}{ending}"
    for number in itertools.count(2):
        yield f"{stem}-{number}{ending}"


def make_missing(folder: Path) -> list[Path]:
    """Make a folder and those above it; returns those that were made, the deepest first."""
    missing = []
    place = folder
    while not place.exists():
        missing.append(place)
        if place.parent == place:
            break
        place = place.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        remove_empty(missing)
        raise
    return missing


def remove_empty(folders: list[Path]) -> None:
    """Remove folders that are empty."""
    for folder in folders:
        with contextlib.suppress(OSError):
            folder.rmdir()


def refused(folder: Path, error: OSError, option: str = "--out") -> FileError:
    """The error of a folder that cannot be written to."""
    return FileError(
        f"cannot write to '{visible(str(folder), 300)}': {error.strerror or error}. "
        f"Choose a folder you can write to with {option}."
    )
