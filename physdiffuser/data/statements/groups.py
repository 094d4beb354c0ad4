"""Which group each row of a table belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from physdiffuser.arrays import BoolArray, IndexArray
from physdiffuser.data.labels import number_label, text_label
from physdiffuser.errors import DataError

if TYPE_CHECKING:
    from physdiffuser.data.dataset import Dataset


def group_texts(values: object) -> list[str]:
    """The group of each row as text, as tables of files have it: `1.0` is `1`; empty where missing."""
    texts = []
    for value in np.asarray(values, dtype=object).ravel():
        number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        missing = value is None or (number and value != value)
        texts.append("" if missing else number_label(value) if number else text_label(str(value)))
    return texts


@dataclass(frozen=True, eq=False)
class Groups:
    """The groups of a table's rows.

    Attributes
    ----------
    columns
        Names of the columns that define them.
    labels
        Each group's values in these columns, as text, joined by `, `.
    codes
        Shape (rows,): the position in `labels` of each row's group.
    """

    columns: tuple[str, ...]
    labels: tuple[str, ...]
    codes: IndexArray

    @classmethod
    def of(cls, columns: Sequence[str], values: Sequence[Sequence[str]]) -> Groups:
        """The groups that some columns define, in the order in which they first occur.

        Parameters
        ----------
        values
            For each column one text per row.
        """
        texts = [", ".join(parts) for parts in zip(*values, strict=True)]
        position: dict[str, int] = {}
        codes = np.array([position.setdefault(text, len(position)) for text in texts], dtype=np.intp)
        return cls(tuple(columns), tuple(position), codes)

    def take(self, rows: IndexArray | BoolArray) -> Groups:
        """The groups of some rows; those without any rows are left out."""
        codes = self.codes[rows]
        kept = np.unique(codes)
        return Groups(self.columns, tuple(self.labels[code] for code in kept), np.searchsorted(kept, codes))


def with_groups(dataset: Dataset, values: object, rows: int) -> Dataset:
    """A dataset made of arrays, with the group of each row.

    Parameters
    ----------
    values
        Shape (rows,), text or numbers; a Series gives the groups its name.
    rows
        Rows of the arrays, of which the dataset may have fewer (`Dataset.row_numbers`).

    Raises
    ------
    DataError
        If there is not one group for each row.
    """
    texts = group_texts(values)
    if len(texts) != rows:
        raise DataError(f"groups has {len(texts)} values for {rows} rows; expected one for each row of X.")
    if "" in texts:
        raise DataError(
            f"groups: row {texts.index('') + 1} has no group. Leave the row out, or name its group."
        )
    name = getattr(values, "name", None)
    kept = range(rows) if dataset.row_numbers is None else dataset.row_numbers.tolist()
    column = name if isinstance(name, str) and name else "group"
    return replace(dataset, groups=Groups.of([column], [[texts[row] for row in kept]]))
