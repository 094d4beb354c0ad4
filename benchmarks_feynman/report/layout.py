"""What a report is made of: sections with paragraphs, tables and plots, and cells as text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from physdiffuser.expressions.printing import format as formulas

# Fitted constants have more decimals than these.
_LONG_NUMBER = re.compile(r"\d+\.\d{5,}(?:e[+-]?\d+)?")
_DIGITS = 5


@dataclass(frozen=True)
class Table:
    """Cells as text. Columns named in `code` hold formulas."""

    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    code: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Section:
    """A heading, paragraphs, tables and plots (name, SVG)."""

    title: str
    paragraphs: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    plots: list[tuple[str, str]] = field(default_factory=list)


def seconds_text(value: float | None) -> str:
    """Seconds, or a dash."""
    return "-" if value is None else f"{value:.2f} s"


def number_text(value: float | None, digits: int = 4) -> str:
    """A number of so many digits, or a dash."""
    return "-" if value is None else f"{value:.{digits}g}"


def formula_text(text: str) -> str:
    """A formula with its fitted constants in five digits; the results file has all of them.

    Examples
    --------
    >>> formula_text("0.4*x + 17.123456789*exp(-1.5e-11*t)/2.00000000001e-30")
    '0.4*x + 17.123*exp(-1.5e-11*t)/2e-30'
    """
    return _LONG_NUMBER.sub(lambda found: formulas.number_text(float(found[0]), _DIGITS), text)


def labels(result_group: tuple[Any, ...]) -> tuple[str, str, str, str]:
    """Cells of a group by system, suite, noise and protocol."""
    system, suite, noise, protocol = result_group
    return system, suite, f"{noise:g}", protocol
