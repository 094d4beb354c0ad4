"""Text from a table, made safe to show on a terminal or in a message."""

from __future__ import annotations


def visible(text: str, limit: int = 60) -> str:
    r"""Return `text` with everything unprintable escaped, shortened to about `limit` characters.

    Column names and cells come from files that somebody else wrote. An escape sequence in one of
    them could recolour a terminal, hide a line or forge one, so it is never echoed as it is.

    Examples
    --------
    >>> visible("\x1b[31mred")
    '\\x1b[31mred'
    """
    if len(text) > limit:
        text = text[: limit - 1] + "…"
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text
    )


def listed(names: list[str], limit: int = 6) -> str:
    """Join quoted names for a message, naming at most `limit` of them."""
    shown = ", ".join(f"'{visible(name)}'" for name in names[:limit])
    rest = len(names) - limit
    return f"{shown} and {rest} more" if rest > 0 else shown


def counted(number: int, noun: str) -> str:
    """`1 row`, `2 rows`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
