"""The folder a run leaves behind: `result.json`, `pareto.csv`, `fit.png`, `report.html`.

Every file is written in one step, and a folder holds one run at a time, so whatever happens to the
process, the folder can be read afterwards. `result.json` decides which run that is: the files made from an
earlier one are removed before it takes its name, and the others are written after it. `progress.json` belongs
to a run that has not finished yet, and names its own table. Other files in the folder are not touched.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from physdiffuser.core.solution import Solution
from physdiffuser.data.readers.csv_safe import neutralise
from physdiffuser.errors import DataError, FileError, UsageError
from physdiffuser.expressions import to_text
from physdiffuser.io.atomic import write_bytes_atomic, write_text_atomic
from physdiffuser.io.display import visible
from physdiffuser.io.folder_lock import FolderLock
from physdiffuser.io.output_folder import free_names
from physdiffuser.io.small_files import read_bounded
from physdiffuser.report.documents.document_reader import Reader
from physdiffuser.report.documents.json_document import SCHEMA, document, document_text
from physdiffuser.report.documents.solution_reader import solution_from_document, upgraded
from physdiffuser.report.documents.table_record import TableRecord
from physdiffuser.report.text.digits import table_digits

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
    "test_rmse",
    "probability",
    "verdict",
    "expression",
    "latex",
)


@dataclass(frozen=True)
class SavedFormulas:
    """Formulas that an earlier run left in a file.

    Attributes
    ----------
    formulas
        As text, in the aliases of its table.
    table
        The table of that run; None when the file does not say.
    """

    formulas: tuple[str, ...]
    table: TableRecord | None


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
        """Save the document, in one step; what was made from an earlier one here is removed first."""
        made = [self.path / name for name in (PARETO_NAME, PLOT_NAME, REPORT_NAME)]
        write_text_atomic(self.path / RESULT_NAME, document_text(content), outdated=made)
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

        self.save_page(report_html(solution))
        return True

    def save_page(self, page: str) -> None:
        """Save a report that was made already, in one step."""
        write_text_atomic(self.path / REPORT_NAME, page)

    @property
    def has_result(self) -> bool:
        """Whether an earlier run has left a result here."""
        return (self.path / RESULT_NAME).is_file()

    def saved_formulas(self) -> tuple[SavedFormulas, ...]:
        """What `--resume` starts from: the formulas of the result, and of a run that was killed.

        Of the result the chosen formula comes first. Empty when there is neither.

        Raises
        ------
        DataError, UsageError
            If a file is there but was not written by `solve`.
        """
        saved = []
        if self.has_result:
            saved.append(_formulas_of_result(self.path / RESULT_NAME))
        interim = self.path / PROGRESS_NAME
        if interim.is_file():
            reader = Reader(_read_json(interim), visible(str(interim), 300))
            table = reader.optional("table")
            formulas = (*reader.texts("front"), *reader.texts("functions"))
            saved.append(SavedFormulas(formulas, None if table is None else TableRecord.read(table)))
        return tuple(saved)

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
    for name in free_names(f"{stamp}-{slug}"):
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
    content, source = load_result(run)
    return solution_from_document(content, source)


def load_solutions(run: Path) -> dict[str, Solution]:
    """Read the result of a run for one target or several, by the name of the target; see `load_solution`."""
    content, source = load_result(run)
    several = content.get("targets") if isinstance(content, dict) else None
    if several is None:
        solution = solution_from_document(content, source)
        return {solution.target: solution}
    if not isinstance(several, dict) or not several:
        raise DataError(f"{source}: targets should be an object of documents; run solve again.")
    return {
        name: solution_from_document(one, f"{source}, target '{visible(name, 200)}'")
        for name, one in several.items()
    }


def load_result(run: Path) -> tuple[object, str]:
    """The document of a run as JSON values, and its path for messages; see `load_solution`."""
    path = run / RESULT_NAME if run.is_dir() else run
    if run.is_dir() and not path.exists():
        raise FileError(
            f"'{visible(str(run), 300)}' holds no {RESULT_NAME}: the run was stopped before its first "
            "result, or this is no run folder."
        )
    return _read_json(path), visible(str(path), 300)


def _formulas_of_result(path: Path) -> SavedFormulas:
    """The formulas as text: parsing them may need plugins, which are not loaded yet."""
    reader = Reader(upgraded(_read_json(path)), visible(str(path), 300))
    reader.schema(SCHEMA)
    best = reader.optional("best")
    rows = ([] if best is None else [best]) + reader.rows("pareto")
    form = reader.optional("template_form")
    functions = () if form is None else form.texts("statements")
    texts = (*(row.text("expression") for row in rows), *functions)
    formulas = tuple(dict.fromkeys(texts))
    table = reader.optional("table")
    if table is not None:
        return SavedFormulas(formulas, TableRecord.read(table))
    # Written by a version that stored the columns only.
    inputs = tuple(row.text("name") for row in reader.rows("inputs"))
    return SavedFormulas(formulas, TableRecord(reader.text("target"), inputs))


def resumed_formulas(saved: tuple[SavedFormulas, ...], table: TableRecord, folder: Path) -> tuple[str, ...]:
    """The formulas to start from: those found in this table, each once.

    A folder may hold a result for one table and what a run on another, which was killed, has saved.

    Parameters
    ----------
    saved
        What the folder holds.
    table
        The table of the new run.

    Raises
    ------
    UsageError
        If all of it was made from another table; says what is different.
    """
    fitting: list[SavedFormulas] = []
    different: list[str] = []
    for one in saved:
        found = [] if one.table is None else list(one.table.differences(table))
        if found:
            different = found
        else:
            fitting.append(one)
    if different and not fitting:
        raise UsageError(
            f"--resume: the run in '{visible(str(folder), 300)}' was made from another table: "
            f"{'; '.join(different)}. Choose another folder with --out, or leave out --resume to start anew."
        )
    return tuple(dict.fromkeys(formula for one in fitting for formula in one.formulas))


def _read_json(path: Path) -> object:
    shown = visible(str(path), 300)
    try:
        data = read_bounded(path, MAX_RESULT_BYTES)
    except (OSError, ValueError) as error:
        raise FileError(f"cannot read '{shown}': {getattr(error, 'strerror', None) or error}.") from error
    if data is None:
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
    """The Pareto table as CSV, formulas with the digits of the report.

    Cells that a spreadsheet would run as formulas are made harmless.
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(_PARETO_HEADER)
    for row, equation in zip(document(solution)["pareto"], solution.pareto, strict=True):
        row["expression"] = to_text(equation.expression, solution.names, table_digits(equation))
        cells = ["" if row[key] is None else str(row[key]) for key in _PARETO_HEADER]
        writer.writerow([neutralise(cell) for cell in cells])
    return stream.getvalue()
