"""Tokens by kind, and as a reader of the table would write them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from physdiffuser.expressions import (
    Expression,
    Number,
    Parameter,
    Variable,
    from_prefix,
    to_prefix,
    to_text,
)
from physdiffuser.expressions.tree import substitute, variables, with_columns
from physdiffuser.models.tokens.derivation import expanded
from physdiffuser.models.tokens.skeleton import without_linear_coefficients
from physdiffuser.models.tokens.vocabulary import (
    BINARY,
    BOS,
    CONSTANT,
    EOS,
    MASK,
    NUMBERS,
    UNARY,
    VARIABLES,
    Vocabulary,
)

if TYPE_CHECKING:
    from physdiffuser.models.features.reading import Reading

KINDS = ("masked", "binary", "unary", "variable", "constant", "special")
"""Kinds of tokens; constants are numbers, `pi` and the placeholder that is fitted afterwards."""

_SIGNS = {"add": "+", "sub": "−", "mul": "×", "div": "÷", "pow": "^", "neg": "(−)", "sqrt": "√", "pi": "π"}
_SPECIALS = {BOS: "start", EOS: "end", MASK: "·"}


_GREEK = dict(
    zip(
        [
            "alpha",
            "beta",
            "gamma",
            "delta",
            "epsilon",
            "zeta",
            "eta",
            "theta",
            "iota",
            "kappa",
            "lambda",
            "mu",
            "nu",
            "xi",
            "rho",
            "sigma",
            "tau",
            "phi",
            "chi",
            "psi",
            "omega",
            "Gamma",
            "Delta",
            "Theta",
            "Lambda",
            "Xi",
            "Sigma",
            "Phi",
            "Psi",
            "Omega",
        ],
        "αβγδεζηθικλμνξρστφχψωΓΔΘΛΞΣΦΨΩ",
        strict=True,
    )
)
_LOW = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_NAME = re.compile(r"([A-Za-z]+?)_?([0-9]*)")


def pretty(name: str) -> str:
    """A column's name as a physicist writes it: `omega_0` as ω₀, `x1` as x₁; other names as they are."""
    found = _NAME.fullmatch(name)
    if found is None or (len(found[1]) > 1 and found[1] not in _GREEK):
        return name
    return _GREEK.get(found[1], found[1]) + found[2].translate(_LOW)


def kind_of(token: str) -> str:
    """Kind of a token of the vocabulary, one of `KINDS`."""
    if token == MASK:
        return "masked"
    if token in BINARY:
        return "binary"
    if token in UNARY:
        return "unary"
    if token in VARIABLES:
        return "variable"
    if token in NUMBERS or token in (CONSTANT, "pi"):
        return "constant"
    return "special"


def shown_tokens(tokens: Sequence[str], reading: Reading, names: Sequence[str], limit: int = 6) -> list[str]:
    """Tokens as labels: signs for operators, the table's names for variables, cut to `limit` characters."""
    found = []
    for token in tokens:
        if token in VARIABLES:
            column = reading.columns[VARIABLES.index(token)]
            name = pretty(names[column]) if column >= 0 else token
            found.append(name if len(name) <= limit else name[: limit - 1] + "…")
        else:
            found.append(_SIGNS.get(token) or _SPECIALS.get(token, token))
    return found


def shown_formula(tokens: Sequence[str], reading: Reading, names: Sequence[str]) -> str:
    """The formula that prefix tokens spell, in the table's names; the tokens themselves if they spell none.

    Names that are no identifiers stand in it as they are: it is for reading, not for parsing.
    """
    law = expanded(tokens)
    if law is None:
        return " ".join(shown_tokens(tokens, reading, names, 30))
    expression = from_prefix(law)
    used = sorted(variables(expression))
    columns = {place: reading.columns[place] for place in used}
    if any(column < 0 for column in columns.values()):
        return " ".join(shown_tokens(tokens, reading, names, 30))
    return to_text(with_columns(expression, columns), tuple(names))


def law_tokens(law: Expression, reading: Reading, vocabulary: Vocabulary) -> list[str] | None:
    """A law as the networks would write it, or None if their vocabulary cannot.

    Linear coefficients are left out; a number that has no token becomes the constant placeholder.

    Parameters
    ----------
    law
        Over the columns of the table.
    reading
        Says which column stands in which place.
    """
    count = 0

    def replace(node: Expression) -> Expression | None:
        nonlocal count
        if isinstance(node, Number) and str(node.value) not in NUMBERS:
            count += 1
            return Parameter(count - 1)
        if isinstance(node, Variable):
            return Variable(reading.columns.index(node.index))
        return None

    # Strip first: a factor such as 8 in 8*pi is restored by least squares and need not be written.
    tokens = to_prefix(substitute(without_linear_coefficients(law), replace))
    return tokens if all(token in vocabulary.ids for token in tokens) else None


def arguments_of(tokens: Sequence[str]) -> list[tuple[int, tuple[int, ...]]]:
    """Operators of a formula in prefix tokens: the place of each, and the places of its arguments' roots.

    Parameters
    ----------
    tokens
        A complete formula.
    """
    found: list[tuple[int, tuple[int, ...]]] = []

    def read(place: int) -> int:
        """Place after the subtree that starts at `place`."""
        kind = kind_of(tokens[place])
        count = {"binary": 2, "unary": 1}.get(kind, 0)
        roots, following = [], place + 1
        for _ in range(count):
            roots.append(following)
            following = read(following)
        if count:
            found.append((place, tuple(roots)))
        return following

    end = read(0)
    if end != len(tokens):
        raise ValueError("the tokens are no single formula")
    return sorted(found)
