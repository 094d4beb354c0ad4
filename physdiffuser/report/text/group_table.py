"""The constants of the groups as a table: for the terminal, the page and the heads of exported code."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.solution import ConstantEstimate, Equation, Solution
from physdiffuser.core.solution_parts.group_constants import with_group_constants
from physdiffuser.errors import DataError
from physdiffuser.expressions import Number
from physdiffuser.expressions.tree import walk
from physdiffuser.io.display import visible
from physdiffuser.report.text.digits import half_width, short, with_uncertainty
from physdiffuser.report.text.style import Style
from physdiffuser.report.text.tables import TextTable, table_lines

_LABEL = 60


def group_head(solution: Solution, equation: Equation) -> tuple[str, ...]:
    """Names of the columns of `group_rows`; empty for a formula without constants of the groups."""
    if solution.groups is None or not any(equation.groups.values()):
        return ()
    first = next(iter(equation.groups.values()))
    return (visible(", ".join(solution.groups.columns), _LABEL), *(one.name for one in first))


def group_rows(equation: Equation) -> list[tuple[str, ...]]:
    """Label and constants of each group, as text with half the 95 % interval."""
    return [
        (visible(label, _LABEL), *(_text(one) for one in constants))
        for label, constants in equation.groups.items()
    ]


def _text(constant: ConstantEstimate) -> str:
    width = half_width(constant)
    if width is None:
        return short(constant.value, 6)
    return " ± ".join(with_uncertainty(constant.value, width))


def group_lines(solution: Solution, equation: Equation, style: Style) -> list[str]:
    """The table as lines of aligned text; no lines for a formula without constants of the groups."""
    head = group_head(solution, equation)
    if not head:
        return []
    sign = style.sign("±", "+/-")
    rows = [tuple(cell.replace("±", sign) for cell in row) for row in group_rows(equation)]
    return table_lines(TextTable(head, rows, left=range(len(head))), style)


def shared_constants(solution: Solution, equation: Equation) -> str:
    """A sentence: which constants are shared, and which differ by group."""
    assert solution.groups is not None  # only for tables with groups
    own = [one.name for one in next(iter(equation.groups.values()), ())]
    by = ", ".join(visible(name, _LABEL) for name in solution.groups.columns)
    others = any(isinstance(node, Number) for node in walk(equation.expression))
    if not own:
        return f"no constant differs by {by}"
    return (
        f"{', '.join(own)} {'differs' if len(own) == 1 else 'differ'} by {by}"
        f"{'; all other numbers are shared' if others else ''}"
    )


def inputs_with_groups(
    solution: Solution, equation: Equation, inputs: FloatArray, labels: Sequence[str]
) -> FloatArray:
    """Inputs of a formula with the constants of each row's group.

    Parameters
    ----------
    inputs
        Shape (rows, columns of the table), or with the constants' columns after them.
    labels
        The group of each row; empty where it is missing.

    Raises
    ------
    DataError
        If a group is not one of those that were fitted, or the number of labels does not fit.
    """
    named = solution.groups
    assert named is not None  # only for tables with groups
    if len(labels) != len(inputs):
        raise DataError(f"{len(labels)} groups for {len(inputs)} rows: one for each row is needed")
    missing = len(solution.names) - inputs.shape[1]
    table = np.concatenate([inputs, np.full((len(inputs), missing), np.nan)], axis=1)
    return with_group_constants(table, equation.groups, named, named.codes(labels))
