"""Which constraints the formulas of all groups satisfy, and whether the table contradicts them."""

from __future__ import annotations

from collections.abc import Sequence

from physdiffuser.core.problem import Rules
from physdiffuser.core.solution_parts.constraint_status import ConstraintStatus
from physdiffuser.expressions.tree import bind
from physdiffuser.finalize.constraint_report import statuses_of
from physdiffuser.groups.selection import GroupSelection


def constraints_of_groups(
    rules: Rules | None, selection: GroupSelection, names: Sequence[str]
) -> tuple[tuple[ConstraintStatus, ...], tuple[str, ...]]:
    """The status of each constraint for the best law, that of the group with the worst, and warnings."""
    best, other = selection.best, selection.violating
    if best is None:
        return (), ()
    formulas = [bind(best.fit.skeleton, own.tolist()) for own in best.fit.parameters.T]
    return statuses_of(rules, formulas, names, 0.0 if other is None else best.length - other.length)
