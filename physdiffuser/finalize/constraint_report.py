"""Which constraints the chosen law satisfies, and whether the table contradicts them."""

from __future__ import annotations

from physdiffuser.core.solution import Equation
from physdiffuser.core.solution_parts.constraint_status import ConstraintStatus
from physdiffuser.expressions import to_text
from physdiffuser.search.archive import ParetoArchive
from physdiffuser.search.table_search import Found

# A table contradicts the constraints if a formula that violates them is shorter by so many nats.
CONTRADICTS = 12.0
NONE_HOLDS = "no formula that satisfies all constraints was found: the law shown violates one"


def constraint_report(best: Equation, found: Found) -> tuple[tuple[ConstraintStatus, ...], tuple[str, ...]]:
    """The status of each constraint, and warnings.

    Parameters
    ----------
    best
        The chosen law.
    found
        What the search has left.
    """
    rules = found.problem.rules
    if rules is None:
        return (), ()
    names = found.dataset.names
    statuses = rules.statuses(best.expression, names)
    if any(one.state == "violated" for one in statuses):
        return statuses, (NONE_HOLDS,)
    contradiction = _contradiction(found.result.archive, names)
    return statuses, () if contradiction is None else (contradiction,)


def _contradiction(archive: ParetoArchive, names: tuple[str, ...]) -> str | None:
    """A warning if the description by a formula that violates a constraint is much shorter."""
    if archive.violating is None:
        return None
    other = min(archive.violating.front(), key=archive.violating.length, default=None)
    own = min((archive.length(entry) for entry in archive.front()), default=float("inf"))
    if other is None:
        return None
    gain = own - archive.violating.length(other)
    if gain < CONTRADICTS:
        return None
    text = to_text(other.candidate.expression, names, 4)
    return (
        f"the table contradicts the constraints: {text}, which violates one, describes it in {gain:.0f} nats "
        "less. Check the constraints and the table"
    )
