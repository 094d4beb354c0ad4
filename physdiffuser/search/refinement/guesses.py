"""Formulas that the user starts from: free constants are found by their names, and fitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.data.dataset import Dataset
from physdiffuser.errors import UsageError
from physdiffuser.expressions import Expression, ExpressionSyntaxError, Parameter
from physdiffuser.expressions.parser import known_names, parse_with
from physdiffuser.fitting import fit_constants
from physdiffuser.io.display import counted, visible

MAX_GUESSES, MAX_LENGTH, MAX_CONSTANTS = 100, 2_000, 20
# Rows that a guess is fitted to here (the search refits it to all of its own), and starts of the fit.
ROWS, STARTS = 1_000, 32


@dataclass(frozen=True)
class Guess:
    """A starting formula.

    Attributes
    ----------
    text
        As the user wrote it.
    skeleton
        With a parameter for each name that is neither a column nor a known constant.
    constants
        These names, in the order of the parameters.
    expression
        With fitted constants; None when no values of them give finite values on the rows.
    """

    text: str
    skeleton: Expression
    constants: tuple[str, ...]
    expression: Expression | None = None


class FreeNames(dict[str, Expression]):
    """Names of a formula; one that is not known becomes a parameter."""

    def __init__(self, known: Mapping[str, Expression]) -> None:
        super().__init__(known)
        self.free: list[str] = []

    def get(self, name: str, default: Expression | None = None) -> Expression | None:  # type: ignore[override]
        if name not in self:
            self[name] = Parameter(len(self.free))
            self.free.append(name)
        return self[name]


def read_guess(
    text: str, names: Sequence[str], constants: Mapping[str, float], target: str | None = None
) -> Guess:
    """Parse a starting formula.

    Parameters
    ----------
    text
        The formula. Names that are neither columns nor known constants are free constants.
    names
        Aliases of the columns.
    target
        Alias of the target, which cannot occur.

    Raises
    ------
    UsageError
        With the position of the error, if it does not parse or is too long.
    """
    shown = visible(text, 60)
    if len(text) > MAX_LENGTH:
        raise UsageError(
            f"guess '{shown}': {len(text)} characters; a guess may have {MAX_LENGTH} at most, shorten it"
        )
    known = FreeNames(known_names(names, constants))
    try:
        skeleton = parse_with(text, known)
    except ExpressionSyntaxError as error:
        raise UsageError(f"guess '{shown}': {error}") from None
    if target is not None and target in known.free:
        raise UsageError(f"guess '{shown}': '{visible(target)}' is the target; write its formula alone")
    if len(known.free) > MAX_CONSTANTS:
        raise UsageError(
            f"guess '{shown}': {counted(len(known.free), 'free constant')} ({' '.join(known.free[:6])} ...); "
            f"{MAX_CONSTANTS} at most can be fitted"
        )
    return Guess(text, skeleton, tuple(known.free))


def fitted_guesses(
    texts: Sequence[str], dataset: Dataset, constants: Mapping[str, float], seed: int
) -> tuple[Guess, ...]:
    """Read the starting formulas and fit their constants to the table.

    Raises
    ------
    UsageError
        If one of them does not parse, or there are too many.
    """
    if isinstance(texts, str):
        raise UsageError(
            f"initial={visible(texts)!r}: must be a list of formulas, such as [{visible(texts)!r}]"
        )
    if len(texts) > MAX_GUESSES:
        raise UsageError(f"{len(texts)} guesses; at most {MAX_GUESSES} are fitted")
    read = [read_guess(text, dataset.names, constants, dataset.target_column.alias) for text in texts]
    if not read:
        return ()
    return tuple(fit_guess(guess, dataset.sample(ROWS), seed) for guess in read)


def fit_guess(guess: Guess, dataset: Dataset, seed: int) -> Guess:
    """The guess with its constants fitted to a table, from several starts."""
    rng = np.random.default_rng([seed, 11])
    weights: FloatArray | None = dataset.weights
    if weights is not None:
        weights = weights / weights.mean()
    with np.errstate(all="ignore"):
        fit = fit_constants(
            guess.skeleton, dataset.inputs, dataset.target, weights=weights, starts=STARTS, rng=rng
        )
    found = fit.expression if np.isfinite(fit.loss) else None
    return Guess(guess.text, guess.skeleton, guess.constants, found)
