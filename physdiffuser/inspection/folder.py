"""The folder of an inspection: every file complete, or none of them."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from physdiffuser.data.display import visible
from physdiffuser.errors import FileError
from physdiffuser.inspection.page import Report, html
from physdiffuser.report.atomic import write_bytes_atomic

PAGE, NUMBERS = "inspection.html", "inspection.json"


def fresh_name(title: str, root: Path = Path("runs")) -> Path:
    """A folder under `root` that does not exist yet, named by the time and the subject."""
    slug = re.sub(r"[^A-Za-z0-9_.-]+", "-", title).strip("-.")[:40] or "table"
    stamp = time.strftime("%Y-%m-%dT%H-%M-%S")
    number = 1
    while True:
        path = root / f"{stamp}-inspect-{slug}{'' if number == 1 else f'-{number}'}"
        if not path.exists():
            return path
        number += 1


def check_writable(folder: Path) -> None:
    """Find out before minutes of work whether files can be written there.

    Leaves nothing behind, not even folders that it had to make.

    Raises
    ------
    FileError
        If they cannot.
    """
    made: list[Path] = []
    try:
        made = _make(folder)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise _refused(folder, error) from error
    finally:
        _unmake(made)


def write(report: Report, folder: Path) -> list[Path]:
    """Write page, pictures and numbers; returns their paths, the page first.

    All files are written in full under the folder before the first one takes its name.

    Raises
    ------
    FileError
        If something cannot be written; then no file has its name, and folders made here are gone.
    """
    contents: dict[str, bytes] = {f"{picture.name}.png": picture.png for picture in report.pictures}
    contents[NUMBERS] = (json.dumps(_finite(report.numbers), indent=1) + "\n").encode()
    contents[PAGE] = html(report).encode()
    made: list[Path] = []
    staging: Path | None = None
    done = False
    try:
        made = _make(folder)
        staging = Path(tempfile.mkdtemp(dir=folder, prefix=".inspection.", suffix=".tmp"))
        for name, content in contents.items():
            write_bytes_atomic(staging / name, content)
        for name in contents:  # the page last: where it is, everything else is
            os.replace(staging / name, folder / name)
        done = True
    except OSError as error:
        raise error if isinstance(error, FileError) else _refused(folder, error) from error
    finally:
        if staging is not None:
            shutil.rmtree(staging, ignore_errors=True)
        if not done:
            _unmake(made)
    return [folder / PAGE, *(folder / name for name in contents if name != PAGE)]


def _make(folder: Path) -> list[Path]:
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
        _unmake(missing)
        raise
    return missing


def _unmake(folders: list[Path]) -> None:
    for folder in folders:
        with contextlib.suppress(OSError):
            folder.rmdir()


def _refused(folder: Path, error: OSError) -> FileError:
    return FileError(
        f"cannot write to '{visible(str(folder), 300)}': {error.strerror or error}. "
        "Choose a folder you can write to with --out."
    )


def _finite(value: Any) -> Any:
    """The same with null for numbers that JSON does not know."""
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
