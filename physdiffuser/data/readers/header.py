"""The header: whether there is one, the names it gives, and the row of units below it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from physdiffuser.data.readers.cells import NumberFormat, is_missing
from physdiffuser.data.table import check_names
from physdiffuser.errors import DataError, UsageError
from physdiffuser.io.display import counted, visible

MAX_COLUMNS = 20_000


@dataclass(frozen=True)
class TextOptions:
    """What the user said about a table; None means: find out.

    Attributes
    ----------
    encoding, delimiter, thousands
        How a text table is written.
    header
        Whether the first row holds names.
    units_row
        Whether the row below the names holds units.
    """

    encoding: str | None = None
    delimiter: str | None = None
    header: bool | None = None
    thousands: str | None = None
    units_row: bool = False

    def __post_init__(self) -> None:
        mark = self.thousands
        if mark is not None and (len(mark) != 1 or mark.isalnum() or mark in '+-"\n\r'):
            raise UsageError(
                f"--thousands: '{visible(mark)}' cannot group digits. Give one character such as ',' or '.'."
            )


@dataclass(frozen=True)
class Line:
    """A row of the sample: its fields, and the number of its first physical line."""

    number: int
    fields: tuple[str, ...]


@dataclass(frozen=True)
class Header:
    """What the top of the table said.

    Attributes
    ----------
    names
        One per column, without padding; empty where there is none.
    unit_strings
        Name to unit, when a row of units was announced.
    warnings
        In the sense of `Dataset.warnings`.
    body_line
        Physical line of the first row of values.
    """

    names: tuple[str, ...]
    unit_strings: dict[str, str]
    warnings: tuple[str, ...]
    body_line: int


def settle_header(
    rows: Sequence[Line],
    numbers: NumberFormat,
    source: str,
    options: TextOptions,
    comment: Sequence[tuple[str, ...]] = (),
) -> Header:
    """Decide what the first rows are.

    Parameters
    ----------
    rows
        The first rows, at least one.
    comment
        Names that a comment above the first row may give, as `numpy.savetxt` writes them.

    Raises
    ------
    DataError
        When names are unusable, nothing follows them, or header and values cannot be distinguished.
    """
    asked = options.header
    has_names = _is_header(rows, numbers, source) if asked is None else asked
    warnings: list[str] = []
    line = rows[0].number
    if has_names:
        names, body = rows[0].fields, rows[1:]
        digits = [name for name in names if NumberFormat(".").number(name.strip()) is not None]
        if digits and asked is None:
            warnings.append(
                f"line {line} was taken for the header although '{visible(digits[0])}' is a number; "
                "--no-header makes it a row"
            )
    else:
        body = rows
        width = len(rows[0].fields)
        fitting = [names for names in comment if _fits(names, width)]
        names = fitting[0] if fitting else tuple(f"x{i}" for i in range(1, width + 1))
        if asked is None:
            named = (
                "the comment above it gives the names"
                if fitting
                else f"the columns are called x1 to x{width}"
            )
            warnings.append(f"line {line} holds numbers, so there is no header; {named}")
    names = _match_ends(names, body, line, warnings)
    if len(names) > MAX_COLUMNS:
        raise DataError(
            f"{source}: {len(names):,} columns; at most {MAX_COLUMNS:,} are read. Is the table transposed?"
        )
    names = check_names(names, source, line if has_names else None)
    units: dict[str, str] = {}
    if options.units_row:
        units, body = _units(body, names, source)
    if not body:
        raise DataError(f"{source}: there are no rows below the header. A table needs at least two.")
    return Header(names, units, tuple(warnings), body[0].number)


def _is_header(rows: Sequence[Line], numbers: NumberFormat, source: str) -> bool:
    def value(cell: str) -> float | None:
        # A copy, because reading a fraction settles an open decimal sign.
        return NumberFormat(numbers.decimal, numbers.thousands).number(cell.strip())

    first = rows[0].fields
    is_number = [value(cell) is not None for cell in first]
    is_text = [
        not number and not is_missing(cell.strip()) for cell, number in zip(first, is_number, strict=True)
    ]
    if not any(is_number):
        return any(is_text)
    if not any(is_text):
        return False
    for row in rows[1:]:
        if any(text and value(cell) is not None for cell, text in zip(row.fields, is_text, strict=False)):
            return True
    name = next(cell for cell, text in zip(first, is_text, strict=True) if text)
    raise DataError(
        f"{source}: line {rows[0].number} holds numbers and text ('{visible(name)}'), so it may be a header "
        "or the first row of values. Say which with --header or --no-header."
    )


def _fits(names: Sequence[str], width: int) -> bool:
    return len(names) == width and all(NumberFormat(".").number(name.strip()) is None for name in names)


def _match_ends(
    names: tuple[str, ...], body: Sequence[Line], line: int, warnings: list[str]
) -> tuple[str, ...]:
    """Allow for a delimiter at the end of every row, or of the header alone."""
    if not body:
        return names
    if all(len(row.fields) == len(names) + 1 and not row.fields[-1].strip() for row in body):
        return (*names, "")
    if not names[-1].strip() and all(len(row.fields) == len(names) - 1 for row in body):
        warnings.append(f"line {line}: the header ends with an empty field, which was left out")
        return names[:-1]
    return names


def _units(
    body: Sequence[Line], names: tuple[str, ...], source: str
) -> tuple[dict[str, str], Sequence[Line]]:
    if not body:
        raise DataError(f"{source}: a row of units was announced, but there is nothing below the header.")
    row = body[0]
    if len(row.fields) != len(names):
        raise DataError(
            f"{source}: line {row.number} should hold the units, but has {counted(len(row.fields), 'field')} "
            f"for {counted(len(names), 'column')}."
        )
    cells = [cell.strip() for cell in row.fields]
    return {name: cell for name, cell in zip(names, cells, strict=True) if name}, body[1:]
