"""Finding out how a text table is written: delimiter and decimal sign."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from physdiffuser.data.readers.cells import NumberFormat, is_missing
from physdiffuser.errors import UsageError
from physdiffuser.io.display import visible

WHITESPACE = " "
"""The delimiter that stands for any run of blanks and tabs."""

SAMPLE_LINES = 200

_CANDIDATES = (",", "\t", ";", "|", WHITESPACE)
_SPOKEN = {
    ",": "comma",
    "\t": "tab",
    ";": "semicolon",
    "|": "vertical bar",
    WHITESPACE: "whitespace",
    ":": "colon",
}
_ASKED = {
    "\\t": "\t",
    "tab": "\t",
    "space": WHITESPACE,
    "whitespace": WHITESPACE,
    "comma": ",",
    "semicolon": ";",
}
_SPREADSHEET_ERROR = re.compile(r"#(?:N/A|NA|DIV/0!|REF!|VALUE!|NAME\?|NUM!|NULL!)", re.IGNORECASE)
_GROUPED = re.compile(r"[+-]?\d{1,3},\d{3}")
_COMMA = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")
_POINT = re.compile(r"[+-]?\d*\.\d+(?:[eE][+-]?\d+)?")


@dataclass(frozen=True)
class Dialect:
    """How the table is written.

    Attributes
    ----------
    delimiter
        One character; `WHITESPACE` for runs of blanks and tabs.
    decimal
        ``"."``, ``","``, or None when the sample holds no fraction and the delimiter leaves it open.
    """

    delimiter: str
    decimal: str | None

    def describe(self) -> str:
        """Words for it, such as ``semicolon with decimal comma``."""
        words = _SPOKEN.get(self.delimiter, f"'{visible(self.delimiter)}'")
        return f"{words} with decimal comma" if self.decimal == "," else words


def check_delimiter(asked: str) -> str:
    """Return the delimiter for what the user wrote (``tab``, ``\\t``, ``;`` ...)."""
    delimiter = _ASKED.get(asked.lower(), asked)
    if len(delimiter) != 1 or delimiter.isalnum() or delimiter in "\"'.+-#\n\r_":
        raise UsageError(
            f"--delimiter: '{visible(asked)}' cannot separate columns. "
            "Give one character such as ',' or ';', or 'tab' or 'whitespace'."
        )
    return delimiter


def is_comment(line: str, delimiter: str | None = None) -> bool:
    """Whether a physical line is blank or a comment, and so is no row.

    Between tabs even a line without text is a row of empty cells. A spreadsheet's error values begin
    with the comment sign too.
    """
    text = line.lstrip(" " if delimiter == "\t" else None)
    return not text or (text.startswith("#") and _SPREADSHEET_ERROR.match(text) is None)


def split_line(line: str, delimiter: str) -> list[str]:
    """Split one physical line into fields; quotes protect delimiters."""
    return next(iter(rows_of([line], delimiter)), [])


def rows_of(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    """Split physical lines into rows of fields.

    Raises
    ------
    csv.Error
        On an open quote, or text after a closing one.
    """
    if delimiter == WHITESPACE:
        if not any('"' in line for line in lines):
            return [line.split() for line in lines]
        trimmed = [line.replace("\t", " ").strip() for line in lines]
        return list(csv.reader(trimmed, delimiter=" ", skipinitialspace=True, strict=True))
    return list(csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=True))


def find_dialect(lines: Sequence[str], asked: str | None, thousands: str | None) -> Dialect:
    """Choose delimiter and decimal sign from a sample.

    The delimiter is the one that cuts most lines into the same number of fields, of which most are
    numbers.

    Parameters
    ----------
    lines
        Physical lines without comments and blank ones, header included.
    """
    if asked is not None:
        delimiter = check_delimiter(asked)
    else:
        tabs = sum("\t" in line.strip() for line in lines)
        # Whitespace would close up the empty cells of a table with tabs and shift the others.
        candidates = _CANDIDATES[:-1] if tabs > len(lines) / 2 else _CANDIDATES
        scored = [(_score(lines, candidate), candidate) for candidate in candidates]
        best = max(score for score, _ in scored)
        delimiter = next(candidate for score, candidate in scored if score == best)
    if thousands == ".":
        return Dialect(delimiter, ",")
    if delimiter == "," or thousands == ",":
        return Dialect(delimiter, ".")
    return Dialect(delimiter, _find_decimal(lines, delimiter))


def _score(lines: Sequence[str], delimiter: str) -> tuple[float, int]:
    """Rate a delimiter: share of regular, numeric fields, then number of columns."""
    rows = []
    for line in lines:
        try:
            rows.append(split_line(line, delimiter))
        except csv.Error:
            continue
    if not rows:
        return (0.0, 0)
    width, regular = Counter(map(len, rows)).most_common(1)[0]
    if width < 2:
        return (0.0, 1)
    point = NumberFormat(".", "," if delimiter != "," else None)
    comma = NumberFormat(",", ".")
    body = [row for row in rows[1:] if len(row) == width] or rows[:1]
    numeric = total = 0
    for row in body:
        for cell in row:
            text = cell.strip()
            total += 1
            numeric += bool(
                point.number(text) is not None
                or is_missing(text)
                or (delimiter != "," and comma.number(text) is not None)
            )
    # A text column must not decide: half a point for being regular, half for being numeric.
    return (round(regular / len(rows) * (1 + numeric / max(total, 1)) / 2, 3), width)


def _find_decimal(lines: Sequence[str], delimiter: str) -> str | None:
    commas = grouped = points = 0
    for line in lines:
        try:
            cells = split_line(line, delimiter)
        except csv.Error:
            continue
        for cell in cells:
            text = cell.strip()
            if _COMMA.fullmatch(text):
                commas += 1
                grouped += _GROUPED.fullmatch(text) is not None
            elif _POINT.fullmatch(text):
                points += 1
    if points:
        return "."
    if not commas:
        return None
    # Without the semicolon that goes with decimal commas, 1,234 may as well be a thousand.
    return "," if delimiter == ";" or grouped < commas else "."
