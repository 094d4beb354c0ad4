"""The folder a run leaves behind: `result.json`, `pareto.csv`, `fit.png`, `report.html`.

Every file is written in one step, and a folder holds one run at a time, so whatever happens to the
process, the folder can be read afterwards.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from physdiffuser.data.csv_safe import neutralise
from physdiffuser.data.display import visible
from physdiffuser.errors import DataError, FileError
from physdiffuser.report.atomic import write_bytes_atomic, write_text_atomic
from physdiffuser.report.folder_lock import FolderLock
from physdiffuser.report.json_document import document, document_text, solution_from_document
from physdiffuser.report.solution import Solution

RESULT_NAME = "result.json"
PARETO_NAME = "pareto.csv"
PLOT_NAME = "fit.png"
REPORT_NAME = "report.html"
PROGRESS_NAME = "progress.json"
MAX_RESULT_BYTES = 50_000_000
_PARETO_HEADER = (
    "row",
    "chosen",
    "complexity",
    "rmse",
    "r2",
    "max_relative_error",
    "held_out_rmse",
    "verdict",
    "expression",
    "latex",
)


class RunFolder:
    """A folder held by this run.

    Parameters
    ----------
    path
        Made when missing, with its parents.

    Raises
    ------
    FileError
        If it cannot be made or written to, is no folder, or is held by another run.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._made = not path.exists()
        try:
            path.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise FileError(
                f"--out '{visible(str(path), 300)}' is a file, not a folder. Choose another name."
            ) from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise FileError(
                f"cannot make the run folder '{visible(str(path), 300)}': {reason}. "
                "Choose a folder you can write to with --out."
            ) from error
        self._lock = FolderLock(path)
        self._remove_leftovers()

    def _remove_leftovers(self) -> None:
        """Temporary files of a run that was killed between two steps."""
        for name in (RESULT_NAME, PARETO_NAME, PLOT_NAME, REPORT_NAME, PROGRESS_NAME):
            for leftover in self.path.glob(f".{name}.*.tmp"):
                with contextlib.suppress(OSError):
                    leftover.unlink()

    def save_progress(self, content: Mapping[str, Any]) -> None:
        """Save what the search has so far, in one step."""
        write_text_atomic(self.path / PROGRESS_NAME, json.dumps(content, allow_nan=False) + "\n")

    def save_result(self, content: Mapping[str, Any]) -> None:
        """Save the document, in one step; what showed an earlier result here is removed first."""
        for name in (PLOT_NAME, REPORT_NAME):
            with contextlib.suppress(OSError):
                (self.path / name).unlink(missing_ok=True)
        write_text_atomic(self.path / RESULT_NAME, document_text(content))
        with contextlib.suppress(OSError):
            (self.path / PROGRESS_NAME).unlink(missing_ok=True)

    def save_pareto(self, solution: Solution) -> None:
        """Save the Pareto table for spreadsheets, in one step."""
        write_text_atomic(self.path / PARETO_NAME, pareto_csv(solution))

    def save_plot(self, solution: Solution) -> bool:
        """Save prediction against truth and the residuals; False when there is nothing to plot."""
        if solution.best is None or solution.fit_points is None:
            return False
        from physdiffuser.report.plots import fit_png

        write_bytes_atomic(self.path / PLOT_NAME, fit_png(solution))
        return True

    def save_report(self, solution: Solution) -> bool:
        """Save the report as a web page; False when there is no formula to report."""
        if solution.best is None:
            return False
        from physdiffuser.report.html import report_html

        write_text_atomic(self.path / REPORT_NAME, report_html(solution))
        return True

    @property
    def has_result(self) -> bool:
        """Whether an earlier run has left a result here."""
        return (self.path / RESULT_NAME).is_file()

    def saved_formulas(self) -> tuple[str, ...]:
        """Formulas of the Pareto table that an earlier run left here, the chosen one first.

        Empty when there is none. Of a run that was killed during its search, the formulas it saved
        last.

        Raises
        ------
        DataError, UsageError
            If a file is there but is no result.
        """
        formulas: list[str] = []
        if self.has_result:
            solution = load_solution(self.path)
            rows = ([solution.best] if solution.best else []) + list(solution.pareto)
            formulas += [row.text for row in rows]
        interim = self.path / PROGRESS_NAME
        if interim.is_file():
            content = _read_json(interim)
            rows_text = content.get("front", []) if isinstance(content, dict) else None
            if not isinstance(rows_text, list) or not all(isinstance(row, str) for row in rows_text):
                raise DataError(f"{interim}: not written by 'physdiffuser solve'; delete the file.")
            formulas += rows_text
        return tuple(dict.fromkeys(formulas))

    def close(self) -> None:
        """Give the folder back; a folder that this run made and left empty is removed."""
        self._lock.release()
        if self._made:
            with contextlib.suppress(OSError):
                self.path.rmdir()

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def fresh_folder(table: str, root: Path = Path("runs"), now: float | None = None) -> RunFolder:
    """A new run folder under `root`, named by the time and the table.

    Parameters
    ----------
    table
        Path of the table, or `-`.
    root
        The folder of all runs.
    now
        Seconds since the epoch, for tests.

    Raises
    ------
    FileError
        If it cannot be made.
    """
    stem = "stdin" if table == "-" else Path(table).name.split(".")[0]
    slug = re.sub(r"[^A-Za-z0-9_-]+", "-", stem).strip("-")[:40] or "table"
    stamp = time.strftime("%Y-%m-%dT%H-%M-%S", time.localtime(now))
    for name in _numbered(f"{stamp}-{slug}"):
        path = root / name
        try:
            root.mkdir(parents=True, exist_ok=True)
            path.mkdir()
        except FileExistsError:
            if root.is_dir():
                continue
            raise FileError(
                f"'{visible(str(root), 300)}' is a file, so no run folder can be made in it. Use --out DIR."
            ) from None
        except OSError as error:
            raise FileError(
                f"cannot make the run folder '{visible(str(path), 300)}': {error.strerror}. "
                "Choose a folder you can write to with --out."
            ) from error
        folder = RunFolder(path)
        folder._made = True
        return folder
    raise AssertionError("unreachable")  # the numbers do not end


