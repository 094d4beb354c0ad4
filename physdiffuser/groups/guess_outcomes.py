"""What became of the starting formulas of a table with groups."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from physdiffuser.core.solution import GuessOutcome, Solution
from physdiffuser.data.dataset import Dataset
from physdiffuser.data.statements.groups import Groups
from physdiffuser.expressions import to_text
from physdiffuser.expressions.tree import bind
from physdiffuser.finalize.guess_outcomes import guess_state, outcome_of, unusable
from physdiffuser.groups.joint_fit import JointFit
from physdiffuser.groups.selection import GroupSelection
from physdiffuser.groups.sharing import best_sharing, separate_fits
from physdiffuser.search.refinement.guesses import Guess

# Rows of the largest group on which a guess is compared with the law.
_ROWS = 300


def group_guess_outcomes(
    guesses: Sequence[Guess],
    solution: Solution,
    dataset: Dataset,
    groups: Groups,
    selection: GroupSelection,
    seed: int,
) -> tuple[GuessOutcome, ...]:
    """Compare each starting formula, fitted to all groups, with the chosen law.

    The two are compared with the constants of the largest group; the errors are those of the rows of the fit.
    """
    best = selection.best
    if best is None or solution.best is None:
        return tuple(unusable(guess) for guess in guesses)
    largest = int(np.argmax(selection.rows.counts))
    rows = np.flatnonzero(groups.codes == largest)[:_ROWS]
    law = bind(best.fit.skeleton, best.fit.parameters[:, largest].tolist())
    found = []
    for guess in guesses:
        own = separate_fits(guess.skeleton, selection.rows, seed)
        fitted = best_sharing(guess.skeleton, selection.rows, selection.measure, own)
        if fitted is None:
            found.append(unusable(guess))
            continue
        here = bind(guess.skeleton, fitted.fit.parameters[:, largest].tolist())
        state = guess_state(guess, here, law, dataset.inputs[rows])
        error = float(np.sqrt(fitted.fit.loss * selection.rows.spread / selection.rows.rows))
        found.append(
            outcome_of(guess, state, here, _shown(guess, fitted.fit, dataset.names), error, solution.best)
        )
    return tuple(found)


def _shown(guess: Guess, fit: JointFit, names: Sequence[str]) -> str:
    """The guess with its shared constants as numbers; those of the groups keep the names that they have."""
    own = [guess.constants[index] for index in fit.own]
    return to_text(fit.filled(len(names)), (*names, *own))
