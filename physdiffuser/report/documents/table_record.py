"""Which table a run belongs to, so that no other run goes on from its formulas."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from physdiffuser.data.dataset import Dataset
from physdiffuser.io.display import listed, visible
from physdiffuser.report.documents.document_reader import Reader


@dataclass(frozen=True)
class TableRecord:
    """What identifies a table.

    Attributes
    ----------
    target, inputs
        Names of the columns.
    rows
        Number of rows that were used; None when it was not stored.
    sha256
        Of the values, column by column; None when it was not stored.
    """

    target: str
    inputs: tuple[str, ...]
    rows: int | None = None
    sha256: str | None = None

    @classmethod
    def of(cls, dataset: Dataset) -> TableRecord:
        """The record of a table."""
        digest = hashlib.sha256()
        for values in (*dataset.inputs.T, dataset.target):
            digest.update(np.ascontiguousarray(values, "<f8").data)
        return cls(
            dataset.target_column.name,
            tuple(column.name for column in dataset.columns),
            dataset.rows,
            digest.hexdigest(),
        )

    @classmethod
    def read(cls, reader: Reader) -> TableRecord:
        """The record as `to_json` wrote it.

        Raises
        ------
        DataError
            If it is damaged.
        """
        return cls(
            reader.text("target"), reader.texts("inputs"), reader.integer("rows"), reader.text("sha256")
        )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "target": self.target,
            "inputs": list(self.inputs),
            "rows": self.rows,
            "sha256": self.sha256,
        }

    def differences(self, other: TableRecord) -> Iterator[str]:
        """What is different in another table, one clause each; nothing for the same table."""
        if self.target != other.target:
            yield f"the target there is '{visible(self.target)}', here '{visible(other.target)}'"
        if self.inputs != other.inputs:
            yield f"the inputs there are {listed(list(self.inputs))}, here {listed(list(other.inputs))}"
        if self.rows is not None and self.rows != other.rows:
            yield f"there are {self.rows:,} rows there, here {other.rows:,}"
        elif self.sha256 is not None and self.sha256 != other.sha256 and self.inputs == other.inputs:
            yield "the columns hold other values"
