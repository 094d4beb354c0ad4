"""One column while it is being read: values in a growing array, and what kind of cells came by."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.data.labels import LabelCounter, is_missing_label, number_label, text_label
from physdiffuser.data.readers.cells import (
    BOOLEANS,
    NumberFormat,
    explain,
    is_missing,
    is_whole,
    rounded_limit,
)
from physdiffuser.errors import DataError
from physdiffuser.io.display import visible

Kind = Literal["number", "boolean", "text", "empty"]

BIGGEST_INTEGER = 2.0**63
"""Above this, whole numbers no longer fit the integer types that tables are exchanged in."""

_FIRST_CAPACITY = 4096


class ColumnBuilder:
    """Collects one column, and refuses it as soon as its cells do not fit together.

    Parameters
    ----------
    name, position
        Header name (may be empty) and number of the column, counted from 1, for messages.
    numbers
        How numbers are written in this table; shared by its columns.
    source
        Where the table comes from, for messages.
    first_line
        Line of the first row below the header; text there and numbers below look like units.
    unit
        What messages count: ``"line"`` of a file or ``"row"`` of a table without lines.
    as_labels
        Whether cells are labels of groups, among which numbers and text may stand side by side.

    Notes
    -----
    Of text the different labels are kept, if they are few (`LabelCounter`), and the first cell of it.
    """

    def __init__(
        self,
        name: str,
        position: int,
        *,
        numbers: NumberFormat,
        source: str,
        first_line: int = 2,
        unit: str = "line",
        as_labels: bool = False,
    ) -> None:
        self.name = name
        self.position = position
        self.big_integer: tuple[int, str] | None = None
        self.clamped: tuple[int, str] | None = None
        self._numbers = numbers
        self._source = source
        self._unit = unit
        self._first_line = first_line
        self._as_labels = as_labels
        self._first_number: int | None = None
        self._first_text: tuple[int, str] | None = None
        self._first_boolean: tuple[int, str] | None = None
        self._values = np.empty(_FIRST_CAPACITY)
        self._size = 0
        self.labels = LabelCounter()

    def __len__(self) -> int:
        return self._size

    @property
    def kind(self) -> Kind:
        """What the cells so far are."""
        if self._first_text is not None and (self._as_labels or self._first_number is None):
            return "text"
        if self._first_number is not None:
            return "number"
        return "boolean" if self._first_boolean is not None else "empty"

    @property
    def example(self) -> str:
        """The first cell that held text, for messages."""
        return "" if self._first_text is None else self._first_text[1]

    def reserve(self, rows: int) -> None:
        """Make room for `rows` values. Memory that is never written costs nothing."""
        if rows > self._values.shape[0]:
            # realloc moves the pages of a large array instead of copying them.
            self._values.resize(rows, refcheck=False)

    def finish(self) -> FloatArray:
        """Return the values, NaN where missing or text; the builder is empty afterwards."""
        values = self._values
        values.resize(self._size, refcheck=False)
        self._values = np.empty(0)
        return values

    def extend_numbers(self, values: FloatArray, line: int) -> None:
        """Append finite values that were parsed elsewhere; `line` is that of the first."""
        if values.size == 0:
            return
        if self._as_labels:
            self.labels.extend([number_label(value) for value in values.tolist()])
        if self._first_number is None:
            self._see_number(line, float(values[0]))
        self._append(values)

    def extend_floats(self, values: FloatArray, line: int, *, whole: bool = False) -> None:
        """Append binary numbers, NaN where missing.

        Raises
        ------
        DataError
            On an infinite value.
        """
        self._check_finite(values, line)
        present = np.flatnonzero(~np.isnan(values))
        if whole and self.big_integer is None:
            big = np.flatnonzero(np.abs(values) >= BIGGEST_INTEGER)
            if big.size:
                self.big_integer = (line + int(big[0]), f"{values[big[0]]:.0f}")
        if present.size and self._first_number is None:
            self._see_number(line + int(present[0]), float(values[present[0]]))
        self._append(values)

    def extend_booleans(self, values: FloatArray, line: int) -> None:
        """Append truth values as 0, 1 and NaN."""
        if self._as_labels:
            named = {1.0: "true", 0.0: "false"}
            self.extend_cells([named.get(value, "") for value in values.tolist()], lambda index: line + index)
            return
        present = np.flatnonzero(~np.isnan(values))
        if present.size and self._first_boolean is None:
            self._first_boolean = (line + int(present[0]), str(bool(values[present[0]])))
        self._append(values)

    def extend_cells(self, cells: Sequence[str], lines: Callable[[int], int]) -> None:
        """Append cells of text.

        Parameters
        ----------
        cells
            As they stand between the delimiters; padding is ignored.
        lines
            Line number of the cell with a given index in `cells`.

        Raises
        ------
        DataError
            When a cell is no number in a column of numbers, or an unreadable kind of number.
        """
        if self._as_labels:
            self._extend_labels(cells, lines)
            return
        together = "".join(cells)
        if not together or (self.kind == "text" and not self._has_number(cells)):
            self._append(np.full(len(cells), math.nan))
            if self.kind == "text":
                self.labels.extend(cells)
            return
        # float() also reads underscores and the digits of other scripts, and knows only the point.
        as_float = (
            self._numbers.thousands is None
            and together.isascii()
            and "_" not in together
            and "," not in together
            and (self._numbers.decimal == "." or "." not in together)
        )
        values = self._at_once(cells, together, as_float)
        if values is None:
            values = np.fromiter(self._each_cell(cells, lines, as_float), np.float64, count=len(cells))
            if self.kind == "text":
                self.labels.extend(cells)
        elif values.size and self._first_number is None:
            self._see_number(lines(0), float(values[0]))
        self._append(values)

    def _extend_labels(self, cells: Sequence[str], lines: Callable[[int], int]) -> None:
        values, labels = {}, {}
        for cell in dict.fromkeys(cells):
            number = self._numbers.number(cell.strip())
            values[cell] = math.nan if number is None else number
            labels[cell] = text_label(cell) if number is None else number_label(number)
            if number is not None:
                self._first_number = self._first_number or lines(cells.index(cell))
            elif not is_missing_label(labels[cell]) and self._first_text is None:
                self._first_text = (lines(cells.index(cell)), labels[cell][:200])
        self.labels.extend([labels[cell] for cell in cells])
        self._append(np.fromiter((values[cell] for cell in cells), np.float64, count=len(cells)))

    def fail(self, line: int, cell: str, cause: str, fix: str) -> DataError:
        """Return the error for a cell: where, what, why, and what to do."""
        return DataError(
            f"{self._source}: {self._unit} {line}, column {self._title()}: '{visible(cell)}' {cause}. {fix}"
        )

    def _title(self) -> str:
        return f"{self.position} '{visible(self.name)}'" if self.name else f"{self.position}"

    def _append(self, values: FloatArray) -> None:
        end = self._size + values.shape[0]
        if end > self._values.shape[0]:
            self.reserve(max(end, self._values.shape[0] * 3 // 2))
        self._values[self._size : end] = values
        self._size = end

    def _has_number(self, cells: Sequence[str]) -> bool:
        """Whether any cell is a number; labels repeat, so each is looked at once."""
        return any(self._numbers.number(cell.strip()) is not None for cell in set(cells))

    def _at_once(self, cells: Sequence[str], together: str, as_float: bool) -> FloatArray | None:
        """Convert all cells in one go when nothing about them needs a second look."""
        converted: Iterable[str] = cells
        if not as_float:
            if self._numbers.decimal != "," or self._numbers.thousands is not None:
                return None
            if "." in together or "_" in together or not together.isascii():
                return None
            converted = (cell.replace(",", ".") for cell in cells)
        try:
            values = np.fromiter(map(float, converted), np.float64, count=len(cells))
        except ValueError:
            return None
        # NaN fails this comparison as well, and is looked at cell by cell.
        return values if bool(np.all(np.abs(values) < BIGGEST_INTEGER)) else None

    def _each_cell(
        self, cells: Sequence[str], lines: Callable[[int], int], as_float: bool
    ) -> Iterable[float]:
        for index, cell in enumerate(cells):
            if not cell:
                yield math.nan
                continue
            if as_float:
                try:
                    value = float(cell)
                except ValueError:
                    value = math.nan
                if -BIGGEST_INTEGER < value < BIGGEST_INTEGER:
                    if self._first_number is None:
                        self._see_number(lines(index), value)
                    yield value
                    continue
            yield self._one_cell(cell.strip(), index, lines)

    def _one_cell(self, text: str, index: int, lines: Callable[[int], int]) -> float:
        value = self._numbers.number(text)
        if value is not None:
            if abs(value) >= BIGGEST_INTEGER:
                value = self._large(text, value, lines(index))
            if self._first_number is None:
                self._see_number(lines(index), value)
            return value
        return math.nan if is_missing(text) else self._see_other(lines(index), text)

    def _check_finite(self, values: FloatArray, line: int) -> None:
        infinite = np.flatnonzero(np.isinf(values))
        if infinite.size:
            first = int(infinite[0])
            raise self.fail(
                line + first, str(values[first]), "is infinite", "Remove the row, or leave the cell empty."
            )

    def _large(self, text: str, value: float, line: int) -> float:
        if math.isinf(value):
            limit = rounded_limit(text)
            if limit is None:
                raise self.fail(
                    line,
                    text,
                    "is beyond the range of a 64-bit float, ±1.8e308",
                    "Change the unit of the column or remove the row.",
                )
            self.clamped = self.clamped or (line, text)
            return limit
        if is_whole(text):
            self.big_integer = self.big_integer or (line, text)
        return value

    def _see_number(self, line: int, value: float) -> None:
        self._first_number = line
        if self._first_text is not None:
            text_line, text = self._first_text
            if text_line == self._first_line:
                raise self.fail(
                    text_line,
                    text,
                    f"stands above numbers ({self._unit} {line} has {value:g}): "
                    "this looks like a row of units",
                    "Say so with --units-row. If these are the names, remove what stands above them.",
                )
            raise self.fail(
                text_line,
                text,
                f"is text in a column of numbers ({self._unit} {line} has {value:g})",
                "Correct the cell, leave it empty if the value is missing, "
                "or choose other columns with --inputs.",
            )
        if self._first_boolean is not None:
            raise self.fail(
                *self._first_boolean,
                f"is a truth value in a column of numbers ({self._unit} {line} has {value:g})",
                "Write 1 and 0.",
            )

    def _see_other(self, line: int, text: str) -> float:
        """Take note of a cell that is neither a plain number nor missing."""
        truth = BOOLEANS.get(text.lower())
        if self._first_number is not None:
            cause, fix = explain(text) or (
                "is not a number",
                "Correct the cell, leave it empty if the value is missing, "
                "or choose other columns with --inputs.",
            )
            raise self.fail(line, text, cause, fix)
        if truth is not None and self._first_text is None:
            self._first_boolean = self._first_boolean or (line, text)
            return truth
        if self._first_text is None:
            odd = explain(text)
            if odd is not None:
                raise self.fail(line, text, *odd)
            # A copy, so that the slice does not keep the whole block of text alive.
            self._first_text = (line, text[:200])
        return math.nan
