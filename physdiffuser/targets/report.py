"""The report of several targets as text: a section for each, and what the laws have in common."""

from __future__ import annotations

from physdiffuser.io.display import visible
from physdiffuser.report.text.style import Style
from physdiffuser.report.text.terminal import render
from physdiffuser.targets.answer import TargetSolutions


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
