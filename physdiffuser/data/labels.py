"""The labels of a column of text: which group each row belongs to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from physdiffuser.data.readers.cells import BOOLEANS, is_missing

# A column with more different texts has no groups in it: they are not kept.
MAX_LABELS = 1_000
LONGEST_LABEL = 200
MISSING = -1


def is_missing_label(text: str) -> bool:
    """Whether a stripped cell of a column of labels is empty: `none` is a label, of a control for example."""
    return is_missing(text) and text.lower() != "none"


def number_label(value: float) -> str:
    """A number as a label: `1.0` is `1`."""
    return f"{value:.12g}"


def text_label(text: str) -> str:
    """A text as a label: without padding, truth values in lower case."""
    text = text.strip()
    return text.lower() if text.lower() in BOOLEANS else text


class LabelCounter:
    """Numbers the different texts of a column as it is read."""

    def __init__(self) -> None:
        self._position: dict[str, int] = {}
        self._blocks: list[npt.NDArray[np.int32]] = []
        self._too_many = False

    def extend(self, cells: Sequence[str]) -> None:
        """Append cells of text; missing ones have no label."""
        if self._too_many:
            return
        code_of: dict[str, int] = {}
        for cell in dict.fromkeys(cells):
            text = cell.strip()
            if is_missing_label(text):
                code_of[cell] = MISSING
            else:
                # A copy, so that the slice does not keep the whole block of text alive.
                label = "".join(text[:LONGEST_LABEL])
                code_of[cell] = self._position.setdefault(label, len(self._position))
        if len(self._position) > MAX_LABELS:
            self._too_many = True
            self._position, self._blocks = {}, []
            return
        self._blocks.append(np.fromiter((code_of[cell] for cell in cells), np.int32, count=len(cells)))

    def finish(self, rows: int) -> tuple[tuple[str, ...], npt.NDArray[np.int32] | None]:
        """The labels, and the code of each row; no codes where there were too many labels."""
        if self._too_many or not self._position:
            return (), None
        codes = np.concatenate(self._blocks)
        # Blocks before the first text held nothing.
        return tuple(self._position), np.r_[np.full(rows - codes.size, MISSING, np.int32), codes]
