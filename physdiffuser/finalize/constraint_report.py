"""Which constraints the chosen law satisfies, and whether the table contradicts them."""

from __future__ import annotations

from collections.abc import Sequence

from physdiffuser.core.problem import Rules
from physdiffuser.core.solution import Equation
from physdiffuser.core.solution_parts.constraint_status import ConstraintStatus
from physdiffuser.expressions import Expression, to_text
from physdiffuser.search.table_search import Found

# A table contradicts the constraints if a formula that violates them is shorter by so many nats.
CONTRADICTS = 12.0
NONE_HOLDS = "no formula that satisfies all constraints was found: the law shown violates one"


_STATES = ("violated", "holds", "proved")


def constraint_report(best: Equation, found: Found) -> tuple[tuple[ConstraintStatus, ...], tuple[str, ...]]:
    """The status of each constraint, and warnings.

    Parameters
    ----------
    best
        The chosen law.
    found
        What the search has left.
    """
    names, archive = found.dataset.names, found.result.archive
    other = None
    if archive.violating is not None:
        other = min(archive.violating.front(), key=archive.violating.length, default=None)
    if archive.violating is None or other is None:
        return statuses_of(found.problem.rules, [best.expression], names)
    own = min((archive.length(entry) for entry in archive.front()), default=float("inf"))
    text = f"{to_text(other.candidate.expression, names, 4)}, which violates one,"
    gain = own - archive.violating.length(other)
    return statuses_of(found.problem.rules, [best.expression], names, gain, text)


def statuses_of(
    rules: Rules | None,
    formulas: Sequence[Expression],
    names: Sequence[str],
    gain: float = 0.0,
    other: str = "a law that violates one",
) -> tuple[tuple[ConstraintStatus, ...], tuple[str, ...]]:
    """The status of each constraint, that of the formula with the worst, and warnings.

    Parameters
    ----------
    formulas
        The law, or that of each group.
    gain
        Nats by which a formula that violates a constraint is shorter.
    other
        That formula, for the warning.
    """
    if rules is None:
        return (), ()
    of_formulas = zip(*(rules.statuses(formula, tuple(names)) for formula in formulas), strict=True)
    statuses = tuple(min(some, key=lambda one: _STATES.index(one.state)) for some in of_formulas)
    if any(one.state == "violated" for one in statuses):
        return statuses, (NONE_HOLDS,)
    if gain < CONTRADICTS:
        return statuses, ()
    return statuses, (
        f"the table contradicts the constraints: {other} describes it in {gain:.0f} nats less. "
        "Check the constraints and the table",
    )
