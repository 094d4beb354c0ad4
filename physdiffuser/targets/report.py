"""The report of several targets: a section for each, and what the laws have in common."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from urllib.parse import quote

from physdiffuser.expressions import to_text
from physdiffuser.io.display import visible
from physdiffuser.report.text.digits import shown_digits
from physdiffuser.report.text.style import Style
from physdiffuser.report.text.terminal import render
from physdiffuser.targets.answer import TargetSolutions

_STYLE = "body{font-family:sans-serif;margin:2rem auto;max-width:60rem}code{font-size:1.1em}"


def render_targets(found: TargetSolutions, style: Style | None = None) -> str:
    """The whole report as text, with a line end at the end.

    Parameters
    ----------
    found
        What `solve_targets` returned.
    style
        What the terminal can show; a plain file when not given.
    """
    style = style or Style()
    sections = [
        f"Target {style.emphasise(visible(target, 200))}\n\n{render(solution, style)}"
        for target, solution in found.solutions.items()
    ]
    if found.sentences:
        sections.append("In common\n" + "".join(f"  - {text}\n" for text in found.sentences))
    return "\n".join(sections)


def report_page(found: TargetSolutions, folders: Mapping[str, str]) -> str:
    """An HTML page with the laws, what they have in common, and links to the report of each target.

    Parameters
    ----------
    found
        What `solve_targets` returned.
    folders
        Name of the folder of each target, beside the page.
    """
    lines = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8"><title>Laws of several targets</title>',
        f"<style>{_STYLE}</style></head><body>",
        "<h1>Laws of several targets</h1>",
        "<ul>",
    ]
    for target, solution in found.solutions.items():
        name = escape(visible(target, 200))
        if solution.best is None:
            lines.append(f"<li>{name}: no formula with finite values was found</li>")
            continue
        law = to_text(solution.best.expression, solution.names, shown_digits(solution.best))
        link = f"{quote(folders[target])}/report.html"
        shown = escape(visible(law, 20_000))
        lines.append(f'<li><code>{name} = {shown}</code> (<a href="{link}">report</a>)</li>')
    lines.append("</ul>")
    if found.sentences:
        lines += ["<h2>In common</h2>", "<ul>"]
        lines += [f"<li>{escape(text)}</li>" for text in found.sentences]
        lines.append("</ul>")
    return "\n".join([*lines, "</body></html>"]) + "\n"
