"""The constants of all groups fitted under the constraints of the user.

As for a table without groups, residuals and, with a large weight, the amounts of violations are minimised
together. The formula of a group violates a constraint by its own constants and the shared ones alone, so the
normal equations keep their form of an arrow (`joint_fit`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np

from physdiffuser.arrays import BoolArray, FloatArray
from physdiffuser.constraints.rules import NEAR, PENALTIES, SAME, TRIED
from physdiffuser.core.problem import Rules
from physdiffuser.expressions import Expression, Number
from physdiffuser.expressions.tree import bind
from physdiffuser.fitting.batched.evaluation_tape import EvaluationTape
from physdiffuser.groups.joint_fit import GroupedRows, JointFit, JointModel
from physdiffuser.groups.numbers import PutNumber, with_number
from physdiffuser.groups.sharing import GroupDescriptionLength, GroupLaw

# Step of the differences by which violations are differentiated, relative to a constant.
_STEP = 1e-6
# A formula without a value where it needs one violates a constraint by so many deviations.
_MOST = 1e6


class ConstrainedModel(JointModel):
    """A skeleton on grouped rows; the violations of constraints are part of the loss.

    Parameters
    ----------
    skeleton, rows
        As for `JointModel`.
    rules
        The constraints.
    penalty
        Weight of a violation beside a residual.
    """

    def __init__(self, skeleton: Expression, rows: GroupedRows, rules: Rules, penalty: float) -> None:
        super().__init__(skeleton, rows)
        self._rules, self._penalty = rules, penalty
        points = np.broadcast_to(rules.points, (rows.groups, *rules.points.shape))
        self._at_points = EvaluationTape(skeleton, np.ascontiguousarray(points))

    @np.errstate(all="ignore")
    def loss(self, parameters: FloatArray) -> float:
        """Relative sum of squares, violations included."""
        return super().loss(parameters) + float(np.square(self._violations(parameters)).sum())

    @np.errstate(all="ignore")
    def normal_equations(self, parameters: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Products of derivatives, and with the residuals; violations are further residuals."""
        products, slopes = super().normal_equations(parameters)
        found = self._violations(parameters)  # (groups, tests)
        changes = np.zeros((found.shape[0], self.count, found.shape[1]))
        for index in range(self.count):
            step = _STEP * np.maximum(np.abs(parameters[index]), _STEP)
            changed = parameters.copy()
            changed[index] += step
            changes[:, index] = (self._violations(changed) - found) / step[:, None]
        # A test that holds has no part in the sum of squares, whatever is beyond.
        changes *= found[:, None, :] > 0
        products += self._spread * np.einsum("gpt,gqt->gpq", changes, changes)
        slopes += self._spread * np.einsum("gpt,gt->gp", changes, found)
        return products, slopes

    def _violations(self, parameters: FloatArray) -> FloatArray:
        """Weighted violations by the formula of each group, shape (groups, tests)."""
        shape = (self.rows.groups, self._rules.points.shape[0])
        values = np.broadcast_to(self._at_points.value(parameters), shape)
        amounts = np.array([self._rules.penalties(own) for own in values])
        weight = self._penalty / np.sqrt(self.rows.groups)
        violations: FloatArray = weight * np.clip(np.nan_to_num(amounts, nan=_MOST), 0.0, _MOST)
        return violations


def constrained_law(
    law: GroupLaw,
    rows: GroupedRows,
    rules: Rules,
    measure: GroupDescriptionLength,
    put_number: PutNumber = with_number,
) -> GroupLaw | None:
    """The law with constants for which every group satisfies the constraints; None if none are found.

    Constants that come near to a number that a constraint states become that number, and constants of groups
    become shared where that shortens the description under the constraints.
    """
    made = _penalised(law.fit, law.fit.shared, rows, rules)
    holds = satisfied(made, rules)
    for start in _with_stated_numbers(made, rules, SAME if holds else NEAR, put_number):
        exact = _penalised(start, start.shared, rows, rules)
        if satisfied(exact, rules):
            return _shared_further(exact, rows, rules, measure)
    return _shared_further(made, rows, rules, measure) if holds else None


def satisfied(fit: JointFit, rules: Rules) -> bool:
    """Whether the formula of each group satisfies the constraints."""
    return all(rules.holds(bind(fit.skeleton, own.tolist())) for own in fit.parameters.T)


def _penalised(fit: JointFit, shared: BoolArray, rows: GroupedRows, rules: Rules) -> JointFit:
    """The fit with the constants that minimise residuals and violations together; its loss is of the rows."""
    parameters = fit.parameters
    for penalty in PENALTIES:
        parameters = ConstrainedModel(fit.skeleton, rows, rules, penalty).fit(parameters, shared).parameters
    return JointFit(fit.skeleton, shared, parameters, JointModel(fit.skeleton, rows).loss(parameters))


def _shared_further(
    fit: JointFit, rows: GroupedRows, rules: Rules, measure: GroupDescriptionLength
) -> GroupLaw:
    law = measure.law(fit)
    for position in np.flatnonzero(~fit.shared):
        shared = law.fit.shared.copy()
        shared[position] = True
        other = measure.law(_penalised(law.fit, shared, rows, rules))
        if other.length < law.length and satisfied(other.fit, rules):
            law = other
    return law


def _with_stated_numbers(
    fit: JointFit, rules: Rules, share: float, put_number: PutNumber
) -> Iterator[JointFit]:
    """The fit with one of its constants replaced by a number that a constraint states, in all groups."""
    found = [
        (float(np.abs(values - one).max()) / abs(one), position, one)
        for position, values in enumerate(fit.parameters)
        for one in rules.stated_near(float(np.median(values)), share)
    ]
    for _, position, one in sorted(near for near in found if near[0] <= share)[:TRIED]:
        exact = Fraction(repr(one))
        number = Number(int(exact) if exact.denominator == 1 else exact)
        placed = put_number(fit, position, number)
        if placed is not None:
            skeleton, kept = placed
            yield replace(fit, skeleton=skeleton, shared=fit.shared[kept], parameters=fit.parameters[kept])
