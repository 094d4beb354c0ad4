"""The constants of a peer's answer, refitted and snapped as those of our own answers are."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from benchmarks_feynman.sampling import Table
from benchmarks_feynman.systems.answer import Answer
from physdiffuser.expressions import Expression, evaluate, to_text
from physdiffuser.expressions.simplification.canonical import canonical
from physdiffuser.fitting import refit
from physdiffuser.fitting.accuracy import agrees
from physdiffuser.fitting.exact_constants.snapping import snap

_CLAIM = 1e-9
# Seconds, after which no further constant is tried: answers of peers may have dozens.
_LIMIT = 5.0


def snapped(answer: Answer, table: Table, expression: Expression) -> Answer:
    """The answer with its constants refitted to the table, exact where the table cannot tell the difference.

    The time it takes is added, and the peer's own formula kept in the details. Refitting comes first because
    some peers compute in single precision, which no exact form would survive.
    """
    started = time.process_time()
    rows = (table.inputs, table.target)
    ranges = list(zip(table.inputs.min(axis=0).tolist(), table.inputs.max(axis=0).tolist(), strict=True))
    # The canonical form folds products of constants, which would be tied in a fit.
    fitted = refit(canonical(expression, ranges=ranges), *rows).expression
    late = started + _LIMIT
    exact = snap(fitted, *rows, rng=np.random.default_rng(0), stop=lambda: time.process_time() > late)
    found = canonical(exact.expression, ranges=ranges)
    claimed = agrees(found, *rows, evaluate(found, table.inputs), _CLAIM).all()
    details = {**answer.details, "before_snapping": to_text(expression, table.names)}
    seconds = answer.seconds + time.process_time() - started
    status = "exact" if claimed else answer.status
    return replace(answer, expression=found, seconds=seconds, details=details, status=status)
