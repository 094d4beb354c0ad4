"""Which constraints the formulas of all groups satisfy, and whether the table contradicts them."""

from __future__ import annotations

from collections.abc import Sequence

from physdiffuser.core.problem import Rules
from physdiffuser.core.solution_parts.constraint_status import ConstraintStatus
from physdiffuser.expressions.tree import bind
from physdiffuser.finalize.constraint_report import CONTRADICTS, NONE_HOLDS
from physdiffuser.groups.selection import GroupSelection

_STATES = ("violated", "holds", "proved")


def constraints_of_groups(
    rules: Rules | None, selection: GroupSelection, names: Sequence[str]
) -> tuple[tuple[ConstraintStatus, ...], tuple[str, ...]]:
    """The status of each constraint for the best law, that of the group with the worst, and warnings."""
    best, other = selection.best, selection.violating
    if rules is None or best is None:
        return (), ()
    formulas = [bind(best.fit.skeleton, own.tolist()) for own in best.fit.parameters.T]
    of_groups = zip(*(rules.statuses(formula, names) for formula in formulas), strict=True)
    statuses = tuple(min(some, key=lambda one: _STATES.index(one.state)) for some in of_groups)
    if any(one.state == "violated" for one in statuses):
        return statuses, (NONE_HOLDS,)
    gain = 0.0 if other is None else best.length - other.length
    if gain < CONTRADICTS:
        return statuses, ()
    return statuses, (
        f"the table contradicts the constraints: a law that violates one describes it in {gain:.0f} nats "
        "less. Check the constraints and the table",
    )
