"""The page of an inspection, with everything in it (no script, no request), and its folder."""

from __future__ import annotations

import base64
import json
import math
import os
import re
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from physdiffuser.errors import FileError
from physdiffuser.inspection.drawing.figures import Picture
from physdiffuser.io.atomic import write_bytes_atomic
from physdiffuser.io.output_folder import free_names, make_missing, refused, remove_empty

_TEMPLATE = "page.html.jinja"


@dataclass(frozen=True)
class Table:
    """Numbers beside the pictures of a section.

    Attributes
    ----------
    title, header, rows
        What is shown.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Report:
    """What one inspection found.

    Attributes
    ----------
    title
        Of the page.
    facts
        What was looked at, by name.
    pictures
        In order; each says its section.
    tables
        By section.
    introductions
        A paragraph at the head of a section, by section.
    warnings
        What a reader should know before believing any of it.
    numbers
        Everything behind the pictures that is worth keeping, for `inspection.json`.
    """

    title: str
    facts: dict[str, str]
    pictures: Sequence[Picture]
    tables: dict[str, list[Table]] = field(default_factory=dict)
    introductions: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    numbers: dict[str, object] = field(default_factory=dict)


def html(report: Report) -> str:
    """The page."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string((files(__package__) / _TEMPLATE).read_text(encoding="utf-8"))
    names = list(dict.fromkeys([*report.introductions, *(picture.section for picture in report.pictures)]))
    sections = [
        {
            "name": name,
            "anchor": name.lower().replace(" ", "-"),
            "introduction": report.introductions.get(name, ""),
            "tables": report.tables.get(name, []),
            "pictures": [
                {
                    "picture": picture,
                    "data": base64.b64encode(picture.png).decode("ascii"),
                    "width": _width(picture.png),
                    "height": _height(picture.png),
                    "inches": _inches(picture.png),
                }
                for picture in report.pictures
                if picture.section == name
            ],
        }
        for name in names
    ]
    return template.render(report=report, sections=sections)


def _width(png: bytes) -> int:
    return int.from_bytes(png[16:20], "big")


def _height(png: bytes) -> int:
    return int.from_bytes(png[20:24], "big")


def _inches(png: bytes) -> float:
    """Width on paper: a small picture is not blown up to the width of the page."""
    place = png.find(b"pHYs")
    dots_a_metre = int.from_bytes(png[place + 4 : place + 8], "big") if place > 0 else 0
    return _width(png) / (dots_a_metre * 0.0254) if dots_a_metre else 100.0


PAGE, NUMBERS = "inspection.html", "inspection.json"


def fresh_name(title: str) -> Path:
    """A folder under `runs` that does not exist yet, named by the time and the subject."""
    slug = re.sub(r"[^A-Za-z0-9_.-]+", "-", title).strip("-.")[:40] or "table"
    paths = map(Path("runs").joinpath, free_names(f"{time.strftime('%Y-%m-%dT%H-%M-%S')}-inspect-{slug}"))
    return next(path for path in paths if not path.exists())


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
