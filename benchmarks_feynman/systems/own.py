"""physdiffuser as a system: in this process, or as the command that a user types (`cold`)."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks_feynman.export import table_csv
from benchmarks_feynman.sampling import Table
from benchmarks_feynman.suites import MEASURED
from benchmarks_feynman.systems.answer import Answer, onto_columns
from benchmarks_feynman.tasks import Settings, Task
from physdiffuser.errors import NothingFoundError
from physdiffuser.expressions import parse

if TYPE_CHECKING:
    from physdiffuser.core.solution import Solution

_NOTHING_FOUND = 5
# Reading and printing beyond the time given to the search; a promise of `solve` is under 2 s.
_COLD_GRACE = 60.0
_MESSAGE_LENGTH = 2000


def prepare(settings: Settings) -> None:
    """Import the pipeline and solve a tiny table, so that no problem pays for the first call."""
    if settings.cold:
        return
    from physdiffuser.data import dataset_from_arrays
    from physdiffuser.pipeline import solve_dataset

    inputs = np.linspace(1.0, 2.0, 20)[:, None]
    table = dataset_from_arrays(inputs, 2 * inputs[:, 0], names=("x",), target_name="y")
    solve_dataset(table, time=2.0)


def solve(table: Table, task: Task, units: dict[str, str] | None) -> Answer:
    """Answer one problem."""
    return _cold(table, task, units) if task.settings.cold else _warm(table, task, units)


def _warm(table: Table, task: Task, units: dict[str, str] | None) -> Answer:
    from physdiffuser.data import dataset_from_arrays
    from physdiffuser.pipeline import solve_dataset

    settings = task.settings
    options: dict[str, Any] = {"time": settings.time, "seed": task.seed, "jobs": settings.cores}
    if settings.steps is not None:
        options["steps"] = settings.steps
    if settings.generators:
        options["generators"] = settings.generators
    if units is not None:
        options["units"] = units
    started = time.perf_counter()
    dataset = dataset_from_arrays(table.inputs, table.target, names=table.names, target_name=table.output)
    try:
        solution = solve_dataset(dataset, **options)
    except NothingFoundError:
        return Answer("none", None, time.perf_counter() - started)
    seconds = time.perf_counter() - started
    best = solution.best
    if best is None:
        return Answer("none", None, seconds, {"timing": dict(solution.timing)})
    details: dict[str, Any] = {
        "generator": best.generator,
        "verdict": best.verdict,
        "timing": {phase: float(value) for phase, value in solution.timing.items()},
        "warnings": list(solution.warnings),
    }
    expression = onto_columns(best.expression, solution.columns, table.names)
    if task.suite == MEASURED:
        details |= _claims(solution)
    return Answer(solution.status, expression, seconds, details)


def _claims(solution: Solution) -> dict[str, Any]:
    """What is printed about the answer, with the rows and weights of the fit."""
    from physdiffuser.report.documents.json_document import document

    kept = ("best", "inputs", "rows", "test_set", "fit_rows", "notes")
    return {"document": {key: document(solution)[key] for key in kept}}


def _cold(table: Table, task: Task, units: dict[str, str] | None) -> Answer:
    settings = task.settings
    with tempfile.TemporaryDirectory(prefix="evaluate-") as folder:
        path = Path(folder) / "table.csv"
        path.write_text(table_csv(table), encoding="utf-8")
        command = [sys.executable, "-m", "physdiffuser", "solve", str(path), "--json", "--quiet"]
        command += ["--target", table.output, "--time", repr(settings.time), "--seed", str(task.seed)]
        command += ["--jobs", str(settings.cores)]
        if settings.steps is not None:
            command += ["--steps", str(settings.steps)]
        if settings.generators:
            command += ["--generators", ",".join(settings.generators)]
        if units is not None:
            units_path = Path(folder) / "units.json"
            units_path.write_text(json.dumps(units), encoding="utf-8")
            command += ["--units", str(units_path)]
        started = time.perf_counter()
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=settings.time + _COLD_GRACE,
            cwd=folder,
            check=False,
        )
        seconds = time.perf_counter() - started
    if done.returncode not in (0, _NOTHING_FOUND):
        message = done.stderr.decode("utf-8", "replace")[-_MESSAGE_LENGTH:]
        raise RuntimeError(f"solve ended with exit code {done.returncode}: {message}")
    document = json.loads(done.stdout)
    best = document["best"]
    if best is None:
        return Answer("none", None, seconds, {"timing": document["timing"]})
    aliases = [column["alias"] for column in document["inputs"]]
    names = [column["name"] for column in document["inputs"]]
    expression = parse(best["expression"], aliases, document.get("known_constants") or {})
    details = {
        "generator": best.get("generator", ""),
        "verdict": best["verdict"],
        "timing": document["timing"],
        "warnings": document["warnings"],
    }
    return Answer(document["status"], onto_columns(expression, names, table.names), seconds, details)
