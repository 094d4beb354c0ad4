"""The folder of an inspection: every file complete, or none of them."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from physdiffuser.errors import FileError
from physdiffuser.inspection.page import Report, html
from physdiffuser.io.atomic import write_bytes_atomic
from physdiffuser.io.output_folder import make_missing, refused, remove_empty

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
        made = make_missing(folder)
        staging = Path(tempfile.mkdtemp(dir=folder, prefix=".inspection.", suffix=".tmp"))
        for name, content in contents.items():
            write_bytes_atomic(staging / name, content)
        # The page of an earlier run first, the new one last: where a page is, everything in it is its own.
        (folder / PAGE).unlink(missing_ok=True)
        for name in contents:
            os.replace(staging / name, folder / name)
        done = True
    except OSError as error:
        raise error if isinstance(error, FileError) else refused(folder, error) from error
    finally:
        if staging is not None:
            shutil.rmtree(staging, ignore_errors=True)
        if not done:
            remove_empty(made)
    return [folder / PAGE, *(folder / name for name in contents if name != PAGE)]


def _finite(value: Any) -> Any:
    """The same with null for numbers that JSON does not know."""
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
