"""Sections as Markdown, and as one HTML page that needs nothing beside it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from benchmarks_feynman.export import make_folder
from benchmarks_feynman.report.layout import Section, Table
from benchmarks_feynman.report.plots import inline
from benchmarks_feynman.report.sections import sections
from benchmarks_feynman.results import Result
from physdiffuser.errors import DataError
from physdiffuser.io.atomic import remove, write_text_atomic
from physdiffuser.io.display import counted

TITLE = "Recovery of known laws"


def _cell(text: str, code: bool) -> str:
    """A table cell in Markdown: nothing in it may end the cell or start markup."""
    flat = " ".join(text.split())
    if code and "`" not in flat:
        return f"`{flat}`".replace("|", "\\|")
    return re.sub(r"([\\`*_\[\]<>|~])", r"\\\1", flat)


def table_lines(table: Table) -> list[str]:
    """A table in Markdown, a line per row."""
    lines = ["| " + " | ".join(table.header) + " |", "|" + " --- |" * len(table.header)]
    for row in table.rows:
        cells = [_cell(cell, name in table.code) for name, cell in zip(table.header, row, strict=True)]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def markdown(content: Sequence[Section], pictures: dict[str, str]) -> str:
    """Markdown text.

    Parameters
    ----------
    pictures
        File name of each plot, by its title.
    """
    lines = [f"# {TITLE}", ""]
    for section in content:
        lines += [f"## {section.title}", ""]
        for paragraph in section.paragraphs:
            lines += [paragraph, ""]
        for title, _ in section.plots:
            lines += [f"![{title}]({pictures[title]})", ""]
        for table in section.tables:
            lines += [*table_lines(table), ""]
    return "\n".join(lines)


def html(content: Sequence[Section], results: Sequence[Result]) -> str:
    """The page, in the style of the report of a run.

    Everything from results is escaped; plots are SVG drawn here. Rows of one suite and tier are hidden by the
    style when their box is not ticked, so the page needs no script.
    """
    import jinja2
    from markupsafe import Markup

    from physdiffuser.report.html.page import page_style

    groups = sorted({(result["suite"], str(result["group"])) for result in results})

    def place_of(table: Table, row: tuple[str, ...]) -> int:
        """The number of the box that a row belongs to; 0 if it belongs to none."""
        cells = dict(zip(table.header, row, strict=True))
        for place, (suite, group) in enumerate(groups, start=1):
            if (cells.get("suite"), cells.get("group")) == (suite, group) or row[0] == f"{suite} {group}":
                return place
        return 0

    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    source = (files("benchmarks_feynman.report") / "page.html").read_text(encoding="utf-8")

    def emphasis(text: str) -> Markup:
        escaped = str(Markup.escape(text))
        escaped = re.sub(r"\*([^*]+)\*", r"<em>\1</em>", escaped)
        return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", escaped))

    drawn = [
        {
            "title": section.title,
            "paragraphs": [emphasis(text) for text in section.paragraphs],
            "tables": section.tables,
            "plots": [(title, Markup(inline(svg))) for title, svg in section.plots],
        }
        for section in content
    ]
    return environment.from_string(source).render(
        title=TITLE,
        subtitle=_subtitle(results),
        sections=drawn,
        groups=groups,
        place_of=place_of,
        style=Markup(page_style()),
    )


def _subtitle(results: Sequence[Result]) -> str:
    """What was run: tables, laws, systems and commits."""
    laws = {(result["suite"], result["id"]) for result in results}
    systems = sorted({result["system"] for result in results})
    commits = sorted({str(result["commit"])[:12] for result in results if result["commit"]})
    parts = [counted(len(results), "table"), counted(len(laws), "law"), ", ".join(systems)]
    if commits:
        parts.append(f"commit{'s' if len(commits) > 1 else ''} {', '.join(commits)}")
    return " · ".join(parts)


def write_report(results: Sequence[Result], folder: Path) -> list[Path]:
    """Write `report.md` with its plots, and `report.html`.

    Returns
    -------
    list
        The files written.

    Raises
    ------
    DataError
        If there is no result to report.
    """
    if not results:
        raise DataError("no results to report; run `physdiffuser evaluate` with --results first")
    content = sections(results)
    make_folder(folder)
    # Removed before the plots are replaced: a report never stands beside plots of another one.
    for name in ("report.md", "report.html"):
        remove(folder / name)
    pictures = {}
    written = []
    for section in content:
        for title, svg in section.plots:
            name = title.lower().replace(" ", "-") + ".svg"
            pictures[title] = name
            write_text_atomic(folder / name, svg)
            written.append(folder / name)
    write_text_atomic(folder / "report.md", markdown(content, pictures))
    write_text_atomic(folder / "report.html", html(content, results))
    return [folder / "report.md", folder / "report.html", *written]
