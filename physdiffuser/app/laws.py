"""Formulas of a run as a `Solution` with the rows of its table, from which laws and charts are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from physdiffuser.app.jobs import Run
from physdiffuser.app.settings import Settings
from physdiffuser.app.tables import dataset_of
from physdiffuser.core.solution import Equation, FitPoints, Solution, sample_fit_points
from physdiffuser.data.dataset import Dataset
from physdiffuser.data.statements.constants import parse_constants
from physdiffuser.errors import UsageError
from physdiffuser.expressions import ExpressionSyntaxError, evaluate, parse
from physdiffuser.finalize.scoring import measured
from physdiffuser.report.runfolder import load_solution
from physdiffuser.version import version

# Rows on which formulas of a search that goes on are scored, at most.
_MOST_ROWS = 5_000


def known_constants(settings: Settings, dataset: Dataset) -> dict[str, float]:
    """Values of the known constants, by name."""
    found = parse_constants(settings.constants or None, taken=dataset.names)
    return {constant.symbol.name: constant.symbol.value for constant in found}


def solution_of(run: Run) -> Solution | None:
    """What a run has found so far; None before its first formula."""
    from pathlib import Path

    settings = run.record.settings
    table = Path(run.record.table)
    if not run.has_result:
        texts, best = run.saved_front()
        if not texts and best is None:
            return None
        return interim(dataset_of(table, settings), texts, best, settings)
    solution = load_solution(run.folder)
    return with_rows(solution, dataset_of(table, settings))


def with_rows(solution: Solution, dataset: Dataset) -> Solution:
    """A solution that was read from a file, with the rows that charts show."""
    if solution.best is None or solution.columns[: len(dataset.columns)] != tuple(
        column.name for column in dataset.columns
    ):
        return solution
    codes = None if dataset.groups is None else dataset.groups.codes
    rows = np.zeros(dataset.rows)
    points = sample_fit_points(dataset.target, rows, rows.astype(bool), inputs=dataset.inputs, codes=codes)
    made = replace(solution, fit_points=points)
    inputs = made.inputs_for(solution.best)
    assert inputs is not None  # the points have inputs
    return replace(made, fit_points=replace(points, prediction=evaluate(solution.best.expression, inputs)))


def interim(dataset: Dataset, texts: Sequence[str], best: str | None, settings: Settings) -> Solution:
    """The formulas of a search that goes on, scored on (a sample of) the rows."""
    some = np.linspace(0, dataset.rows - 1, min(dataset.rows, _MOST_ROWS)).astype(np.intp)
    known = known_constants(settings, dataset)
    sample = dataset.take(np.unique(some))
    rows = [row for text in texts if (row := scored(text, sample, known)) is not None]
    chosen = None if best is None else scored(best, sample, known)
    if chosen is None and rows:
        chosen = min(rows, key=lambda row: row.rmse)
    rows = _front(rows, chosen)
    solution = Solution(
        target=dataset.target_column.name,
        status="approximate" if chosen is not None else "none",
        best=chosen,
        pareto=tuple(rows),
        names=dataset.names,
        columns=tuple(column.name for column in dataset.columns),
        aliases=dataset.aliases,
        rows=dataset.rows,
        known_constants=known,
        seed=settings.seed,
        version=version(),
    )
    if chosen is None:
        return solution
    points = FitPoints(
        sample.target,
        np.asarray(evaluate(chosen.expression, sample.inputs), float),
        np.zeros(sample.rows, bool),
        dataset.rows,
        sample.inputs,
    )
    return replace(solution, fit_points=points)


def _front(rows: Sequence[Equation], chosen: Equation | None) -> list[Equation]:
    """The most accurate row of each complexity; the chosen one stands in place of its like."""
    found: dict[int, Equation] = {}
    for row in rows:
        if row.complexity not in found or row.rmse < found[row.complexity].rmse:
            found[row.complexity] = row
    if chosen is not None:
        found[chosen.complexity] = chosen
    return [found[size] for size in sorted(found)]


def scored(text: str, dataset: Dataset, known: Mapping[str, float]) -> Equation | None:
    """A formula with its errors on the rows; None where it has other names than the table."""
    try:
        expression = parse(text, dataset.names, dict(known))
    except (ExpressionSyntaxError, UsageError):
        return None
    return measured(expression, dataset)[0]
