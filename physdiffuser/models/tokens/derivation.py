"""Derivation chains: a law written as named steps, `s1 = v**2/c**2; s2 = sqrt(1 - s1); m/s2`.

In tokens `<step> E <end_step> REST`: the formula E is given the next name, and REST, further steps or the law
itself, may use it. Seen as a tree, `<step>` has two arguments, E and what `<end_step>` begins, so the
rules that make prefix tokens a formula hold for chains as they stand.
"""

from __future__ import annotations

from collections.abc import Sequence

from physdiffuser.models.tokens.vocabulary import END_STEP, NAMES, STEP, UNARY, complete, opened

# Parts of at least so many tokens are worth a name: those inside one of these, and those that occur twice.
_WORTH_NAMING = 3
_INSIDE = frozenset({*UNARY, "pow"} - {"neg"})


def _end(tokens: Sequence[str], start: int) -> int:
    """One past the last token of the formula that starts there."""
    missing = 1
    place = start
    while missing:
        missing += opened(tokens[place])
        place += 1
    return place


def _parts(tokens: Sequence[str]) -> list[tuple[str, ...]]:
    """What is named: arguments of functions and powers, and what occurs more than once; innermost first."""
    found: dict[tuple[str, ...], None] = {}
    seen: dict[tuple[str, ...], int] = {}
    for place in range(len(tokens) - 1, 0, -1):
        part = tuple(tokens[place : _end(tokens, place)])
        seen[part] = seen.get(part, 0) + 1
        # The token before a first argument is what it is an argument of.
        if len(part) >= _WORTH_NAMING and (tokens[place - 1] in _INSIDE or seen[part] > 1):
            found[part] = None
    return sorted(found, key=len)


def derivation(tokens: Sequence[str]) -> list[str]:
    """A law as a chain of at most three steps; the same tokens if nothing in it deserves a name.

    Parameters
    ----------
    tokens
        Prefix tokens of a formula.
    """
    law = list(tokens)
    steps: list[list[str]] = []
    for part in _parts(law):
        if len(steps) == len(NAMES):
            break
        name = NAMES[len(steps)]
        # Steps named before may stand inside this part.
        written = _named(list(part), steps)
        steps.append(written)
        law = _replaced(law, written, name)
        if law == [name]:
            law = steps.pop()
            break
    chain: list[str] = []
    for step in steps:
        chain += [STEP, *step, END_STEP]
    return chain + law


def _named(tokens: list[str], steps: Sequence[Sequence[str]]) -> list[str]:
    for name, step in zip(NAMES, steps, strict=False):
        tokens = _replaced(tokens, step, name)
    return tokens


def _replaced(tokens: list[str], part: Sequence[str], name: str) -> list[str]:
    """The tokens with a name wherever the part stands."""
    result: list[str] = []
    place = 0
    while place < len(tokens):
        if tokens[place : place + len(part)] == list(part):
            result.append(name)
            place += len(part)
        else:
            result.append(tokens[place])
            place += 1
    return result


def expanded(tokens: Sequence[str]) -> list[str] | None:
    """The law that a chain derives, as prefix tokens without names; None if the chain is none.

    Parameters
    ----------
    tokens
        A chain, or a plain formula, which is its own derivation.
    """
    if not complete(tokens):
        return None
    steps: dict[str, list[str]] = {}
    place = 0
    while tokens[place] == STEP:
        try:
            end = tokens.index(END_STEP, place)
        except ValueError:
            return None
        meaning = _meaning(tokens[place + 1 : end], steps)
        if meaning is None or len(steps) == len(NAMES):
            return None
        steps[NAMES[len(steps)]] = meaning
        place = end + 1
    return _meaning(tokens[place:], steps)


def _meaning(tokens: Sequence[str], steps: dict[str, list[str]]) -> list[str] | None:
    """The tokens with every name replaced by what it stands for; None if they are no formula."""
    if STEP in tokens or END_STEP in tokens or not complete(tokens):
        return None
    result: list[str] = []
    for token in tokens:
        if token not in NAMES:
            result.append(token)
        elif token in steps:
            result += steps[token]
        else:
            return None
    return result
