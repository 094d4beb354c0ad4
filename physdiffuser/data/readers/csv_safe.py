"""Cells that a spreadsheet would run as formulas, made harmless on the way out."""

from __future__ import annotations

_STARTS_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%")


def neutralise(cell: str) -> str:
    """Return `cell` such that a spreadsheet shows it as text.

    A spreadsheet treats a text cell that starts with one of ``= + - @`` (or with a control character
    that it strips) as a formula. A leading apostrophe marks it as text. Numbers stay as they are, so
    ``-1.5`` is not touched.

    Examples
    --------
    >>> neutralise("=cmd|' /C calc'!A0")
    "'=cmd|' /C calc'!A0"
    >>> neutralise("-1.5")
    '-1.5'
    """
    if not cell.lstrip(" ").startswith(_STARTS_FORMULA):
        return cell
    try:
        float(cell)
    except ValueError:
        return "'" + cell
    return cell
