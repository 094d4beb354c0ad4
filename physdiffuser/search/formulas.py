"""The formulas that a search of one table finds, for solvers that search several tables for one answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from physdiffuser.data.dataset import Dataset
from physdiffuser.expressions import Expression
from physdiffuser.options import SolveOptions
from physdiffuser.search.run_control import RunControl
from physdiffuser.search.table_search import pose_table, prepare, search_table
from physdiffuser.search.timing import TimeLimit

# Share of the time for the searches; the rest is for fits of their formulas together.
SEARCH_SHARE = 0.7


def search_formulas(
    table: Dataset, known: Sequence[str], share: float, options: SolveOptions, control: RunControl
) -> Sequence[Expression]:
    """The formulas that a search of one table finds; the shortest descriptions first.

    Parameters
    ----------
    table
        What is searched, without units.
    share
        Of the time and the steps in `options`.
    """
    if control.over():
        return ()
    now = control.clock()
    time = None
    if options.time_limit is not None:
        time = min(options.time_limit * SEARCH_SHARE * share, control.limit.search_until - now)
    steps = None if options.steps is None else max(1, int(options.steps * share))
    own = options.changed(time=time, steps=steps, initial=(), resumed=known)
    own = own.changed(units=None, units_row=False, constraints=None)
    limit = TimeLimit(own.time_limit, now, 0.0)
    part = replace(control, limit=limit, started=now, on_progress=None)
    found = search_table(prepare(pose_table(table, own, part), own, part), own, part)
    archive = found.result.archive
    entries = {entry.candidate.expression: entry for entry in (*archive.front(), *archive.near())}
    return sorted(entries, key=lambda formula: archive.length(entries[formula]))
