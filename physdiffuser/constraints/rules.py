"""All constraints of a run together: the test of a formula, its constants fitted under them, their status."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.constraints.constraint import Constraint, Violation
from physdiffuser.core.problem import Problem
from physdiffuser.core.solution_parts.constraint_status import ConstraintStatus
from physdiffuser.expressions import Expression, Number, evaluate
from physdiffuser.expressions.tree import bind, free_constants, substitute, variables

# Weight of violations beside residuals, both in deviations of the target, in a fit under constraints.
PENALTIES = (1e2, 1e4)
# Fits with more constants than these are not tried.
MAX_CONSTANTS = 6
# A constant this near to a number that a constraint states becomes that number. Where no constants satisfy
# the constraints, one that is further from it may have to, and so many are tried.
SAME, NEAR, TRIED = 1e-4, 0.25, 3
# Formulas whose test is remembered.
_REMEMBERED = 20_000


@dataclass(frozen=True)
class ConstraintRules:
    """The constraints that a law must satisfy, as the search and the finalization ask for them.

    Attributes
    ----------
    constraints
        Of the user.
    spread
        Standard deviation of the target.
    """

    constraints: tuple[Constraint, ...]
    spread: float
    _known: dict[Expression, bool] = field(default_factory=dict, repr=False, compare=False)

    def holds(self, expression: Expression) -> bool:
        """Whether a formula satisfies all constraints at their sample points."""
        known = self._known.get(expression)
        if known is None:
            if len(self._known) > _REMEMBERED:
                self._known.clear()
            known = all(one.screen(expression, self.spread) is None for one in self.constraints)
            self._known[expression] = known
        return known

    def fitted(self, expression: Expression, problem: Problem) -> Expression | None:
        """The formula with constants for which it satisfies the constraints; None if none are found.

        Residuals and, with a large weight, the amounts of violations are minimised together. Constants that
        come near to a number that a constraint states become that number: the fit only approaches it, and
        `sqrt(x + c)` with a value at `x = -0.8` has none for a smaller `c` than 0.8.

        Parameters
        ----------
        expression
            A formula; its float constants are where the fit starts.
        problem
            The rows.
        """
        if not 0 < len(free_constants(expression)[1]) <= MAX_CONSTANTS or not variables(expression):
            return None
        made = self._penalised(expression, problem)
        holds = self.holds(made)
        for form in self._with_stated_numbers(made, SAME if holds else NEAR):
            exact = self._penalised(form, problem)
            if self.holds(exact):
                return exact
        return made if holds else None

    def _with_stated_numbers(self, expression: Expression, share: float) -> list[Expression]:
        """The formula with one of its constants replaced by a number that a constraint states.

        The nearest replacements first, none that changes a constant by more than a share of it.
        """
        found = [
            (abs(value - one) / abs(one), position, one)
            for position, value in enumerate(free_constants(expression)[1])
            for one in self.stated_near(value, share)
        ]
        return [_with_number(expression, position, number) for _, position, number in sorted(found)[:TRIED]]

    def stated_near(self, value: float, share: float) -> list[float]:
        """Numbers that a constraint states and that differ from a value by at most a share, nearest first."""
        stated = {sign * one for rule in self.constraints for one in rule.numbers for sign in (1, -1) if one}
        near = [one for one in sorted(stated) if abs(value - one) <= share * abs(one)]
        return sorted(near, key=lambda one: abs(value - one))

    @cached_property
    def points(self) -> FloatArray:
        """The points of all constraints, shape (points, columns)."""
        return np.concatenate([one.points.reshape(-1, one.points.shape[2]) for one in self.constraints])

    def penalties(self, values: FloatArray) -> FloatArray:
        """By how much each test fails, in deviations of the target, over the root of their number.

        Parameters
        ----------
        values
            Of a formula at `points`, shape (points,).

        Returns
        -------
        Shape (tests,): the sum of squares is that of the mean squares of each constraint.
        """
        ends = np.cumsum([one.count for one in self.constraints])[:-1]
        parts = []
        for one, own in zip(self.constraints, np.split(values, ends), strict=True):
            amounts, _ = one.measured(own)
            parts.append(amounts / (self.spread or 1.0) / np.sqrt(len(amounts)))
        every: FloatArray = np.concatenate(parts)
        return every

    def _penalised(self, expression: Expression, problem: Problem) -> Expression:
        """The formula with the constants that minimise residuals and violations together."""
        from scipy.optimize import least_squares

        skeleton, values = free_constants(expression)
        if not values:
            return expression
        weights = 1.0 if problem.weights is None else np.sqrt(problem.weights)
        scale = self.spread or 1.0
        start = np.array(values)
        sizes = np.where(start == 0.0, 1.0, np.abs(start))

        def residuals(units: FloatArray, penalty: float) -> FloatArray:
            parameters = units * sizes
            left = (evaluate(skeleton, problem.inputs, parameters) - problem.target) * weights
            amounts = penalty * self.penalties(evaluate(skeleton, self.points, parameters))
            parts = [left / scale / np.sqrt(problem.rows), amounts]
            every: FloatArray = np.clip(np.nan_to_num(np.concatenate(parts), nan=1e6), -1e6, 1e6)
            return every

        units = start / sizes
        with np.errstate(all="ignore"):
            for penalty in PENALTIES:
                units = least_squares(residuals, units, args=(penalty,), method="trf", max_nfev=30).x
        return bind(skeleton, list(units * sizes))

    def worst(self, expression: Expression) -> tuple[Constraint, Violation] | None:
        """The first constraint that a formula violates, and where; None if it satisfies all."""
        for one in self.constraints:
            found = one.screen(expression, self.spread)
            if found is not None:
                return one, found
        return None

    def statuses(self, expression: Expression, names: Sequence[str]) -> tuple[ConstraintStatus, ...]:
        """The status of each constraint for a formula: proved, holds at points, or violated.

        Parameters
        ----------
        expression
            The formula.
        names
            Of the columns.
        """
        return tuple(self._status(one, expression, names) for one in self.constraints)

    def _status(self, one: Constraint, expression: Expression, names: Sequence[str]) -> ConstraintStatus:
        found = one.screen(expression, self.spread)
        if found is not None:
            at = dict(zip(names, map(float, found.point), strict=True))
            return ConstraintStatus(one.text, "violated", one.count, at)
        return ConstraintStatus(one.text, "proved" if one.prove(expression) else "holds", one.count)


def _with_number(expression: Expression, position: int, number: float) -> Expression:
    """The formula with an exact number in place of one of its fitted constants."""
    count = -1

    def put(node: Expression) -> Expression | None:
        nonlocal count
        if not isinstance(node, Number) or node.exact:
            return None
        count += 1
        exact = Fraction(repr(number))
        return Number(int(exact) if exact.denominator == 1 else exact) if count == position else None

    return substitute(expression, put)
