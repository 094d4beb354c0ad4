"""What can be taken away from a run: its folder, the law as code, and a notebook that repeats it."""

from __future__ import annotations

import io
import json
import os
import shlex
import zipfile
from pathlib import Path

from physdiffuser.app.jobs import Run
from physdiffuser.app.records import CONSTRAINTS_NAME, UNITS_NAME
from physdiffuser.app.tables import slug
from physdiffuser.core.solution import Solution
from physdiffuser.report.export.exports import export, formula_of
from physdiffuser.report.runfolder import PARETO_NAME, PLOT_NAME, REPORT_NAME, RESULT_NAME, pareto_csv

CODE = {"python": "py", "c": "c", "latex": "tex", "torch": "torch.py", "sympy": "sympy.py"}
"""Formats of `export` that are offered, and the end of the file's name."""

_FILES = (RESULT_NAME, PARETO_NAME, PLOT_NAME, REPORT_NAME, UNITS_NAME, CONSTRAINTS_NAME)
# Larger tables are named by the notebook and not copied into it.
_MOST_EMBEDDED = 200_000


def command_line(run: Run) -> str:
    """The command that repeats the run, to be pasted into a shell."""
    words = run.record.words(run.folder)
    words[1] = os.path.relpath(words[1]) if os.path.isabs(words[1]) else words[1]
    return shlex.join(["physdiffuser", *words])


def code(solution: Solution, row: int | None, format_name: str) -> str:
    """The law, or a row of the Pareto table counted from 1, in another language."""
    equation = solution.best if row is None else solution.pareto[row - 1]
    assert equation is not None  # the caller has looked
    return export(formula_of(solution, equation), format_name)


def folder_zip(run: Run, solution: Solution) -> bytes:
    """The run folder with its table and the notebook, as a ZIP file."""
    name = slug(run.id)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
        for part in _FILES:
            path = run.folder / part
            if path.is_file() and not path.is_symlink():
                file.write(path, f"{name}/{part}")
        if not (run.folder / REPORT_NAME).is_file():
            file.writestr(f"{name}/{REPORT_NAME}", report(run, solution))
            file.writestr(f"{name}/{PARETO_NAME}", pareto_csv(solution))
        table = Path(run.record.table)
        if table.is_file():
            file.write(table, f"{name}/{_table_name(run)}")
        file.writestr(f"{name}/repeat.ipynb", notebook(run))
        file.writestr(f"{name}/command.txt", command_line(run) + "\n")
    return made.getvalue()


def report(run: Run, solution: Solution) -> str:
    """The page of the run: as `solve` has written it, else made of what the run has left."""
    path = run.folder / REPORT_NAME
    if path.is_file():
        return path.read_text(encoding="utf-8")
    from physdiffuser.report.html import report_html

    return report_html(solution)


def notebook(run: Run) -> str:
    """A notebook that repeats the run, with the table inside it where that is short text."""
    table, lines = _table_name(run), ["from physdiffuser import solve"]
    embedded = _short_text(Path(run.record.table))
    cells = [_cell("markdown", f"# A law for {run.record.settings.target or 'the target'}, from {table}")]
    if embedded is not None:
        written = f'from pathlib import Path\n\nPath({table!r}).write_text({embedded!r}, encoding="utf-8")'
        cells.append(_cell("code", written))
    else:
        table = run.record.table
    arguments = "".join(f"    {name}={value!r},\n" for name, value in run.record.settings.keywords().items())
    lines += ["", f"solution = solve(\n    {table!r},\n{arguments})", "solution"]
    cells.append(_cell("code", "\n".join(lines)))
    cells.append(_cell("code", 'solution.plot("residuals")'))
    content = {
        "cells": [cell | {"id": f"cell-{number}"} for number, cell in enumerate(cells)],
        "metadata": {"language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _cell(kind: str, source: str) -> dict[str, object]:
    cell: dict[str, object] = {"cell_type": kind, "metadata": {}, "source": source}
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def _table_name(run: Run) -> str:
    return slug(run.record.table_name)


def _short_text(path: Path) -> str | None:
    try:
        if path.stat().st_size > _MOST_EMBEDDED:
            return None
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
