"""From what a network wrote to candidates: parsed, given back its columns, constants fitted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from physdiffuser.expressions import Expression, complexity, from_prefix, to_prefix
from physdiffuser.expressions.tree import variables, with_columns
from physdiffuser.models.tokens.derivation import expanded
from physdiffuser.models.tokens.skeleton import (
    collected,
    with_linear_coefficients,
    without_linear_coefficients,
)
from physdiffuser.models.tokens.vocabulary import CONSTANT, END_STEP, NAMES, STEP

if TYPE_CHECKING:
    from physdiffuser.core.problem import Problem
    from physdiffuser.models.features.reading import Reader, Reading

_SCREENING_ROWS = 200
_SCREENING_STARTS = 4
_FINAL_STARTS = 12


def read_formula(tokens: Sequence[str], reading: Reading) -> Expression | None:
    """The skeleton over the problem's chosen columns, or None if the tokens are no formula.

    Parameters
    ----------
    tokens
        Prefix tokens, variables by place; or a derivation.
    reading
        Says which column stands in which place.
    """
    law = expanded(tokens)
    if law is None:
        return None
    skeleton = from_prefix(law)
    if any(reading.columns[place] < 0 for place in variables(skeleton)) or not variables(skeleton):
        return None
    return without_linear_coefficients(with_columns(skeleton, reading.columns))


@dataclass(frozen=True)
class Fitted:
    """A formula with its constants, for the problem's own columns.

    Attributes
    ----------
    expression
        Over the columns of the problem.
    loss
        Relative to the best constant's, on the rows it was fitted to.
    skeleton
        As the network wrote it.
    """

    expression: Expression
    loss: float
    skeleton: Expression


class Fitter:
    """Fits skeletons in the scaled columns and gives the formula back in the original ones.

    Parameters
    ----------
    problem
        Rows, weights and loss.
    reader
        Holds the scaled columns.
    """

    def __init__(self, problem: Problem, reader: Reader) -> None:
        self.problem, self.reader = problem, reader
        rows = problem.rows
        rng = problem.generator(7, 1)
        self._few = np.sort(rng.permutation(rows)[:_SCREENING_ROWS])

    def fit(self, skeleton: Expression, thorough: bool = False) -> Fitted | None:
        """Fit one skeleton; None when it has no finite value on the rows or is too complex.

        Parameters
        ----------
        skeleton
            Over the reader's columns, without linear coefficients.
        thorough
            Use all rows and more starts; otherwise a few hundred rows.
        """
        from physdiffuser.fitting import fit_constants

        problem = self.problem
        rows = np.arange(problem.rows) if thorough else self._few
        fit = fit_constants(
            with_linear_coefficients(skeleton),
            self.reader.inputs[rows],
            self.reader.target[rows],
            weights=None if problem.weights is None else problem.weights[rows],
            loss=problem.loss,
            starts=_FINAL_STARTS if thorough else _SCREENING_STARTS,
            rng=problem.generator(7, 2),
        )
        if not np.isfinite(fit.loss):
            return None
        try:
            expression = self.restore(fit.expression)
        except (OverflowError, ZeroDivisionError):
            return None  # in the original units a constant is larger, or smaller, than a number can be
        if complexity(expression) > problem.max_complexity:
            return None
        return Fitted(expression, fit.loss, skeleton)

    def restore(self, expression: Expression) -> Expression:
        """The formula over the problem's own, unscaled columns."""
        return collected(with_columns(self.reader.scaling.undo(expression), self.reader.chosen))

    def best_first(self, skeletons: Sequence[Expression], refine: int = 4) -> Iterator[Fitted]:
        """Fit all on a few rows, then yield the best ones fitted to all rows, and the rest as they are."""
        fitted = [found for found in map(self.fit, skeletons) if found is not None]
        fitted.sort(key=lambda found: (found.loss, len(to_prefix(found.skeleton))))
        for position, found in enumerate(fitted):
            better = self.fit(found.skeleton, thorough=True) if position < refine else None
            yield better if better is not None else found


def permitted_tokens(reading: Reading, operators: frozenset[str], names: Sequence[str]) -> set[str]:
    """Tokens a formula for this problem may contain: its places, its operators, numbers and constants.

    Parameters
    ----------
    reading
        Says which places hold a column.
    names
        All tokens of the vocabulary.
    """
    from physdiffuser.expressions import OPERATORS
    from physdiffuser.models.tokens.vocabulary import VARIABLES

    places = {VARIABLES[place] for place, column in enumerate(reading.columns) if column >= 0}
    steps = {STEP, END_STEP} if NAMES[0] in names else set()
    return {
        name
        for name in names
        if (name in OPERATORS and name in operators)
        or name in places
        or name in steps
        or (name not in OPERATORS and name not in VARIABLES and (name == CONSTANT or name[0] != "<"))
    }
