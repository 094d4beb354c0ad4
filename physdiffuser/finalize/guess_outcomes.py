"""What became of the starting formulas."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.solution import Equation, GuessOutcome, GuessState, Solution
from physdiffuser.data.dataset import Dataset
from physdiffuser.expressions import Apply, Expression, Number, Parameter, complexity, evaluate, to_text
from physdiffuser.expressions.tree import substitute, variables
from physdiffuser.finalize.scoring import rms_error
from physdiffuser.fitting import fit_constants, refit
from physdiffuser.report.text.digits import short
from physdiffuser.search.refinement.guesses import Guess

# Two formulas are one function if on so many rows they differ by less than this share of the deviation.
_ROWS, _SAME = 300, 1e-5


def guess_outcomes(
    guesses: Sequence[Guess], solution: Solution, dataset: Dataset
) -> tuple[GuessOutcome, ...]:
    """Compare each starting formula with the chosen law.

    Parameters
    ----------
    guesses
        With fitted constants.
    solution
        What was found, in the units of the table.
    dataset
        The table.
    """
    return tuple(_outcome(guess, solution, dataset) for guess in guesses)


def _outcome(guess: Guess, solution: Solution, dataset: Dataset) -> GuessOutcome:
    best = solution.best
    if guess.expression is None or best is None:
        return unusable(guess)
    fitted = refit(guess.expression, dataset.inputs, dataset.target, weights=dataset.weights).expression
    with np.errstate(all="ignore"):
        error = rms_error(fitted, dataset)
    if not np.isfinite(error):
        fitted = guess.expression
        error = rms_error(fitted, dataset)
    state = guess_state(guess, fitted, best.expression, dataset.sample(_ROWS).inputs)
    return outcome_of(guess, state, fitted, to_text(fitted, dataset.names), error, best)


def unusable(guess: Guess) -> GuessOutcome:
    """The outcome of a formula that could not be fitted."""
    why = "no constants were found that give a finite value on every row"
    return GuessOutcome(guess.text, None, None, None, "unusable", f"not usable: {why}")


def outcome_of(
    guess: Guess, state: GuessState, fitted: Expression, text: str, error: float, best: Equation
) -> GuessOutcome:
    """The outcome of a fitted formula, `text`, with its rms error."""
    return GuessOutcome(
        guess.text, text, error, complexity(fitted), state, _sentence(state, fitted, error, best)
    )


def guess_state(guess: Guess, fitted: Expression, best: Expression, inputs: FloatArray) -> GuessState:
    """How a fitted starting formula and the chosen law are related, by their values on some rows."""
    if _is_special_case(best, guess.skeleton, inputs):
        return "kept" if variables(best) == variables(fitted) else "simplified"
    return "improved" if _is_special_case(fitted, _all_free(best), inputs) else "beaten"


def _all_free(expression: Expression) -> Expression:
    """The skeleton with a parameter for every number, exact or not, that is no exponent."""
    count = itertools.count()

    def replace(node: Expression) -> Expression | None:
        if isinstance(node, Apply) and node.operator == "pow":
            return Apply("pow", (substitute(node.arguments[0], replace), node.arguments[1]))
        return Parameter(next(count)) if isinstance(node, Number) else None

    return substitute(expression, replace)


@np.errstate(all="ignore")
def _is_special_case(expression: Expression, skeleton: Expression, inputs: FloatArray) -> bool:
    """Whether some constants of a skeleton give the values of a formula on the rows."""
    values = evaluate(expression, inputs)
    spread = float(np.std(values))
    if not np.isfinite(spread):
        return False
    found = fit_constants(skeleton, inputs, values, starts=32).expression
    distance = float(np.sqrt(np.mean(np.square(evaluate(found, inputs) - values))))
    return distance <= _SAME * max(spread, 1e-9 * float(np.abs(values).max()))


def _sentence(state: GuessState, fitted: Expression, error: float, best: Equation) -> str:
    what = f"rms error {short(error)}, complexity {complexity(fitted)}"
    law = f"rms error {short(best.rmse)}, complexity {best.complexity}"
    return {
        "kept": f"kept: the chosen law has this form ({law})",
        "simplified": f"simplified: the chosen law is a special case of it, without some columns ({law})",
        "improved": f"improved: the chosen law contains it as a special case ({law}; the guess: {what})",
        "beaten": f"beaten: the chosen law has another form ({law}; the guess: {what})",
    }[state]
