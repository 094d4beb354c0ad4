"""All constraints of a run together: the test of a formula, its constants fitted under them, their status."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.constraints.constraint import Constraint, Violation
from physdiffuser.core.problem import Problem
from physdiffuser.core.solution_parts.constraint_status import ConstraintStatus
from physdiffuser.expressions import Expression, evaluate
from physdiffuser.expressions.tree import bind, free_constants, variables

# Weight of violations beside residuals, both in deviations of the target, in a fit under constraints.
PENALTIES = (1e2, 1e4)
# Fits with more constants than these are not tried.
MAX_CONSTANTS = 6
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

        Residuals and, with a large weight, the amounts of violations are minimised together.

        Parameters
        ----------
        expression
            A formula; its float constants are where the fit starts.
        problem
            The rows.
        """
        from scipy.optimize import least_squares

        skeleton, values = free_constants(expression)
        if not 0 < len(values) <= MAX_CONSTANTS or not variables(expression):
            return None
        weights = 1.0 if problem.weights is None else np.sqrt(problem.weights)
        scale = self.spread or 1.0
        start = np.array(values)
        # (tests, points, columns) of each constraint -> (all points, columns)
        points = np.concatenate([one.points.reshape(-1, problem.columns) for one in self.constraints])
        ends = np.cumsum([one.count for one in self.constraints])[:-1]
        sizes = np.where(start == 0.0, 1.0, np.abs(start))

        def residuals(units: FloatArray, penalty: float) -> FloatArray:
            parameters = units * sizes
            left = (evaluate(skeleton, problem.inputs, parameters) - problem.target) * weights
            parts = [left / scale / np.sqrt(problem.rows)]
            values = evaluate(skeleton, points, parameters)
            for one, own in zip(self.constraints, np.split(values, ends), strict=True):
                amounts, _ = one.measured(own)
                parts.append(penalty * amounts / scale / np.sqrt(len(amounts)))
            every: FloatArray = np.clip(np.nan_to_num(np.concatenate(parts), nan=1e6), -1e6, 1e6)
            return every

        units = start / sizes
        with np.errstate(all="ignore"):
            for penalty in PENALTIES:
                units = least_squares(residuals, units, args=(penalty,), method="trf", max_nfev=30).x
        made = bind(skeleton, list(units * sizes))
        return made if self.holds(made) else None

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
