"""What a terminal can show, and how wide a text is on it."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Style:
    """What the terminal can show.

    Attributes
    ----------
    width
        Columns of the terminal; None when the report goes to a file and nothing is cut.
    unicode
        Whether signs such as ± can be written.
    framed
        Whether tables are drawn by rich, with a rule below their head.
    colour
        Whether escape sequences may be written at all.
    emphasise
        Marks the headline and the chosen row; returns its argument where there is no colour.
    good, doubtful
        The same for the verdict of a law that is verified, and of one that is not.
    label
        The same for the names of what is reported.
    """

    width: int | None = None
    unicode: bool = True
    framed: bool = False
    colour: bool = False
    emphasise: Callable[[str], str] = str
    good: Callable[[str], str] = str
    doubtful: Callable[[str], str] = str
    label: Callable[[str], str] = str

    def sign(self, wanted: str, plain: str) -> str:
        """A sign, or its spelling where the terminal cannot show it."""
        return wanted if self.unicode else plain

    def indented(self, margin: int) -> Style:
        """The same for text that begins so many columns later."""
        return self if self.width is None else replace(self, width=max(self.width - margin, 1))


def display_width(text: str) -> int:
    """Columns that a text takes: wide East Asian letters take two, combining marks none."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )


def cut(text: str, width: int | None, mark: str) -> str:
    """The text, or its beginning and a mark when it is wider than the terminal."""
    if width is None or display_width(text) <= width:
        return text
    kept, used = [], 0
    for char in text:
        used += display_width(char)
        if used > max(width - display_width(mark), 0):
            break
        kept.append(char)
    return "".join(kept) + mark
