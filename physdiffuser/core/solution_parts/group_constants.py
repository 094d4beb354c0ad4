"""Constants that differ from group to group: their names, and the columns that hold them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from physdiffuser.arrays import FloatArray, IndexArray
from physdiffuser.errors import DataError
from physdiffuser.io.display import listed, visible

if TYPE_CHECKING:
    from physdiffuser.core.solution import ConstantEstimate


@dataclass(frozen=True)
class GroupNames:
    """The groups of a table, and the names of the constants that they have of their own.

    Formulas hold such a constant as a further column: the variables of a formula are the columns of the table
    and, after them, these constants.

    Attributes
    ----------
    columns
        Names of the columns that define the groups.
    labels
        The groups: their values in these columns, joined by `, `.
    constants
        `p1`, `p2`, ...; a formula need not hold all of them.
    """

    columns: tuple[str, ...]
    labels: tuple[str, ...]
    constants: tuple[str, ...]

    def codes(self, labels: Sequence[str]) -> IndexArray:
        """The position of each row's group, shape (rows,); -1 for an empty label, which is a missing value.

        Raises
        ------
        DataError
            If a group is not one of those that were fitted.
        """
        position = {label: code for code, label in enumerate(self.labels)} | {"": -1}
        for label in dict.fromkeys(labels):
            if label not in position:
                raise DataError(
                    f"the group '{visible(label)}' of {', '.join(map(visible, self.columns))} was not in the "
                    "table that was solved, so its constants are not known. Known groups: "
                    f"{listed(list(self.labels), 20)}."
                )
        return np.array([position[label] for label in labels], dtype=np.intp)


def with_group_constants(
    inputs: FloatArray,
    groups: Mapping[str, tuple[ConstantEstimate, ...]],
    named: GroupNames,
    codes: IndexArray,
) -> FloatArray:
    """The inputs with the constants of each row's group in their columns.

    Parameters
    ----------
    inputs
        Shape (rows, columns and constants); the last columns are replaced.
    groups
        The constants of a formula, by label (`Equation.groups`).
    named
        All groups.
    codes
        Shape (rows,); nan where -1.
    """
    table = np.array(inputs, dtype=np.float64)
    first = table.shape[1] - len(named.constants)
    for number, name in enumerate(named.constants):
        values = [
            next((one.value for one in groups.get(label, ()) if one.name == name), np.nan)
            for label in named.labels
        ]
        table[:, first + number] = np.array([*values, np.nan])[codes]
    return table
