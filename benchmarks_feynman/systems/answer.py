"""What a system gives back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from physdiffuser.errors import DataError
from physdiffuser.expressions import Expression, Variable
from physdiffuser.expressions.tree import substitute


@dataclass(frozen=True)
class Answer:
    """A formula and how long it took.

    Attributes
    ----------
    status
        What the system says of it: `exact`, `approximate` or `none`.
    expression
        Over the table's columns; None when nothing was found.
    seconds
        Wall time, measured around the system's own work.
    details
        Whatever else the system tells (generator, verdict, phases of its time), as plain data.
    """

    status: str
    expression: Expression | None
    seconds: float
    details: dict[str, Any] = field(default_factory=dict)


def onto_columns(expression: Expression, used: Sequence[str], columns: Sequence[str]) -> Expression:
    """A formula over the columns `used`, in their order, as one over all `columns` of the table.

    Raises
    ------
    DataError
        If it uses a column that the table does not have.
    """
    place = {name: index for index, name in enumerate(columns)}
    missing = [name for name in used if name not in place]
    if missing:
        raise DataError(f"the answer speaks of a column {missing[0]!a}; the table has {', '.join(columns)}")

    def replace(node: Expression) -> Expression | None:
        return Variable(place[used[node.index]]) if isinstance(node, Variable) else None

    return substitute(expression, replace)