def _numbered(name: str) -> Iterator[str]:
    yield name
    number = 2
    while True:
        yield f"{name}-{number}"
        number += 1


def load_solution(run: Path) -> Solution:
    """Read the result of a run.

    Parameters
    ----------
    run
        A run folder, or its `result.json`.

    Raises
    ------
    FileError
        If it is missing or unreadable.
    DataError, UsageError
        If it is no result of `solve`.
    """
    path = run / RESULT_NAME if run.is_dir() else run
    if run.is_dir() and not path.exists():
        raise FileError(
            f"'{visible(str(run), 300)}' holds no {RESULT_NAME}: the run was stopped before its first "
            "result, or this is no run folder."
        )
    return solution_from_document(_read_json(path), visible(str(path), 300))


def _read_json(path: Path) -> object:
    shown = visible(str(path), 300)
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_RESULT_BYTES + 1)
    except (OSError, ValueError) as error:
        raise FileError(f"cannot read '{shown}': {getattr(error, 'strerror', None) or error}.") from error
    if len(data) > MAX_RESULT_BYTES:
        raise DataError(f"{shown}: more than {MAX_RESULT_BYTES:,} bytes; this is no result of 'solve'.")
    try:
        return json.loads(data, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{shown}: not JSON ({visible(str(error), 120)}). Give the run folder of 'physdiffuser solve', "
            f"or the {RESULT_NAME} in it."
        ) from error


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")


def pareto_csv(solution: Solution) -> str:
    """The Pareto table as CSV; cells that a spreadsheet would run as formulas are made harmless."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(_PARETO_HEADER)
    for row in document(solution)["pareto"]:
        cells = ["" if row[key] is None else str(row[key]) for key in _PARETO_HEADER]
        writer.writerow([neutralise(cell) for cell in cells])
    return stream.getvalue()
