"""Laws that describe the rows nearly as briefly as the chosen one, each once, however it is written.

A search finds the same function in many ways of writing, the more the longer it goes on. Three ways to write
a logistic curve are one rival.
"""

from __future__ import annotations

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.archive import Entry
from physdiffuser.expressions import Expression, Parameter, evaluate
from physdiffuser.expressions.simplification.canonical import canonical
from physdiffuser.expressions.tree import free_constants, substitute
from physdiffuser.finalize.constants.freed import with_freed_constants
from physdiffuser.search.archive import ParetoArchive

# Two formulas are the same law if their predictions differ by less than this share of the residuals.
SAME = 0.1
# Formulas that are longer by less than so many nats are rivals.
CLOSE = 10.0


@np.errstate(all="ignore")
def rivals(law: Entry, archive: ParetoArchive) -> list[Entry]:
    """Entries that are longer than a law by less than `CLOSE` nats, one for each function, shortest first.

    Only `ParetoArchive.competitors` count, and neither the law with other constants nor what predicts the
    same as it does.

    Parameters
    ----------
    law
        The chosen one.
    archive
        Of the search that found it.
    """
    problem = archive.problem
    roots = 1.0 if problem.weights is None else np.sqrt(problem.weights)

    def predicted(entry: Entry) -> FloatArray:
        return np.asarray(
            roots * (evaluate(entry.candidate.expression, problem.inputs) + np.zeros(problem.rows))
        )

    form, longest = _form(law.candidate.expression), archive.length(law) + CLOSE
    close = [entry for entry in archive.competitors if archive.length(entry) < longest]
    known = [predicted(law)]
    residual = roots * problem.target - known[0]
    scale = float(np.abs(residual).max()) or 1.0
    least = SAME**2 * np.square(residual / scale).mean()
    found: list[Entry] = []
    for entry in sorted(close, key=archive.length):
        values = predicted(entry)
        if all(np.square((values - other) / scale).mean() > least for other in known) and (
            _form(entry.candidate.expression) != form
        ):
            known.append(values)
            found.append(entry)
    return found


def _form(expression: Expression) -> Expression:
    """The formula with one parameter for all its constants."""
    skeleton = free_constants(with_freed_constants(expression))[0]
    return canonical(substitute(skeleton, lambda node: Parameter(0) if isinstance(node, Parameter) else None))
