"""Constants that the rows do not determine are taken out of a formula."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from physdiffuser.arrays import BoolArray, FloatArray
from physdiffuser.core.formula_fits import loss_of, refitted
from physdiffuser.core.problem import Problem
from physdiffuser.expressions import ONE, ZERO, Apply, Expression, Number, Parameter
from physdiffuser.expressions.tree import bind, distinct_constants, substitute
from physdiffuser.fitting.exact_constants.folding import fold_units
from physdiffuser.fitting.uncertainty import Uncertainty, uncertainty
from physdiffuser.report.text.digits import tightening
from physdiffuser.selection.description_length import DescriptionLength

# A fit is singular if a constant's error exceeds it, and only because other constants make up for it: held
# fast, they would leave an error so many times smaller.
_TIED = 30.0
# A standard error of this share of the constant may leave several values that fit as well.
_LOOSE = 0.5
# A formula must not become longer by more nats than this when a constant is taken out.
_SLACK = 1e-6


def is_singular(expression: Expression, problem: Problem) -> bool:
    """Whether the rows leave a fitted constant of the formula open, whatever the others are."""
    known = _known(expression, problem)
    return known is not None and bool(_singular(known).any())


def with_determined_constants(
    expression: Expression, problem: Problem, description_length: DescriptionLength, stop: Callable[[], bool]
) -> Expression:
    """The formula without constants that the rows do not determine, where that makes it no longer.

    Such a constant is set to 0, which often takes more of the formula away, or, where the fit is singular, to
    1; the others are fitted again.

    Parameters
    ----------
    stop
        Asked before each fit; once it answers True, the formula so far is given.
    """
    length = description_length.length(expression, loss_of(expression, problem))
    while (simpler := _simpler(expression, problem, description_length, length, stop)) is not None:
        expression, length = simpler
    return expression


def _simpler(
    expression: Expression,
    problem: Problem,
    description_length: DescriptionLength,
    length: float,
    stop: Callable[[], bool],
) -> tuple[Expression, float] | None:
    for candidate in _candidates(expression, problem):
        if stop():
            return None
        fitted = refitted(candidate, problem)
        new = description_length.length(fitted, loss_of(fitted, problem))
        if new <= length + _SLACK and problem.allows(fitted):
            return fitted, new
    return None


def _candidates(expression: Expression, problem: Problem) -> Iterator[Expression]:
    """The formula with one constant at a plain value, the least determined first."""
    known = _known(expression, problem)
    if known is None:
        return
    singular = _singular(known)
    with np.errstate(all="ignore"):
        share = known.standard_errors / np.abs(known.parameters)
    for index in sorted(np.flatnonzero(singular | ~(share < _LOOSE)), key=lambda one: -share[one]):
        plain = [ZERO]
        if singular[index]:
            plain.append(ONE)
        for by in dict.fromkeys(plain):
            rest = _bound(known.skeleton, known.parameters, int(index), by)
            if isinstance(rest, Apply):
                yield rest


def without_one(expression: Expression) -> list[Expression]:
    """The formulas in which one fitted constant is 0, and what that makes needless left out."""
    skeleton, values = distinct_constants(expression)
    forms = [_bound(skeleton, values, index, ZERO) for index in range(len(values))]
    return [form for form in forms if isinstance(form, Apply)]


def _bound(skeleton: Expression, values: Sequence[float] | FloatArray, index: int, by: Number) -> Expression:
    """The fitted formula with one of its constants replaced and what that makes needless left out."""

    def rewrite(node: Expression) -> Expression | None:
        return by if isinstance(node, Parameter) and node.index == index else None

    return fold_units(bind(substitute(skeleton, rewrite), [float(one) for one in values]))


def _known(expression: Expression, problem: Problem) -> Uncertainty | None:
    skeleton, values = distinct_constants(expression)
    if not values or problem.rows <= len(values):
        return None
    return uncertainty(skeleton, np.array(values), problem.inputs, problem.target, weights=problem.weights)


def _singular(known: Uncertainty) -> BoolArray:
    errors = known.standard_errors
    factors = np.array(tightening(tuple(map(tuple, known.correlation.tolist())), errors.size))
    return ~np.isfinite(errors) | ((errors > np.abs(known.parameters)) & (factors > _TIED))
