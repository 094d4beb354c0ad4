"""Files that are either the old ones or the new ones, never half of each.

The content goes to a temporary file in the same folder, is forced to the disk, and takes the final name in
one step. A process killed at any moment leaves the previous file, or the complete new one, and at worst a
temporary file beside it whose name starts with `.` and ends in `.tmp`.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from physdiffuser.errors import FileError
from physdiffuser.io.display import visible

# What a newly created file would get: mkstemp makes files that only the owner can read.
_MODE = 0o666


def write_bytes_atomic(path: str | os.PathLike[str], data: bytes, *, outdated: Sequence[Path] = ()) -> None:
    """Write a file in one step.

    Parameters
    ----------
    path
        The final name. Its folder must exist. A symbolic link is followed, so that the file it
        points to is replaced and the link stays.
    data
        The whole content.
    outdated
        Files made from the previous content. They are removed when the new content is on the disk and
        before it takes the name, so that they never stand beside a file that they were not made from.

    Raises
    ------
    FileError
        If the file cannot be written or one of the outdated files cannot be removed (disk full, no
        permission, open in another program, ...). The previous content is then still there and the
        temporary file is gone.
    """
    target = Path(path)
    temporary: str | None = None
    try:
        final = os.path.realpath(target)
        folder = os.path.dirname(final)
        handle, temporary = tempfile.mkstemp(
            dir=folder, prefix=f".{os.path.basename(final)[:40]}.", suffix=".tmp"
        )
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            if hasattr(os, "fchmod"):
                os.fchmod(stream.fileno(), _mode(final))
            os.fsync(stream.fileno())
        for old in outdated:
            remove(old)
        if outdated:
            _sync_folder(folder)
        os.replace(temporary, final)
        temporary = None
        _sync_folder(folder)
    except FileError:
        raise
    except OSError as error:
        raise FileError(
            f"cannot write '{visible(str(target), 300)}': {error.strerror or error}. "
            "Free some space, or choose another place with --out."
        ) from error
    finally:
        # Also when the user interrupts between the two steps.
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def write_text_atomic(path: str | os.PathLike[str], text: str, *, outdated: Sequence[Path] = ()) -> None:
    """Write a text file in one step, as UTF-8 with the line ends that `text` has.

    Raises
    ------
    FileError
        As `write_bytes_atomic`.
    """
    write_bytes_atomic(path, text.encode("utf-8"), outdated=outdated)


def remove(path: Path) -> None:
    """Remove a file of an earlier run, if it is there.

    Raises
    ------
    FileError
        If it is there and cannot be removed.
    """
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise FileError(
            f"cannot remove '{visible(str(path), 300)}', which belongs to an earlier run: "
            f"{error.strerror or error}. Close the program that has it open, or choose another --out."
        ) from error


def _mode(final: str) -> int:
    """Permissions of the file that is replaced, or those a new one gets from the umask."""
    try:
        return os.stat(final).st_mode & 0o7777
    except OSError:
        return _MODE & ~_umask()


def _umask() -> int:
    # Linux tells it without setting it; setting it for a moment would race with other threads.
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as status:
            for line in status:
                if line.startswith("Umask:"):
                    return int(line.split()[1], 8)
    except (OSError, ValueError, IndexError):
        return 0o022
    return 0o022


def _sync_folder(folder: str) -> None:
    """Make the new name itself survive a power cut, where the system can."""
    if os.name != "posix":
        return
    with contextlib.suppress(OSError):  # some file systems refuse to sync a folder; the file is complete
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
