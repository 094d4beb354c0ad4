"""One HTML page with everything in it: no other file, no script, no request."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files

from physdiffuser.inspection.drawing.figures import Picture

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
