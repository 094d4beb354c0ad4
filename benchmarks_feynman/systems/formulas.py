"""Formulas of peers as trees: function spellings that the parser does not read, rewritten."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from physdiffuser.errors import DataError
from physdiffuser.expressions import Expression, parse

SHORTHANDS: Mapping[str, str] = {
    "recip": "(1/({}))",
    "square": "(({})**2)",
    "cube": "(({})**3)",
}


def read_formula(text: str, names: Sequence[str]) -> Expression:
    """A peer's formula over variables of the given names.

    Function names may be capitalised; `recip`, `square` and `cube` are written out.

    Raises
    ------
    DataError
        If it cannot be read.
    """
    try:
        return parse(_rewrite(text), names)
    except ValueError as error:
        raise DataError(f"the peer's formula {text[:200]!a} cannot be read: {error}") from error


def _rewrite(text: str) -> str:
    """Every call `name(...)` with the name in lower case, shorthands written out."""
    pieces: list[str] = []
    position = 0
    while position < len(text):
        start = position
        while position < len(text) and (text[position].isalnum() or text[position] == "_"):
            position += 1
        word = text[start:position]
        if not word:
            pieces.append(text[position])
            position += 1
        elif position < len(text) and text[position] == "(" and word[0].isalpha():
            end = _closing(text, position)
            inner = _rewrite(text[position + 1 : end])
            name = word.lower()
            pieces.append(SHORTHANDS[name].format(inner) if name in SHORTHANDS else f"{name}({inner})")
            position = end + 1
        else:
            pieces.append(word)
    return "".join(pieces)


def _closing(text: str, opening: int) -> int:
    depth = 0
    for position in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[position], 0)
        if depth == 0:
            return position
    raise DataError(f"the peer's formula {text[:200]!a} has unbalanced parentheses")
