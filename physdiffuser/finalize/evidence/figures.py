"""What speaks for the chosen law and against others: the figures that its probability is computed from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from physdiffuser.core.archive import Entry
from physdiffuser.expressions import Expression, complexity, evaluate
from physdiffuser.expressions.tree import fitted_constants
from physdiffuser.finalize.evidence.residual_structure import residual_structure
from physdiffuser.finalize.finalize import Law
from physdiffuser.search.archive import ParetoArchive
from physdiffuser.selection.form_prior import usual_forms

# Two formulas are the same law if their predictions differ by less than this share of the residuals.
SAME = 0.1
# Formulas that are longer by less than so many nats are rivals.
CLOSE = 10.0
# More nats than these say no more.
MOST_NATS = 30.0


@dataclass(frozen=True)
class LawEvidence:
    """Figures about the chosen law.

    Attributes
    ----------
    rivals
        Formulas with other predictions that are longer by less than 10 nats.
    explained
        Nats of the residuals that the law explains, over the nats of its form and constants.
    noise
        Standard deviation of the residuals relative to that of the target.
    rows, constants, complexity
        Of the table and the law.
    form
        Nats of the form among the laws that the form prior has counted, for each unit of complexity; small
        for usual laws.
    structure
        Nats by which a smooth function of the inputs describes the residuals better than noise alone
        (`residual_structure`).
    """

    rivals: int
    explained: float
    noise: float
    rows: int
    constants: int
    complexity: int
    form: float
    structure: float


def law_evidence(law: Law, archive: ParetoArchive) -> LawEvidence:
    """The figures of a chosen law.

    Parameters
    ----------
    law
        The chosen one.
    archive
        Of the search that found it.
    """
    problem = archive.problem
    entries = list(
        {entry.candidate.expression: entry for entry in (*archive.front(), *archive.near())}.values()
    )
    own = archive.length(law.entry)
    others = [entry for entry in entries if _differs(entry, law.entry.candidate.expression, archive)]
    lengths = [archive.length(entry) for entry in others]
    lengths_of = archive.description_length
    rows, constants = problem.all_rows.rows, fitted_constants(law.final)
    loss = max(law.loss, lengths_of.floor)
    form = lengths_of.formula_nats(law.final) + constants * lengths_of.constant_nats
    return LawEvidence(
        rivals=sum(length < own + CLOSE for length in lengths),
        explained=float(-0.5 * rows * np.log(loss) / max(form, 1.0)),
        noise=float(np.sqrt(loss)),
        rows=rows,
        constants=constants,
        complexity=complexity(law.final),
        form=usual_forms().nats(law.final, problem.columns) / complexity(law.final),
        structure=_structure(law.final, archive),
    )


def _structure(final: Expression, archive: ParetoArchive) -> float:
    rows = archive.problem.all_rows
    weights = 1.0 if rows.weights is None else np.sqrt(rows.weights)
    with np.errstate(all="ignore"):
        prediction = np.asarray(evaluate(final, rows.inputs)) + np.zeros(rows.rows)
        found = residual_structure(weights * (rows.target - prediction), rows.inputs, prediction)
    return float(np.clip(found, -MOST_NATS, MOST_NATS))


def _differs(entry: Entry, chosen: Expression, archive: ParetoArchive) -> bool:
    problem = archive.problem
    weights = 1.0 if problem.weights is None else np.sqrt(problem.weights)
    with np.errstate(all="ignore"):
        mine, other = (evaluate(form, problem.inputs) for form in (chosen, entry.candidate.expression))
        apart = np.asarray(weights * (mine - other))
        left = np.asarray(weights * (problem.target - mine))
        scale = float(np.abs(left).max()) or 1.0
        return bool(np.square(apart / scale).mean() > SAME**2 * np.square(left / scale).mean())
