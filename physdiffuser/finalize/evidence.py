"""What speaks for the chosen law and against others: the figures that its probability is computed from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from physdiffuser.core.solution import Equation
from physdiffuser.expressions import Expression, complexity, evaluate
from physdiffuser.expressions.tree import fitted_constants
from physdiffuser.finalize.competitors import LARGEST_GAP, compare
from physdiffuser.finalize.finalize import Law
from physdiffuser.finalize.residual_structure import residual_structure
from physdiffuser.search.archive import ParetoArchive
from physdiffuser.selection.form_prior import usual_forms


@dataclass(frozen=True)
class LawEvidence:
    """Figures about the chosen law.

    Attributes
    ----------
    gap
        Nats by which the next formula with other predictions has a longer description; at most `LARGEST_GAP`.
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
    test_ratio
        Error on the test rows over that on all rows; 1 if there are none.
    structure
        Nats by which a smooth function of the inputs describes the residuals better than noise alone
        (`residual_structure`).
    posterior
        Nats of the weight of all formulas with other predictions relative to the law, each weighted by
        exp(-description length); small if the law stands alone.
    stability
        Share of bootstrap samples of the rows in which no formula with other predictions is shorter.
    """

    gap: float
    rivals: int
    explained: float
    noise: float
    rows: int
    constants: int
    complexity: int
    form: float
    test_ratio: float
    structure: float
    posterior: float
    stability: float


def law_evidence(law: Law, equation: Equation, archive: ParetoArchive) -> LawEvidence:
    """The figures of a chosen law.

    Parameters
    ----------
    law, equation
        The chosen one.
    archive
        Of the search that found it.
    """
    problem, found = archive.problem, compare(law.entry, archive)
    lengths_of = archive.description_length
    rows = problem.all_rows.rows
    loss = max(law.loss, lengths_of.floor)
    constants = fitted_constants(law.final)
    form = lengths_of.formula_nats(law.final) + constants * lengths_of.constant_nats
    ratio = 1.0
    if equation.held_out_rmse is not None and equation.rmse > 0:
        ratio = equation.held_out_rmse / equation.rmse
    return LawEvidence(
        gap=found.gap,
        rivals=found.rivals,
        explained=float(-0.5 * rows * np.log(loss) / max(form, 1.0)),
        noise=float(np.sqrt(loss)),
        rows=rows,
        constants=constants,
        complexity=complexity(law.final),
        form=usual_forms().nats(law.final, problem.columns) / complexity(law.final),
        test_ratio=float(min(ratio, 10.0)),
        structure=_structure(law.final, archive),
        posterior=found.posterior,
        stability=found.stability,
    )


def _structure(final: Expression, archive: ParetoArchive) -> float:
    rows = archive.problem.all_rows
    weights = 1.0 if rows.weights is None else np.sqrt(rows.weights)
    with np.errstate(all="ignore"):
        prediction = np.asarray(evaluate(final, rows.inputs)) + np.zeros(rows.rows)
        found = residual_structure(weights * (rows.target - prediction), rows.inputs, prediction)
    return float(np.clip(found, -LARGEST_GAP, LARGEST_GAP))
