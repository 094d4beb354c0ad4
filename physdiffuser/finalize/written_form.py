"""The form of a formula that is printed: that of a textbook, where it has the same values."""

from __future__ import annotations

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.formula_fits import loss_of
from physdiffuser.core.problem import Problem
from physdiffuser.expressions import Apply, Expression, Number, complexity, evaluate
from physdiffuser.expressions.simplification.factors import factors_of
from physdiffuser.expressions.simplification.textbook.arrange import arrange
from physdiffuser.expressions.simplification.textbook.rules import textbook
from physdiffuser.expressions.tree import call, distinct_constants, fitted_constants, substitute, walk
from physdiffuser.finalize.evidence.poles import box_points
from physdiffuser.search.refinement.rewriting import tame, worth_arranging

# A textbook's form may be more complex by so much: `m*c2/sqrt(1 - v**2/c2)` has a number 1 more.
_MORE_COMPLEX = 4
_SAME = 1e-9
# Loss of a formula that is right to the last digit or two.
_ROUNDING_LOSS = 4e-30


def written_form(expression: Expression, problem: Problem) -> Expression:
    """A formula with fitted constants as a textbook writes it; as it is where that has not the same values.

    Parameters
    ----------
    expression
        The formula, arranged.
    problem
        The rows, and the operators that may occur.
    """
    expression = without_roots_of_squares(expression, problem.inputs)
    if not _has_measured(expression) or not worth_arranging(expression, at_the_end=True):
        return expression
    # A number is taken out of a root first.
    made = without_roots_of_squares(textbook(expression), problem.inputs)
    if made == expression or complexity(made) > complexity(expression) + _MORE_COMPLEX:
        return expression
    few = len(distinct_constants(made)[1]) <= len(distinct_constants(expression)[1])
    if few and problem.allows(made) and tame(made, expression) and _same(made, expression, problem):
        return made
    return expression


def with_short_constants(expression: Expression, problem: Problem, floor: float) -> Expression:
    """The fitted constants of a law without noise to fifteen digits where that keeps it exact.

    Parameters
    ----------
    floor
        Relative loss that rounding alone causes.
    """
    if not fitted_constants(expression) or loss_of(expression, problem) > floor:
        return expression

    def rounded(node: Expression) -> Expression | None:
        return Number(float(f"{node.value:.15g}")) if isinstance(node, Number) and not node.exact else None

    made = substitute(expression, rounded)
    return made if loss_of(made, problem) <= max(loss_of(expression, problem), _ROUNDING_LOSS) else expression


def _has_measured(expression: Expression) -> bool:
    """Whether a number was fitted or set to a decimal; else the form is that of `arrange`."""
    return any(isinstance(node, Number) and factors_of(node).is_fitted for node in walk(expression))


def rewritten_fit(fitted: Expression, problem: Problem) -> Expression:
    """The formula as fitted, written as the printed one: algebra then has to compare constants only."""
    if not worth_arranging(fitted, at_the_end=True):
        return fitted
    made = written_form(arrange(fitted, positive=problem.positive), problem)
    return made if _same(made, fitted, problem) else fitted


def _same(one: Expression, other: Expression, problem: Problem) -> bool:
    first, second = evaluate(one, problem.inputs), evaluate(other, problem.inputs)
    with np.errstate(all="ignore"):
        scale = _SAME * float(np.abs(second).max(initial=0.0))
        return bool(np.isfinite(first).all() and (np.abs(first - second) <= scale).all())


@np.errstate(all="ignore")
def without_roots_of_squares(expression: Expression, inputs: FloatArray) -> Expression:
    """The formula with `u` for `sqrt(u**2)` and `sqrt(u)**2` where `u` is never negative.

    Where it is never positive, `sqrt(u**2)` is `-u`.

    Parameters
    ----------
    inputs
        Shape (rows, columns). The sign is looked at in the bounding box of the rows.
    """
    points = box_points(inputs)

    def replace(node: Expression) -> Expression | None:
        inner = _under_root(node)
        if inner is None:
            return None
        inner = substitute(inner, replace)
        values = evaluate(inner, points)
        if (values >= 0.0).all():
            return inner
        return call("neg", inner) if (values <= 0.0).all() else None

    return substitute(expression, replace)


def _under_root(node: Expression) -> Expression | None:
    """The `u` of `sqrt(u**2)` and `sqrt(u)**2`; None of anything else."""
    match node:
        case Apply("sqrt", (Apply("pow", (inner, Number(value=2))),)):
            return inner
        case Apply("pow", (Apply("pow", (inner, Number(value=2))), Number(value=half))) if half == 0.5:
            return inner
        case Apply("pow", (Apply("sqrt", (inner,)), Number(value=2))):
            return inner
    return None
