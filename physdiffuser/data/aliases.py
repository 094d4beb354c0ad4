"""Identifiers that stand for column names inside expressions.

A table may call its columns anything: ``v (m/s)``, ``lambda``, ``θ``, ``__import__('os')``. Expressions
know identifiers only, so every name that could not be one, or that already means something there, gets
an alias. Everything the user reads about the table keeps the original name.
"""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Sequence

FUNCTION_NAMES = frozenset(
    (
        *("exp", "log", "ln", "sqrt", "abs", "sin", "cos", "tan", "sinh", "cosh", "tanh"),
        *("asin", "acos", "atan", "arcsin", "arccos", "arctan"),
    )
)
"""Names that the expression language reads as functions."""

RESERVED_NAMES = FUNCTION_NAMES | {"pi"} | frozenset(keyword.kwlist)

# Signs that carry meaning in the names of quantities; everything else becomes an underscore.
_SPELLED = str.maketrans({"∆": "Delta", "%": "percent", "°": "deg", "'": "_prime", "′": "_prime", "#": "n"})
_NOT_IDENTIFIER = re.compile(r"\W+")
_LONGEST = 40


def needs_alias(name: str) -> bool:
    """Whether `name` cannot be used as it is inside expressions.

    Names with two leading underscores count, because Python refuses one of them (``__debug__``) as
    an argument name in generated code and mangles others.
    """
    return (
        not name.isidentifier()
        or name in RESERVED_NAMES
        or name.startswith("__")
        or unicodedata.normalize("NFKC", name) != name
    )


def readable_alias(name: str) -> str:
    """Return an identifier that resembles `name`; not yet unique.

    Examples
    --------
    >>> readable_alias("v (m/s)")
    'v_m_s'
    >>> readable_alias("lambda")
    'lambda_'
    >>> readable_alias("2010")
    'x_2010'
    """
    text = unicodedata.normalize("NFKC", name.translate(_SPELLED))
    text = _NOT_IDENTIFIER.sub("_", text).strip("_")[:_LONGEST].strip("_")
    if not text:
        return "x"
    if not text.isidentifier():
        text = f"x_{text}"
    if not text.isidentifier():  # digits and marks that \w allows and identifiers do not
        text = "".join(char for char in text if ("a" + char).isidentifier())
    if text in RESERVED_NAMES:
        text += "_"
    return text


def assign_aliases(names: Sequence[str]) -> tuple[str, ...]:
    """Return one alias per name: unique, deterministic, equal to the name where that is possible.

    Parameters
    ----------
    names
        Distinct column names.

    Examples
    --------
    >>> assign_aliases(["v_m_s", "v (m/s)", "E"])
    ('v_m_s', 'v_m_s_2', 'E')
    """
    taken = {name for name in names if not needs_alias(name)}
    aliases = []
    for name in names:
        if not needs_alias(name):
            aliases.append(name)
            continue
        base = alias = readable_alias(name)
        number = 2
        while alias in taken:
            alias = f"{base.rstrip('_')}_{number}"
            number += 1
        taken.add(alias)
        aliases.append(alias)
    return tuple(aliases)
