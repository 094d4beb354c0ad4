"""Starting formulas for the functions of a template, `f = A*exp(-b*t)`."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from physdiffuser.errors import UsageError
from physdiffuser.expressions import Expression
from physdiffuser.io.display import listed, visible
from physdiffuser.search.refinement.guesses import MAX_GUESSES, Guess, read_guess
from physdiffuser.templates.template import Template

FunctionGuess = tuple[str, Guess]
"""The name of a function, and a formula for it."""

# `f = ...` or `f(t) = ...`.
_STATEMENT = re.compile(r"\s*(\w+)\s*(?:\(([^()]*)\))?\s*=(.*)", re.DOTALL)


def read_function_guesses(
    texts: Sequence[str], template: Template, constants: Mapping[str, float]
) -> list[FunctionGuess]:
    """The name of a function and its guess, for each text.

    Parameters
    ----------
    texts
        Of the form `f = formula`, in the function's arguments as the template has them, or `f(u) = formula`
        with other names.
    constants
        Known constants.

    Raises
    ------
    UsageError
        If one is not of this form, or has no such function.
    """
    if isinstance(texts, str):
        raise UsageError(
            f"initial={visible(texts)!r}: must be a list of formulas, such as [{visible(texts)!r}]"
        )
    if len(texts) > MAX_GUESSES:
        raise UsageError(f"{len(texts)} guesses; at most {MAX_GUESSES} are fitted")
    return [_read(text, template, constants) for text in texts]


def _read(text: str, template: Template, constants: Mapping[str, float]) -> FunctionGuess:
    arguments = {one.name: one.arguments for one in template.functions}
    names = listed(list(arguments))
    match = _STATEMENT.fullmatch(text)
    if match is None:
        raise UsageError(
            f"guess '{visible(text, 60)}': with a template a guess is for one of its functions ({names}), as "
            f"in '{template.functions[0].name} = {visible(text, 60)}'"
        )
    name, given, formula = match.groups()
    if name not in arguments:
        raise UsageError(
            f"guess '{visible(text, 60)}': the template has no function '{visible(name)}', it has {names}"
        )
    own = arguments[name]
    if given is not None:
        own = tuple(one.strip() for one in given.split(","))
        if (
            len(own) != len(arguments[name])
            or len(set(own)) < len(own)
            or not all(map(str.isidentifier, own))
        ):
            raise UsageError(
                f"guess '{visible(text, 60)}': {name} has the arguments {', '.join(arguments[name])}"
            )
    guess = read_guess(formula.strip(), own, {key: constants[key] for key in constants if key not in own})
    return name, replace(guess, text=text.strip())


def earlier_guesses(
    texts: Sequence[str], template: Template, constants: Mapping[str, float]
) -> list[FunctionGuess]:
    """The formulas of an earlier run for functions that this template has as well."""
    found = []
    for text in texts:
        with contextlib.suppress(UsageError):
            found.append(_read(text, template, constants))
    return found


def in_template(name: str, guess: Guess, forms: Mapping[str, Expression], template: Template) -> Guess | None:
    """The complete formula that the guess for a function gives, the others being as in a law.

    Parameters
    ----------
    forms
        Skeletons of all functions in the law.

    Returns
    -------
    None where it cannot be written down.
    """
    own = {**forms, name: guess.skeleton}
    composed = template.compose(own)
    if composed is None:
        return None
    constants = [*template.constants]
    for function, place in template.constants_of(own).items():
        numbered = tuple(f"{function}{number + 1}" for number in range(place.stop - place.start))
        constants += guess.constants if function == name else numbered
    return replace(guess, skeleton=composed, constants=tuple(constants), expression=None)
