"""Formulas of a run as a `Solution` with the rows of its table, from which laws and charts are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from physdiffuser.app.formulas import Scored, fitted, saved
from physdiffuser.app.jobs import Run, SavedFront
from physdiffuser.app.settings import Settings
from physdiffuser.app.tables import dataset_of
from physdiffuser.arrays import FloatArray
from physdiffuser.core.solution import Equation, FitPoints, Solution, sample_fit_points
from physdiffuser.core.solution_parts.fit_rows import FitRows
from physdiffuser.core.solution_parts.group_constants import GroupNames
from physdiffuser.data.dataset import Dataset
from physdiffuser.data.statements.constants import parse_constants
from physdiffuser.errors import DataError, UsageError
from physdiffuser.expressions import evaluate
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
    settings = run.record.settings
    table = Path(run.record.table)
    if not run.has_result:
        front = run.saved_front()
        if not front.front and not front.best:
            return None
        return interim(dataset_of(table, settings), front, settings)
    solution = load_solution(run.folder)
    return with_rows(solution, dataset_of(table, settings))


def pinned(run: Run, solution: Solution, text: str) -> Scored | None:
    """A formula of the user, fitted to (a sample of) the rows; None where that is not possible.

    The rows count as they do for the formulas of the search, as far as the solution says how.
    """
    key = (text, run.has_result)
    if key not in run.fitted:
        settings = run.record.settings
        dataset = _as_weighted(dataset_of(Path(run.record.table), settings), solution.fit_rows)
        known = known_constants(settings, dataset)
        try:
            run.fitted[key] = fitted(text, dataset.sample(_MOST_ROWS), known, settings.seed)
        except UsageError:
            run.fitted[key] = None
    return run.fitted[key]


def _as_weighted(dataset: Dataset, rows: FitRows | None) -> Dataset:
    """The table without the rows that the search left out, and with its weights."""
    if rows is None:
        return dataset
    numbers = np.arange(dataset.rows) if dataset.row_numbers is None else dataset.row_numbers
    kept = dataset.take(np.flatnonzero(~np.isin(numbers + 1, rows.left_out)))
    if rows.weights is None or len(rows.weights) != kept.rows:
        return kept
    return replace(kept, weights=np.array(rows.weights))


def with_rows(solution: Solution, dataset: Dataset) -> Solution:
    """A solution that was read from a file, with the rows that charts show."""
    if solution.best is None or solution.columns[: len(dataset.columns)] != tuple(
        column.name for column in dataset.columns
    ):
        return solution
    inputs, codes = dataset.inputs, None
    if solution.groups is not None:
        if dataset.groups is None:
            return solution
        # The document may have the groups in another order.
        try:
            places = solution.groups.codes(dataset.groups.labels)
        except DataError:
            return solution
        codes = places[dataset.groups.codes]
        inputs = _with_empty_columns(inputs, solution.groups)
    rows = np.zeros(dataset.rows)
    points = sample_fit_points(dataset.target, rows, rows.astype(bool), inputs=inputs, codes=codes)
    return _predicted(replace(solution, fit_points=points), solution.best)


def interim(dataset: Dataset, front: SavedFront, settings: Settings) -> Solution:
    """The formulas of a search that goes on, scored on (a sample of) the rows."""
    known = known_constants(settings, dataset)
    sample = dataset.sample(_MOST_ROWS)
    found = [
        (text, one) for text, own in front.formulas() if (one := saved(text, own, sample, known)) is not None
    ]
    chosen = next((one.equation for text, one in found if text == front.best), None)
    if chosen is None and front.best and dataset.groups is None:
        one = saved(front.best, {}, sample, known)
        chosen = None if one is None else one.equation
    if chosen is None and found:
        chosen = min((one.equation for _, one in found), key=lambda row: row.rmse)
    named = max((one.groups for _, one in found if one.groups), key=lambda g: len(g.constants), default=None)
    own = () if named is None else named.constants
    solution = Solution(
        target=dataset.target_column.name,
        status="approximate" if chosen is not None else "none",
        best=chosen,
        pareto=tuple(_front([one.equation for _, one in found], chosen)),
        names=(*dataset.names, *own),
        columns=(*(column.name for column in dataset.columns), *own),
        aliases=dataset.aliases,
        rows=dataset.rows,
        known_constants=known,
        seed=settings.seed,
        version=version(),
        groups=named,
    )
    if chosen is None:
        return solution
    inputs = sample.inputs if named is None else _with_empty_columns(sample.inputs, named)
    codes = None if sample.groups is None else sample.groups.codes
    points = FitPoints(
        sample.target, np.zeros(sample.rows), np.zeros(sample.rows, bool), dataset.rows, inputs, codes
    )
    return _predicted(replace(solution, fit_points=points), chosen)


def _with_empty_columns(inputs: FloatArray, named: GroupNames) -> FloatArray:
    """Inputs with columns for the constants of the groups, which each formula fills with its own."""
    return np.concatenate([inputs, np.full((len(inputs), len(named.constants)), np.nan)], axis=1)


def _predicted(solution: Solution, law: Equation) -> Solution:
    """The solution with the predictions of a law."""
    points, inputs = solution.fit_points, solution.inputs_for(law)
    assert points is not None and inputs is not None  # the points have inputs
    values = np.asarray(evaluate(law.expression, inputs), float)
    return replace(solution, fit_points=replace(points, prediction=values))


def _front(rows: Sequence[Equation], chosen: Equation | None) -> list[Equation]:
    """The most accurate row of each complexity; the chosen one stands in place of its like."""
    found: dict[int, Equation] = {}
    for row in rows:
        if row.complexity not in found or row.rmse < found[row.complexity].rmse:
            found[row.complexity] = row
    if chosen is not None:
        found[chosen.complexity] = chosen
    return [found[size] for size in sorted(found)]
