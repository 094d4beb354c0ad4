"""What one cell of text means: a number, a missing value, a truth value, or something to refuse.

Only plain decimal numbers are read. Spellings that one program reads as a number and another as
something else (``1_000``, ``0x10``, ``1.5D+03``, ``5%``) are refused with the way to write them,
because guessing wrong would change the data without anybody noticing.
"""

from __future__ import annotations

import math
import re
import sys
from dataclasses import dataclass

MISSING = frozenset({"", "na", "n/a", "#n/a", "#na", "<na>", "nan", "-nan", "+nan", "null", "none"})
"""Spellings of a missing value, in lower case."""

BOOLEANS = {"true": 1.0, "false": 0.0}
"""Truth values, in lower case."""

_INFINITE = frozenset(sign + word for sign in ("", "+", "-") for word in ("inf", "infinity", "∞"))
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NUMBER_COMMA = re.compile(r"[+-]?(?:[0-9]+,?[0-9]*|,[0-9]+)(?:[eE][+-]?[0-9]+)?")
_INTEGER = re.compile(r"[+-]?[0-9]+")

_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_DATE_FIX = "Write times as plain numbers (seconds, days, years) or leave the column out with --inputs."
# (pattern, cause, fix): spellings of numbers and near-numbers that are never guessed at.
_ODD = tuple(
    (re.compile(pattern, re.IGNORECASE), cause, fix)
    for pattern, cause, fix in (
        (
            r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?",
            "is a number with thousands separators",
            "Say so with --thousands ',' or write it without them.",
        ),
        (
            r"[+-]?\d{1,3}([ '\u00a0\u202f\u2009.]\d{3})+(,\d*)?",
            "looks like a number with thousands separators",
            "Name the separator with --thousands or write the number without it.",
        ),
        (
            r"[+-]?\d*,\d+(e[+-]?\d+)?",
            "has a decimal comma",
            "Write 1.5 rather than 1,5. A decimal comma is read where every fraction has one and the columns "
            "are separated by something else.",
        ),
        (r"[+-]?0[xob][0-9a-f]+", "is a hexadecimal, octal or binary number", "Write it in decimal."),
        (r"[+-]?\d+(_\d+)+(\.\d*)?", "has underscores in it", "Write the number without underscores."),
        (
            r"[+-]?(\d+\.?\d*|\.\d+)d[+-]?\d+",
            "has a Fortran exponent",
            "Write 1.5E+03 rather than 1.5D+03.",
        ),
        (
            r"[\u2212\u2013\u2014\ufe63\uff0d]\s*[\d.,]+(e[+-\u2212]?\d+)?",
            "starts with a typographic minus sign",
            "Replace it by the ASCII hyphen-minus '-'.",
        ),
        (
            r"[+-]?[\d.,]+\s*[%‰]",
            "is a percentage",
            "Write the fraction, or drop the sign and name the column so.",
        ),
        (r"[$€£¥]\s*[\d.,]+|[\d.,]+\s*[$€£¥]", "is an amount of money", "Write the number alone."),
        (
            r"[(]?[+-]?[\d.]*(e[+-]?\d+)?[+-]?[\d.]*(e[+-]?\d+)?\*?[ij][)]?",
            "is a complex number",
            "Give real and imaginary part as two columns.",
        ),
        (r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ].*)?", "is a date", _DATE_FIX),
        (r"\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}([T ].*)?", "is a date", _DATE_FIX),
        (rf"\d{{1,2}}[- .]*({_MONTHS})[a-z]*[- .,]*\d{{2,4}}", "is a date", _DATE_FIX),
        (rf"({_MONTHS})[a-z]*[ .]*\d{{1,2}},? +\d{{2,4}}", "is a date", _DATE_FIX),
        (r"\d{1,3}:\d{2}(:\d{2}(\.\d+)?)?( ?[ap]m)?", "is a time of day", _DATE_FIX),
        (r"[+-]?\d+\s*/\s*\d+", "is a fraction", "Write it as a decimal number."),
        (
            r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*[a-zµμ°Ω/^²³·*]{1,8}",
            "is a number followed by text",
            "Put the unit in the column name, or leave the column out with --inputs.",
        ),
        (
            r"[<>~≈≤≥±]\s*[\d.,]+.*|[\d.,]+\s*(±|\+/-|\+-)\s*[\d.,]+|[\d.]+\(\d+\)",
            "is a limit or carries its uncertainty",
            "Write the number alone; errors belong in a column of their own.",
        ),
    )
)


@dataclass
class NumberFormat:
    """How numbers are written in one table.

    Attributes
    ----------
    decimal
        ``"."``, ``","`` or None while no cell has decided it.
    thousands
        The separator that was asked for, or None.
    """

    decimal: str | None = "."
    thousands: str | None = None

    def __post_init__(self) -> None:
        if self.thousands is not None:
            mark = re.escape(self.thousands)
            point = re.escape(self.decimal or ".")
            self._grouped = re.compile(
                rf"[+-]?[0-9]{{1,3}}(?:{mark}[0-9]{{3}})+(?:{point}[0-9]*)?(?:[eE][+-]?[0-9]+)?"
            )

    def number(self, text: str) -> float | None:
        """Return the value of a stripped cell, or None when it is no plain number.

        The result is infinite when the number is beyond the range of float64.
        """
        if self.decimal is None and ("," in text or "." in text):
            comma = "," in text
            if (_NUMBER_COMMA if comma else _NUMBER).fullmatch(text) is None:
                return None
            self.decimal = "," if comma else "."
        if self.thousands is not None and self._grouped.fullmatch(text):
            text = text.replace(self.thousands, "")
        if self.decimal == ",":
            if _NUMBER_COMMA.fullmatch(text) is None:
                return None
            text = text.replace(",", ".")
        elif _NUMBER.fullmatch(text) is None:
            return None
        return float(text)


def is_missing(text: str) -> bool:
    """Whether a stripped cell spells a missing value."""
    return text.lower() in MISSING


def is_infinite(text: str) -> bool:
    """Whether a stripped cell spells infinity."""
    return text.lower() in _INFINITE


def is_whole(text: str) -> bool:
    """Whether a stripped cell is an integer without point or exponent."""
    return _INTEGER.fullmatch(text) is not None


def rounded_limit(text: str) -> float | None:
    """Return the largest float when `text` is that number rounded up to two digits, else None.

    Programs print the float64 limit 1.797...e308 as ``1.8e+308``, which reads back as infinity.
    """
    mantissa, _, exponent = text.replace(",", ".").lower().partition("e")
    if len(exponent) > 6:
        return None
    tenth = float(f"{mantissa}e{int(exponent or 0) - 1}")
    return math.copysign(sys.float_info.max, tenth) if abs(tenth) <= 1.8e307 else None


def explain(text: str) -> tuple[str, str] | None:
    """Return cause and fix when a stripped cell is a number written in a way that is not read.

    None means that the cell is ordinary text. Cells of more than 100 characters count as text.
    """
    if len(text) > 100:
        return None
    if is_infinite(text):
        return "is infinite", "Remove the row, or leave the cell empty."
    if not any(char.isdigit() for char in text):
        return None
    for pattern, cause, fix in _ODD:
        if pattern.fullmatch(text):
            return cause, fix
    if any(char.isdigit() and not char.isascii() for char in text) and text.strip("+-.,").isdigit():
        return "is written with digits other than 0-9", "Write it with the digits 0-9."
    return None
