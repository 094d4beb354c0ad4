"""The usual laws of one input that have a row in the Pareto table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from physdiffuser.core.archive import Entry, relative_loss
from physdiffuser.expressions import complexity, evaluate
from physdiffuser.expressions.tree import fitted_constants
from physdiffuser.finalize.finalists import same_function
from physdiffuser.fitting import refit
from physdiffuser.functions.standard_fits import standard_candidates
from physdiffuser.search.archive import ParetoArchive


def standard_entries(archive: ParetoArchive) -> list[Entry]:
    """The usual laws of a table with one input that belong into its Pareto table.

    These are the ones that no simpler formula of the archive and no other usual law as simple fits as well.
    The archive itself keeps one formula of a complexity and number of constants.
    """
    rows = archive.problem.all_rows
    entries = []
    for candidate in standard_candidates(archive.problem, archive.analysis):
        expression = candidate.expression
        if rows is not archive.problem:
            expression = refit(expression, rows.inputs, rows.target, weights=rows.weights).expression
            candidate = replace(candidate, expression=expression)
        loss = relative_loss(rows, evaluate(expression, rows.inputs))
        nats = archive.description_length.formula_nats(expression)
        cost = complexity(expression)
        if np.isfinite(loss) and cost <= rows.max_complexity and rows.satisfies(expression):
            entries.append(Entry(candidate, cost, loss, nats, fitted_constants(expression), loss))
    front = archive.front()
    return [
        entry
        for entry in entries
        if not any(
            other.loss <= entry.loss
            and other.complexity < entry.complexity
            and not same_function(entry, other)
            for other in front
        )
        and not any(
            other is not entry and other.loss <= entry.loss and other.complexity <= entry.complexity
            for other in entries
        )
    ]
