"""Small files, read whole and no further than a limit."""

from __future__ import annotations

from pathlib import Path

from physdiffuser.errors import FileError, PhysdiffuserError
from physdiffuser.io.display import visible


def read_bounded(path: Path, most: int) -> bytes | None:
    """The content of a small file, or None when it has more than `most` bytes.

    Devices and pipes have no size that could be asked for beforehand, and may never end.

    Raises
    ------
    OSError
        When it cannot be read.
    """
    with path.open("rb") as stream:
        data = stream.read(most + 1)
    return data if len(data) <= most else None


def read_text(
    path: Path, most: int, what: str, *, refused: type[PhysdiffuserError] = FileError, hint: str = ""
) -> str:
    """The text of a small UTF-8 file, a byte order mark left out.

    Parameters
    ----------
    path
        The file.
    most
        Bytes.
    what
        That is expected, for the messages: `a list of formulas`.
    refused
        The error for a file that is too large or holds something else than text.
    hint
        What to do about a file that cannot be read.

    Raises
    ------
    FileError
        When it cannot be read.
    """
    shown = visible(str(path), 200)
    try:
        data = read_bounded(path, most)
    except OSError as error:
        raise FileError(f"cannot read '{shown}': {error.strerror or error}{hint}") from error
    if data is None:
        raise refused(f"'{shown}' has more than {most:,} bytes, too many for {what}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise refused(f"'{shown}': byte {error.start} is not UTF-8; save it as UTF-8 text") from error
