"""What speaks for the chosen law and against others: the figures that its probability is computed from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.archive import Entry
from physdiffuser.expressions import Expression, Parameter, complexity, evaluate
from physdiffuser.expressions.simplification.canonical import canonical
from physdiffuser.expressions.tree import fitted_constants, free_constants, substitute, variables
from physdiffuser.finalize.constants.freed import with_freed_constants
from physdiffuser.finalize.finalize import Law
from physdiffuser.search.archive import ParetoArchive
from physdiffuser.selection.misfit import misfit
from physdiffuser.selection.residual_structure import residual_structure
from physdiffuser.selection.standard_code import usual_nats


@dataclass(frozen=True)
class EvidenceFigurePolicy:
    """Limits of the figures from which the probability is computed.

    Set on development tables (docs/calibration.md).

    Attributes
    ----------
    max_nats
        Differences in nats beyond this count as this.
    same
        Two formulas are the same law if their predictions differ by less than this share of the
        residuals.
    close
        Formulas that are longer by less than so many nats are rivals.
    """

    max_nats: float = 30.0
    same: float = 0.1
    close: float = 10.0


POLICY = EvidenceFigurePolicy()


@dataclass(frozen=True)
class LawEvidence:
    """Figures about the chosen law.

    Attributes
    ----------
    rivals
        How many formulas are longer by less than 10 nats (`physdiffuser.finalize.evidence.figures`).
    explained
        Nats of the residuals that the law explains, over the nats of its form and constants.
    noise
        Standard deviation of the residuals relative to that of the target.
    rows, complexity
        Of the table and the law.
    constants
        Its fitted constants, without those that agree with a special value: such a value is hardly met by
        chance, whether or not it lies near enough for the constant to be set to it.
    form
        Nats of the form among the laws that the form prior has counted, for each unit of complexity; small
        for usual laws.
    structure
        Nats by which a smooth function of the inputs describes the residuals better than noise alone
        (`residual_structure`).
    misfit
        Nats with which small changes of the law fit the rows better (`physdiffuser.selection.misfit`).
    columns
        How many columns it holds: a wrong formula of several is hardly met by chance.
    """

    rivals: int
    explained: float
    noise: float
    rows: int
    constants: int
    complexity: int
    form: float
    structure: float
    misfit: float
    columns: int


def law_evidence(law: Law, archive: ParetoArchive, agreeing: int = 0) -> LawEvidence:
    """The figures of a chosen law.

    Parameters
    ----------
    law
        The chosen one.
    archive
        Of the search that found it.
    agreeing
        How many of its fitted constants agree with a special value (`ConstantEstimate.agrees_with`).
    """
    problem = archive.problem
    lengths_of = archive.description_length
    rows, constants = problem.all_rows.rows, max(fitted_constants(law.final) - agreeing, 0)
    loss = max(law.loss, lengths_of.floor)
    form = lengths_of.formula_nats(law.final) + constants * lengths_of.constant_nats
    return LawEvidence(
        rivals=len(rivals(law.entry, archive)),
        explained=float(-0.5 * rows * np.log(loss) / max(form, 1.0)),
        noise=float(np.sqrt(loss)),
        rows=rows,
        constants=constants,
        complexity=complexity(law.final),
        # However it is written: a usual law is known by its fitted form, a textbook writes it otherwise.
        form=min(usual_nats(formula, problem.columns) for formula in (law.final, law.fitted))
        / complexity(law.final),
        structure=_structure(law.final, archive),
        misfit=min(misfit(law.final, problem.all_rows).nats, POLICY.max_nats),
        columns=len(variables(law.final)),
    )


def _structure(final: Expression, archive: ParetoArchive) -> float:
    rows = archive.problem.all_rows
    weights = 1.0 if rows.weights is None else np.sqrt(rows.weights)
    with np.errstate(all="ignore"):
        prediction = np.asarray(evaluate(final, rows.inputs)) + np.zeros(rows.rows)
        found = residual_structure(weights * (rows.target - prediction), rows.inputs, prediction)
    return float(np.clip(found, -POLICY.max_nats, POLICY.max_nats))


@np.errstate(all="ignore")
def rivals(law: Entry, archive: ParetoArchive) -> list[Entry]:
    """Entries that are a few nats longer than a law (`POLICY.close`), one for each function, shortest first.

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

    form, longest = _form(law.candidate.expression), archive.length(law) + POLICY.close
    close = [entry for entry in archive.competitors if archive.length(entry) < longest]
    known = [predicted(law)]
    residual = roots * problem.target - known[0]
    scale = float(np.abs(residual).max()) or 1.0
    least = POLICY.same**2 * np.square(residual / scale).mean()
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
