"""The score of an answer to a measured table: against the law of the field, and against its own claims."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks_feynman.judge import unjudged
from benchmarks_feynman.measured.claims import check_claims
from benchmarks_feynman.measured.descriptions import Description, describe_answer, describe_law
from benchmarks_feynman.measured.independent import PrintedFormula, left_out_errors
from benchmarks_feynman.measured_tables import MeasuredTable, measured_table
from benchmarks_feynman.suites import Law
from physdiffuser.expressions import Expression, to_text
from physdiffuser.expressions.tree import Number, walk

# Nats by which the description by an answer may be longer: odds below e to 1 say nothing.
AS_GOOD_NATS = 1.0
# Formulas whose predictions differ by less than this share of the residuals are the same law.
SAME = 0.01
# Folds of the left-out errors; smaller tables leave out each row.
FOLDS = 60

Score = dict[str, Any]


def score(law: Law, answer: Expression | None, status: str, details: Mapping[str, Any]) -> Score:
    """Score one answer.

    Parameters
    ----------
    law
        Of the suite `measured`.
    answer
        Over the table's columns; None when the system found nothing.
    status, details
        Of the answer; `document` among the details lets the claims be checked.

    Returns
    -------
    dict
        The entries of `judge`; `recovered` says that the answer is as good as the law, `form` that it is
        the same function, `confident_wrong` that it is verified and worse.
    """
    table = measured_table(law.id)
    truth = describe_law(table)
    record = unjudged(law) | {"truth_complexity": truth.complexity}
    measured: Score = {
        "law": _facts(truth, table),
        "answer": None,
        "as_good": False,
        "identical": False,
        "verdict": details.get("verdict"),
        "kind": table.kind,
        "claims": {},
    }
    if answer is None:
        return record | {"measured": measured}
    found = describe_answer(answer, table)
    identical = _same(found, truth, table)
    as_good = identical or found.nats <= truth.nats + AS_GOOD_NATS
    measured |= {
        "answer": _facts(found, table, truth.weights),
        "as_good": as_good,
        "identical": identical,
        "length_difference": _plain(found.nats - truth.nats),
    }
    if "document" in details:
        measured["claims"] = check_claims(details["document"], table.inputs, table.target)
    left = table.target - found.prediction
    spread = float(np.square(table.target - table.target.mean()).mean())
    verified = status == "exact" or details.get("verdict") == "verified"
    return record | {
        "complexity": found.complexity,
        "r2_test": _plain(1.0 - float(np.square(left).mean()) / spread),
        "recovered": as_good,
        "form": identical,
        "confident_wrong": verified and not as_good,
        "measured": measured,
    }


def _facts(found: Description, table: MeasuredTable, weights: Any = None) -> Score:
    """What is known of a fitted formula; errors on rows left out under the weights of the law."""
    weights = found.weights if weights is None else weights
    fitted = [
        float(node.value) for node in walk(found.expression) if isinstance(node, Number) and not node.exact
    ]
    text = to_text(found.expression, table.names)
    errors = left_out_errors(
        PrintedFormula.read(text, table.names, fitted), table.inputs, table.target, weights, FOLDS
    )
    with np.errstate(all="ignore"):
        left_out = float(np.sqrt(np.average(np.square(errors), weights=weights)))
    return {
        "expression": text,
        "nats": _plain(found.nats),
        "noise_model": found.kind,
        "left_out_rmse": _plain(left_out),
        "complexity": found.complexity,
        "constants": found.constants,
    }


def _same(found: Description, truth: Description, table: MeasuredTable) -> bool:
    apart = np.square(found.prediction - truth.prediction) * truth.weights
    left = np.square(table.target - truth.prediction) * truth.weights
    return bool(found.constants <= truth.constants and apart.mean() <= SAME**2 * left.mean())


def _plain(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
