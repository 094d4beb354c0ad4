"""Constraints on values: positive, between, value, limit, no_poles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.constraints.constraint import Constraint, Region, Violation, mapping, number, register, yes
from physdiffuser.constraints.proofs import has_limit, is_at_least, is_finite
from physdiffuser.errors import UsageError
from physdiffuser.expressions import Apply, Expression, Number, Variable
from physdiffuser.expressions.poles import has_pole
from physdiffuser.expressions.tree import substitute
from physdiffuser.verification.equivalence import equivalent
from physdiffuser.verification.patience import allowed

POINTS = 200
# Distances at which a limit is looked at, in widths of the region, and the share of what is left nearby that
# may be left there, and at the last place but one. The closer ones are for formulas that overflow far away.
CLOSER, DISTANCES, NEAR, SHRUNK = (3.0, 10.0, 30.0, 100.0), (1e3, 1e4, 1e6, 1e8), 1e-2, 0.1
_PROVING_SECONDS = 2.0


def _anywhere(region: Region) -> FloatArray:
    return np.concatenate([region.corners(), region.random(POINTS)])[:, None, :]


@register
@dataclass(frozen=True)
class Between(Constraint):
    """Values within bounds."""

    kind = "between"
    least: float = -np.inf
    most: float = np.inf

    @classmethod
    def build(cls, text: str, value: Any, region: Region) -> list[Constraint]:
        """From a pair of numbers."""
        if not isinstance(value, list | tuple) or len(value) != 2:
            raise UsageError("must be a pair of numbers, as in between: [0, 1]")
        least, most = (number(one, "a bound") for one in value)
        if least >= most:
            raise UsageError(f"the lower bound {least:g} is not below the upper bound {most:g}")
        return [cls(text, region, _anywhere(region), least, most)]

    @property
    def numbers(self) -> tuple[float, ...]:
        """The finite bounds."""
        return tuple(one for one in (self.least, self.most) if np.isfinite(one))

    def amounts(self, values: FloatArray) -> FloatArray:
        """How far values lie outside of the bounds."""
        return np.maximum(np.maximum(self.least - values, values - self.most), 0.0)[:, 0]

    def prove(self, expression: Expression) -> bool:
        """By interval arithmetic."""
        low, high = self.region.low, self.region.high
        below = np.isinf(self.most) or is_at_least(Apply("neg", (expression,)), -self.most, low, high)
        return below and is_at_least(expression, self.least, low, high)


@register
class Positive(Between):
    """Nowhere negative."""

    kind = "positive"

    @classmethod
    def build(cls, text: str, value: Any, region: Region) -> list[Constraint]:
        """From `true`."""
        yes(value)
        return [cls(text, region, _anywhere(region), 0.0, np.inf)]


@register
@dataclass(frozen=True)
class Value(Constraint):
    """A known value where some columns have known values."""

    kind = "value"
    needs_values = True
    at: tuple[tuple[int, float], ...] = ()
    wanted: float = 0.0

    @classmethod
    def build(cls, text: str, value: Any, region: Region) -> list[Constraint]:
        """From `{at: {x: 0}, is: 0}`."""
        given = mapping(value, ("at", "is"), "value: {at: {x: 0}, is: 0}")
        if not isinstance(given["at"], Mapping) or not given["at"]:
            raise UsageError("at must name columns and their values, as in value: {at: {x: 0}, is: 0}")
        at = tuple((region.column(name), number(one, "a value")) for name, one in given["at"].items())
        points = region.random(POINTS) if len(at) < len(region.low) else region.random(1)
        for column, one in at:
            points[:, column] = one
        return [cls(text, region, points[:, None, :], at, number(given["is"], "the value"))]

    @property
    def numbers(self) -> tuple[float, ...]:
        """The value and the place."""
        return (self.wanted, *(place for _, place in self.at))

    def amounts(self, values: FloatArray) -> FloatArray:
        """Distance from the value."""
        return np.abs(values - self.wanted)[:, 0]

    def prove(self, expression: Expression) -> bool:
        """By simplification of the formula at the place."""
        at = dict(self.at)

        def put(node: Expression) -> Expression | None:
            return exact(at[node.index]) if isinstance(node, Variable) and node.index in at else None

        ranges = list(zip(self.region.low.tolist(), self.region.high.tolist(), strict=True))
        there = substitute(expression, put)
        return equivalent(there, exact(self.wanted), ranges, seconds=allowed(_PROVING_SECONDS)) == "verified"


@register
@dataclass(frozen=True)
class Limit(Constraint):
    """A known limit as a column grows beyond all bounds."""

    kind = "limit"
    column: int = 0
    wanted: float = 0.0
    towards: float = 1.0

    @classmethod
    def build(cls, text: str, value: Any, region: Region) -> list[Constraint]:
        """From `{as: {x: inf}, is: 1}`."""
        example = "limit: {as: {x: inf}, is: 1}"
        given = mapping(value, ("as", "is"), example)
        if not isinstance(given["as"], Mapping) or len(given["as"]) != 1:
            raise UsageError(f"as must name one column, as in {example}")
        ((name, end),) = given["as"].items()
        column = region.column(name)
        # YAML writes `.inf`; `inf` is text to it.
        end = {"inf": np.inf, "-inf": -np.inf}.get(end, end) if isinstance(end, str) else end
        if end not in (np.inf, -np.inf):
            raise UsageError(f"as takes inf or -inf, as in {example}; for a finite place use value")
        towards = 1.0 if end > 0 else -1.0
        width = max(float(region.high[column] - region.low[column]), abs(float(region.high[column])), 1e-300)
        distances = np.array([*CLOSER, *DISTANCES])
        points = np.repeat(region.random(24)[:, None, :], len(distances), axis=1)
        points[:, :, column] = towards * width * distances
        return [cls(text, region, points, column, number(given["is"], "the limit"), towards)]

    @property
    def numbers(self) -> tuple[float, ...]:
        """The limit."""
        return (self.wanted,)

    def amounts(self, values: FloatArray) -> FloatArray:
        """Distance that is left far away, as far as it does not shrink further.

        The last two places count: a formula that grows may have the wanted value at one.
        """
        distance = np.abs(values - self.wanted)
        most, left = distance.max(axis=1), distance[:, -2:].max(axis=1)
        shrinks = (distance[:, -1] <= 0.7 * distance[:, 0]) & (left <= SHRUNK * most)
        return np.where(shrinks & (distance[:, -1] <= NEAR * most), 0.0, left)

    @np.errstate(all="ignore")
    def measured(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Without values far away, such as after an overflow, the last one before counts.

        A formula that has values again farther away has no limit.
        """
        values = values.reshape(self.points.shape[:2])
        finite = np.isfinite(values)
        amounts = np.full(len(values), np.inf)
        for count in np.unique(finite.sum(axis=1)):
            tests = finite[:, :count].all(axis=1) & (finite.sum(axis=1) == count)
            if count:
                first = len(CLOSER) if count == self.points.shape[1] else 0
                amounts[tests] = self.amounts(values[tests, first:count])
        return amounts, values

    def prove(self, expression: Expression) -> bool:
        """By sympy, the other columns being positive."""
        others = np.delete(self.region.low, self.column)
        return bool((others > 0).all()) and has_limit(expression, self.column, self.towards, self.wanted)


@register
class NoPoles(Constraint):
    """Finite everywhere in the region."""

    kind = "no_poles"
    needs_values = True

    @classmethod
    def build(cls, text: str, value: Any, region: Region) -> list[Constraint]:
        """From `true`."""
        yes(value)
        return [cls(text, region, _anywhere(region))]

    def amounts(self, values: FloatArray) -> FloatArray:
        """Nothing where there is a value."""
        return np.zeros(len(values))

    def screen(self, expression: Expression, spread: float) -> Violation | None:
        """Also denominators that change their sign between the points."""
        found = super().screen(expression, spread)
        if found is not None or not has_pole(expression, self.points[:, 0]):
            return found
        return Violation(self.points[0, 0], float("inf"))

    def prove(self, expression: Expression) -> bool:
        """By interval arithmetic."""
        return is_finite(expression, self.region.low, self.region.high)


def exact(value: float) -> Number:
    """A whole number as such."""
    return Number(int(value)) if value == int(value) and abs(value) < 1e15 else Number(value)
