"""The JSON that describes weights; read without torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from physdiffuser.errors import FileError
from physdiffuser.io.small_files import read_bounded

MAX_BYTES = 10_000_000
DESCRIPTION = "model.json"
BLOCKS = "blocks"
"""Stem of a file with tensors that take the place of those in the encoder's file."""


def read_regular(path: Path, what: str = "", most: int | None = None) -> bytes:
    """Content of a regular file; devices and pipes, which may never end, are refused.

    Parameters
    ----------
    what
        What it is, for messages; ends in a blank.
    most
        Maximum number of bytes, or None.

    Raises
    ------
    FileError
        If it cannot be read or is too large.
    """
    try:
        if path.exists() and not path.is_file():
            raise FileError(f"cannot read {what}'{path}': not a regular file")
        data = path.read_bytes() if most is None else read_bounded(path, most)
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"cannot read {what}'{path}': {error.strerror or error}") from error
    if data is None:
        raise FileError(f"{what}'{path}' has more than {most:,} bytes; it describes no checkpoint")
    return data


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file.

    Raises
    ------
    FileError
        If it is missing or not a JSON object.
    """
    data = read_regular(path, most=MAX_BYTES)
    try:
        content = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise FileError(f"'{path}' is not valid JSON: {error}") from error
    if not isinstance(content, dict):
        raise FileError(f"'{path}' does not hold a JSON object")
    return content
