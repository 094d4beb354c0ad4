"""The key `fit_rows` of the JSON document, both ways."""

from __future__ import annotations

from typing import Any

from physdiffuser.core.solution_parts.fit_rows import FitRows
from physdiffuser.report.documents.document_reader import Reader


def fit_rows_document(rows: FitRows | None) -> dict[str, Any] | None:
    """The rows and weights of a fit as plain values."""
    if rows is None:
        return None
    return {
        "loss": rows.loss,
        "test": list(rows.test),
        "left_out": list(rows.left_out),
        "weights": None if rows.weights is None else list(rows.weights),
    }


def read_fit_rows(reader: Reader | None) -> FitRows | None:
    """The same, read back; None where the document does not have it."""
    if reader is None:
        return None
    return FitRows(
        loss=reader.one_of("loss", ("squared", "robust")),
        test=reader.integers("test"),
        left_out=reader.integers("left_out"),
        weights=reader.optional_row("weights"),
    )
