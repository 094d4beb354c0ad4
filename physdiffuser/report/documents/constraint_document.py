"""The constraints on a law in the JSON document, both ways."""

from __future__ import annotations

from typing import Any, TypeAlias

from physdiffuser.core.solution import Solution
from physdiffuser.core.solution_parts.constraint_status import ConstraintStatus
from physdiffuser.report.documents.document_reader import Reader

Json: TypeAlias = dict[str, Any]


def constraints_document(solution: Solution) -> Json:
    """The key `constraints`, where there are any."""
    if not solution.constraints:
        return {}
    return {
        "constraints": [
            {
                "constraint": one.text,
                "state": one.state,
                "points": one.points,
                "at": None if one.at is None else dict(one.at),
            }
            for one in solution.constraints
        ]
    }


def read_constraint_statuses(reader: Reader) -> tuple[ConstraintStatus, ...]:
    """The constraints of a document."""
    return tuple(
        ConstraintStatus(
            row.text("constraint"),
            row.one_of("state", ("proved", "holds", "violated")),
            row.integer("points"),
            _place(row),
        )
        for row in reader.rows("constraints")
    )


def _place(row: Reader) -> dict[str, float] | None:
    if row.optional("at") is None:
        return None
    return {name: value for name, value in row.numbers("at").items() if value is not None}
