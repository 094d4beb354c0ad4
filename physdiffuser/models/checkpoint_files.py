"""The JSON that describes weights; read without torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from physdiffuser.errors import FileError

DESCRIPTION = "model.json"
BLOCKS = "blocks"
"""Stem of a file with tensors that take the place of those in the encoder's file."""


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file.

    Raises
    ------
    FileError
        If it is missing or not a JSON object.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FileError(f"cannot read '{path}': {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise FileError(f"'{path}' is not valid JSON: {error}") from error
    if not isinstance(content, dict):
        raise FileError(f"'{path}' does not hold a JSON object")
    return content
