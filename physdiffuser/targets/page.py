"""The report of several targets as a web page, with links to the report of each."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from physdiffuser.core.solution import Solution
from physdiffuser.expressions.printing.mathml import name_mathml
from physdiffuser.io.display import visible
from physdiffuser.report.html.evidence import names_with_target
from physdiffuser.report.html.page import formulas_script, page_style, table_row, template
from physdiffuser.targets.answer import TargetSolutions
from physdiffuser.version import version


def report_page(found: TargetSolutions, folders: Mapping[str, str]) -> str:
    """An HTML page with the laws, what they have in common, and links to the report of each target.

    Parameters
    ----------
    found
        What `solve_targets` returned.
    folders
        Name of the folder of each target, beside the page.
    """
    script = formulas_script()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return template("targets.html").render(
        laws=[_law(target, one, folders[target]) for target, one in found.solutions.items()],
        sentences=found.sentences,
        version=version(),
        style=page_style(),
        script=script,
        script_digest=digest,
    )


def _law(target: str, solution: Solution, folder: str) -> dict[str, Any]:
    """What the page shows of one target."""
    if solution.best is None:
        return {"target": target, "row": None}
    row = table_row(solution, solution.best, 1)
    return {
        "target": target,
        "solution": solution,
        "row": row,
        "text": f"{visible(target, 200)} = {row.text}",
        "target_mathml": name_mathml(names_with_target(solution)[-1]),
        "link": f"{quote(folder)}/report.html",
    }
